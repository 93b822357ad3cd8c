"""Fig. 5: the memories behind Fig. 4 left, to see which of them is slow.

The same trainings as birth.fig4-left. The paper's guess: few or rare triggers slow down W_O2, because fewer output
tokens are seen; random triggers slow down the key matrices, because more triggers must be stored.

    engram run birth.fig5 --seeds 8
"""

from collections.abc import Iterator, Sequence
from math import log
from typing import Any

from engram.experiments.birth import PAPER, split
from engram.experiments.birth.fig4_left import SEEDS, law
from engram.experiments.birth.fig4_left import trainings as specs
from engram.records import Claim, Measure, Record
from engram.records.readings import reached

__all__ = ["CLAIMS", "SEEDS", "SOURCE", "TIMES", "claims", "figure", "specs"]

TIMES = "the runs of birth.fig4-left: quick 2 min a seed, paper 22 min a seed on 2 cores"
SOURCE = f"{PAPER}, Fig. 5"
CLAIMS = {
    "birth.slow-output-memory": "With few or rare triggers it is the output memory W_O2 that is learned slowly.",
    "birth.slow-key-memory": "With random triggers it is the key memories that are learned slowly.",
}
OUTPUT, KEY = "recall.W_O2", "recall.W_K1.t<64"
LEVEL = 0.2  # of recall: one that every law of data reaches


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    runs = split(records, law)

    def slower(slow: str, fast: str, column: str) -> Measure:
        a, b = ([reached(r, column, LEVEL, width=1) for r in runs[name]] for name in (slow, fast))
        ratios = [log(x / y) for x, y in zip(a, b, strict=True)]
        return Measure.over_seeds(f"log of steps to {column} {LEVEL}: {slow} over {fast}", ratios, low=0)

    yield Claim(
        "birth.slow-output-memory",
        CLAIMS["birth.slow-output-memory"],
        SOURCE,
        (
            slower("K=1 random", "K=5 random", OUTPUT),
            slower("K=5 fixed, ranks 6–10", "K=5 fixed, ranks 1–5", OUTPUT),
        ),
    )
    yield Claim(
        "birth.slow-key-memory",
        CLAIMS["birth.slow-key-memory"],
        SOURCE,
        (slower("K=5 random", "K=5 fixed, ranks 1–5", KEY), slower("K=1 random", "K=1 fixed, most frequent", KEY)),
    )


def figure(records: Sequence[Record]) -> Any:
    from engram.show.birth import memories_by_kind

    return memories_by_kind(split(records, law), "Fig. 5: memories by data")
