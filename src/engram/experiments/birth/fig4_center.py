"""Fig. 4 center: an induction head learned with uniform outputs works for others, one learned with likely ones fails.

The simplified model with W_F, loss on all tokens, K=3 random triggers, lr 1; outputs o_k uniform or drawn from
π_b(·|q_k) in training, both in testing (128 sequences that training never sees, every 25 steps).

    engram run birth.fig4-center --seeds 5
"""

from collections.abc import Iterator, Sequence
from typing import Any

from engram.claims import Claim, Measure
from engram.claims.experiment import Scale
from engram.experiments.birth import PAPER, split, three_triggers
from engram.records import Record
from engram.specs import Train

TIMES = "quick 50 s a seed, paper 9 min a seed on 2 cores"
SOURCE = f"{PAPER}, Fig. 4 (center)"
CLAIMS = {
    "birth.diversity-generalises": "Uniform outputs lead to better generalisation to other outputs than bigram ones."
}
LAWS = ("uniform", "bigram")


def specs(scale: Scale, seeds: Sequence[int]) -> list[Train]:
    return [three_triggers(scale, seed, outputs) for outputs in LAWS for seed in seeds]


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    runs = split(records, trained_on)
    uniform, bigram = ([lost(record) for record in runs[law]] for law in LAWS)
    gaps = [b - u for u, b in zip(uniform, bigram, strict=True)]
    yield Claim(
        "birth.diversity-generalises",
        CLAIMS["birth.diversity-generalises"],
        SOURCE,
        (
            Measure.over_seeds(
                "in-context accuracy lost on the other outputs: bigram- minus uniform-trained", gaps, low=0
            ),
            Measure.over_seeds("lost when trained on uniform outputs", uniform, high=0.1),
            Measure.over_seeds("lost when trained on bigram outputs", bigram, low=0),
        ),
    )


def lost(record: Record) -> float:
    """In-context accuracy at the end: on the outputs of training minus on the others."""
    own = trained_on(record.train)
    (other,) = set(LAWS) - {own}
    own_accuracy, other_accuracy = (record.last(f"test.{law}.accuracy.in_context") for law in (own, other))
    return own_accuracy - other_accuracy


def trained_on(spec: Train) -> str:
    return spec.task.outputs  # type: ignore[attr-defined]


def figure(records: Sequence[Record]) -> Any:
    from engram.show.birth import transfer

    return transfer(split(records, trained_on))
