"""Fig. 4 center: an induction head learned with uniform outputs works for others, one learned with likely ones fails.

The simplified model with W_F, loss on all tokens, K=3 random triggers, lr 1; outputs o_k uniform or drawn from
π_b(·|q_k) in training, both in testing (128 sequences that training never sees, every 25 steps).

    engram run birth.fig4-center --seeds 5
"""

from collections.abc import Iterator, Sequence
from typing import Any

from engram.claims import Measure
from engram.claims.experiment import Runs, Scale
from engram.experiments.birth import PAPER, three_triggers
from engram.records import Record
from engram.specs import Train

TIMES = "quick 50 s a seed, paper 9 min a seed on 2 cores"
SOURCE = f"{PAPER}, Fig. 4 (center)"
CLAIMS = {
    "birth.diversity-generalises": "Uniform outputs lead to better generalisation to other outputs than bigram ones."
}
LAWS = ("uniform", "bigram")


def specs(scale: Scale, seeds: Sequence[int]) -> dict[str, list[Train]]:
    return {outputs: [three_triggers(scale, seed, outputs) for seed in seeds] for outputs in LAWS}


def claims(runs: Runs) -> Iterator[tuple[str, Sequence[Measure]]]:
    uniform = [lost(record, "uniform", "bigram") for record in runs["uniform"]]
    bigram = [lost(record, "bigram", "uniform") for record in runs["bigram"]]
    gaps = [b - u for u, b in zip(uniform, bigram, strict=True)]
    measures = [
        Measure.over_seeds("in-context accuracy lost on the other outputs: bigram- minus uniform-trained", gaps, low=0),
        Measure.over_seeds("lost when trained on uniform outputs", uniform, high=0.1),
        Measure.over_seeds("lost when trained on bigram outputs", bigram, low=0),
    ]
    yield "birth.diversity-generalises", measures


def lost(record: Record, own: str, other: str) -> float:
    """In-context accuracy at the end: on the outputs of training minus on the others."""
    return record.last(f"test.{own}.accuracy.in_context") - record.last(f"test.{other}.accuracy.in_context")


def figure(runs: Runs) -> Any:
    from engram.show.birth import transfer

    return transfer(runs)
