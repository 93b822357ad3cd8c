"""How few bits a weight needs: log2 d by the worst case, a few in fact, one when the memory is not full.

Hebbian matrices with N = 0.015 d² and 0.020 d² pairs (sphere, one value per key; 0.027 d² is their capacity) are
rounded to evenly spaced values from −max|W| to max|W|. In the worst case rounding moves a margin by max|W|/(L−1) times
‖u_y − u_y'‖₁ ‖e_z‖₁, of order d √ln d / L: L ~ d √ln d levels, log2 d bits up to constants, move no margin by more
than 1/2, half of its mean. Rounding errors of random pairs average out, so that far fewer bits keep 99 % recall.

    engram run memory.quantised --seeds 5
"""

from math import log2

import numpy as np

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds, checks

TIMES = "quick 5 s a seed, paper 1 min a seed on 2 cores"
SOURCE = "Understanding factual recall in transformers, appendix on bounded bit complexity; worst case derived here"
CLAIMS = {
    "memory.quantised": "O(log d) bits per weight keep 99 % recall.",
    "memory.bits-to-spare": "The worst-case bits grow like log2 d; fewer suffice, and they grow more slowly.",
}
LARGEST = {"smoke": 32, "quick": 256, "paper": 512}
PAIRS = {"smoke": 500, "quick": 8_000, "paper": 20_000}
LOADS = (0.015, 0.02)  # N/d²
BIT = 1.0  # log2 of neighbouring even numbers of levels differ by one bit at most


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """By the load N/d²."""
    largest, draws = LARGEST[scale], PAIRS[scale]
    return {load: checks("precision.bits", seeds, draws, largest=largest, load=load) for load in LOADS}


def claims(runs: Runs) -> Claimed:
    loads = [(f"N = {load} d²", records) for load, records in runs.items()]
    yield "memory.quantised", [_sufficient(*load) for load in loads]
    yield "memory.bits-to-spare", [measure for load in loads for measure in _to_spare(*load)]


def _sufficient(at: str, records: Records) -> Measure:
    """The widest memory of at most d = 128: as many bits as log2 d suffice."""
    widest = [[row for row in r.rows if row["d"] <= 128][-1] for r in records]
    d = round(widest[0]["d"])
    bits, name = [row["sufficient"] for row in widest], f"{at}: sufficient bits at d = {d}"
    return Measure.over_seeds(name, bits, high=log2(d), resolution=BIT)


def _to_spare(at: str, records: Records) -> Measures:
    certified, sufficient = slopes(records, "certified"), slopes(records, "sufficient")
    yield Measure.slope(f"{at}: slope of worst-case bits in log2 d", certified, low=0.8, high=1.2)
    step = BIT * steepest(np.log2(records[0].column("d")))
    yield Measure.slope(f"{at}: slope of sufficient bits in log2 d", sufficient, high=1, resolution=step)
    spare = [float((r.column("certified") - r.column("sufficient")).min()) for r in records]
    yield Measure.over_seeds(f"{at}: worst-case minus sufficient bits, least over d", spare, low=0)


def slopes(records: Records, column: str) -> list[float]:
    """Slope of bits in log2 d, for each seed."""
    return [float(np.polyfit(np.log2(r.column("d")), r.column(column), 1)[0]) for r in records]


def steepest(x: np.ndarray) -> float:
    """How much a least-squares slope over x changes at most when one value changes by 1."""
    return float(np.abs(x - x.mean()).max() / np.sum((x - x.mean()) ** 2))


def figure(runs: Runs) -> Figure:
    from engram.show.memory_laws import bits_per_weight

    return bits_per_weight(runs)
