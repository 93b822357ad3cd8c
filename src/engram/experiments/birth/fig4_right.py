"""Fig. 4 right: memories of all layers trained together: W_O2 and W_F compete, and the model chooses between them.

The simplified model with W_F, loss on all tokens, K=3 random triggers, uniform outputs, lr 1: the uniform trainings of
birth.fig4-center. W_F reads what the induction head wrote, so it takes over part of W_O2's work and both leave the
estimates that the probes look for. At the end `attribution` tells where right answers come from, and `preference` whom
the model believes (engram.probes.attribution).

    engram run birth.fig4-right --seeds 10
"""

from collections.abc import Iterator, Sequence
from typing import Any

from engram.experiments import Scale
from engram.experiments.birth import PAPER, three_triggers
from engram.records import Claim, Measure, Record, Train
from engram.records.readings import mean_between

TIMES = "quick 25 s a seed, paper 4 min a seed on 2 cores"
SOURCE = f"{PAPER}, Fig. 4 (right) and section 3"
CLAIMS = {
    "birth.competition": "W_O2 and W_F eventually compete: both deviate from the natural estimates late in training.",
    "birth.preference": "The model uses the token that the induction head retrieves when the bigram finds it unlikely.",
}
SEEDS = {"quick": 10}  # rates differ from seed to seed
RATES = ("unlikely.follows", "unlikely.bigram", "likely.follows")


def specs(scale: Scale, seeds: Sequence[int]) -> list[Train]:
    return [three_triggers(scale, seed, "uniform") for seed in seeds]


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    lost = [early(r, "recall.W_O2") - late(r, "recall.W_O2") for r in records]
    gained = [late(r, "kl.W_F") - early(r, "kl.W_F") for r in records]
    yield _claim(
        "birth.competition",
        Measure.over_seeds("recall of W_O2 lost: 30–50 % of the steps minus last 10 %", lost, low=0),
        Measure.over_seeds("KL of W_F grown (nats): last 10 % of the steps minus 30–50 %", gained, low=0),
    )
    rates = {name: [record.last(f"preference.{name}") for record in records] for name in RATES}
    unless = _difference(rates, "unlikely.follows", "likely.follows")
    yield _claim(
        "birth.preference",
        Measure.over_seeds("its token unlikely under π_b: follows the head minus the bigram", _prefers(rates), low=0),
        Measure.over_seeds("follows the head: its token unlikely minus second or third under π_b", unless, low=0),
    )


def _prefers(rates: dict[str, list[float]]) -> list[float]:
    return _difference(rates, "unlikely.follows", "unlikely.bigram")


def _difference(rates: dict[str, list[float]], name: str, minus: str) -> list[float]:
    return [a - b for a, b in zip(rates[name], rates[minus], strict=True)]


def early(record: Record, column: str) -> float:
    return mean_between(record, column, 0.3, 0.5)


def late(record: Record, column: str) -> float:
    return mean_between(record, column, 0.9, 1.0)


def figure(records: Sequence[Record]) -> Any:
    from engram.show.shares import probes_and_shares

    return probes_and_shares(records)


def _claim(id: str, *measures: Measure) -> Claim:
    return Claim(id, CLAIMS[id], SOURCE, measures)
