"""How few bits a weight needs: log2 d by the worst case, a few in fact, one when the memory is not full.

Hebbian matrices with N = 0.015 d² and 0.020 d² pairs (sphere, one value per key; 0.027 d² is their capacity) are
rounded to evenly spaced values from −max|W| to max|W|. In the worst case rounding moves a margin by max|W|/(L−1) times
‖u_y − u_y'‖₁ ‖e_z‖₁, of order d √ln d / L: L ~ d √ln d levels, log2 d bits up to constants, move no margin by more
than 1/2, half of its mean. Rounding errors of random pairs average out, so that far fewer bits keep 99 % recall.

    engram run memory.quantised --seeds 5
"""

import numpy as np

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds, checks

TIMES = "quick 5 s a seed, paper 1 min a seed on 2 cores"

SOURCE = "Understanding factual recall in transformers, appendix on bounded bit complexity; worst case derived here"
CLAIMS = {
    "memory.quantised": "O(log d) bits per weight keep 99 % recall: the worst-case bits grow like log2 d.",
    "memory.bits-to-spare": "Up to d = 256 three bits suffice, fewer than the worst case asks for.",
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
    yield "memory.quantised", [measure for load in loads for measure in _like_a_logarithm(*load)]
    yield "memory.bits-to-spare", [measure for load in loads for measure in _to_spare(*load)]


def _like_a_logarithm(at: str, records: Records) -> Measures:
    """A slope in log2 d that is one, and does not grow with d as that of a power of d does."""
    yield Measure.slope(f"{at}: slope of worst-case bits in log2 d", slopes(records, "certified"), low=0.8, high=1.2)
    narrow, wide = (slopes(records, "certified", half) for half in (slice(None, 4), slice(-4, None)))
    name = f"{at}: slope of worst-case bits at the four largest d minus that at the four smallest"
    yield Measure.difference(name, wide, narrow, low=-0.3, high=0.3)


def _to_spare(at: str, records: Records) -> Measures:
    most = [float(r.column("sufficient").max()) for r in records]
    yield Measure.over_seeds(f"{at}: most sufficient bits at any d", most, high=3.2, resolution=BIT / 2)
    spare = [float((r.column("certified") - r.column("sufficient")).min()) for r in records]
    yield Measure.over_seeds(f"{at}: worst-case minus sufficient bits, least over d", spare, low=0)


def slopes(records: Records, column: str, part: slice = slice(None)) -> list[float]:
    """Slope of bits in log2 d, for each seed."""
    return [float(np.polyfit(np.log2(r.column("d")[part]), r.column(column)[part], 1)[0]) for r in records]


def figure(runs: Runs) -> Figure:
    from engram.show.memory_laws import bits_per_weight

    return bits_per_weight(runs)
