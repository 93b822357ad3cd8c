"""How few bits a weight needs: log2 d by the worst case, a few in fact, one when the memory is not full.

Hebbian matrices with N = 0.015 d² and 0.020 d² pairs (sphere, one value a key; 0.027 d² is their capacity) are rounded
to evenly spaced values from −max|W| to max|W|. In the worst case rounding moves a margin by max|W|/(L−1) times
‖u_y − u_y'‖₁ ‖e_z‖₁, of order d √ln d / L: L ~ d √ln d levels, log2 d bits up to constants, move no margin by more
than 1/2, half of its mean. Rounding errors of random pairs average out, so that far fewer bits keep 99 % recall.

    engram run memory.quantised --seeds 5
"""

from collections.abc import Iterator, Sequence
from math import log2
from typing import Any

import numpy as np

from engram.claims import Claim, Measure
from engram.claims.experiment import Scale
from engram.experiments.memory import of_law
from engram.records import Record
from engram.specs import Check

TIMES = "quick 5 s a seed, paper 1 min a seed on 2 cores"
SOURCE = "Understanding factual recall in transformers, appendix on bounded bit complexity; worst case derived here"
CLAIMS = {
    "memory.quantised": "O(log d) bits per weight keep 99 % recall: worst-case bits grow like log2 d, fewer suffice.",
}
LARGEST = {"smoke": 32, "quick": 256, "paper": 512}
PAIRS = {"smoke": 500, "quick": 8_000, "paper": 20_000}
LOADS = (15, 20)  # N in thousandths of d²


def specs(scale: Scale, seeds: Sequence[int]) -> list[Check]:
    sizes = [{"largest": LARGEST[scale], "thousandths": load} for load in LOADS]
    return [Check(law="precision.bits", sizes=s, draws=PAIRS[scale], seed=seed) for seed in seeds for s in sizes]


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    runs = {f"N = {load / 1000} d²": of_law(records, "precision.bits", thousandths=load) for load in LOADS}
    measures = [measure for at, rows in runs.items() for measure in of_load(at, rows)]
    yield Claim("memory.quantised", CLAIMS["memory.quantised"], SOURCE, tuple(measures))


def of_load(at: str, runs: Sequence[Sequence[dict[str, float]]]) -> Iterator[Measure]:
    yield Measure.over_seeds(f"{at}: slope of worst-case bits in log2 d", slopes(runs, "certified"), low=0.8, high=1.2)
    yield Measure.over_seeds(f"{at}: slope of sufficient bits in log2 d", slopes(runs, "sufficient"), high=1)
    spare = [min(row["certified"] - row["sufficient"] for row in rows) for rows in runs]
    yield Measure.over_seeds(f"{at}: worst-case minus sufficient bits, least over d", spare, low=0)
    widest = [rows[-1] if rows[-1]["d"] < 128 else next(r for r in rows if r["d"] == 128) for rows in runs]
    d = round(widest[0]["d"])
    yield Measure.over_seeds(f"{at}: sufficient bits at d = {d}", [row["sufficient"] for row in widest], high=log2(d))


def slopes(runs: Sequence[Sequence[dict[str, float]]], column: str) -> list[float]:
    """Slope of bits in log2 d, for each seed."""
    return [float(np.polyfit([log2(row["d"]) for row in rows], [row[column] for row in rows], 1)[0]) for rows in runs]


def figure(records: Sequence[Record]) -> Any:
    from engram.show.laws import bits_per_weight

    return bits_per_weight({load / 1000: of_law(records, "precision.bits", thousandths=load) for load in LOADS})
