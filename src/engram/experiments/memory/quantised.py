"""How few bits a weight needs: log2 d by the worst case, one in fact.

A Hebbian matrix with N = 0.015 d² pairs (sphere, one value a key) is rounded to evenly spaced values from −max|W| to
max|W|. In the worst case rounding moves a margin by max|W|/(L−1) · ‖u_y − u_y'‖₁ ‖e_z‖₁, of order d √ln d / L, so that
L ~ d √ln d levels, log2 d bits up to constants, are certain to keep it. Rounding errors of random pairs average out:
signs are enough at every d.

    engram run memory.quantised --seeds 5
"""

from collections.abc import Iterator, Sequence
from math import log2
from typing import Any

import numpy as np

from engram.experiments import Scale
from engram.experiments.memory import of_law
from engram.records import Check, Claim, Measure, Record

TIMES = "quick 5 s a seed, paper 1 min a seed on 2 cores"
SOURCE = "Understanding factual recall in transformers, appendix on bounded bit complexity; worst case derived here"
CLAIMS = {
    "memory.quantised": "O(log d) bits per weight keep 99 % recall: certain bits grow like log2 d, needed ones less.",
}
SIZES = {"smoke": {"largest": 32}, "quick": {"largest": 256}, "paper": {"largest": 512}}
PAIRS = {"smoke": 500, "quick": 8_000, "paper": 20_000}


def specs(scale: Scale, seeds: Sequence[int]) -> list[Check]:
    return [Check(law="precision.bits", sizes=SIZES[scale], draws=PAIRS[scale], seed=seed) for seed in seeds]


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    runs = of_law(records, "precision.bits")
    spare = [min(row["certified"] - row["sufficient"] for row in rows) for rows in runs]
    measures = [
        Measure.over_seeds("slope of sufficient bits in log2 d", slopes(runs, "sufficient"), high=1),
        Measure.over_seeds("slope of worst-case bits in log2 d", slopes(runs, "certified"), low=0.8, high=1.2),
        Measure.over_seeds("worst-case minus sufficient bits, least over d", spare, low=0),
    ]
    at_128 = [row["sufficient"] for rows in runs for row in rows if row["d"] == 128]
    if at_128:
        measures.append(Measure.over_seeds("sufficient bits at d=128, where log2 d = 7", at_128, high=7))
    yield Claim("memory.quantised", CLAIMS["memory.quantised"], SOURCE, tuple(measures))


def slopes(runs: Sequence[Sequence[dict[str, float]]], column: str) -> list[float]:
    """Slope of bits in log2 d, for each seed."""
    return [float(np.polyfit([log2(row["d"]) for row in rows], [row[column] for row in rows], 1)[0]) for rows in runs]


def figure(records: Sequence[Record]) -> Any:
    from engram.show.laws import bits_per_weight

    return bits_per_weight(of_law(records, "precision.bits"))
