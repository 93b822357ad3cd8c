"""Noise at equal fullness: exponential memories and matrices, each filled to the same share of what it holds.

At equal width an exponential memory holds so much more that it is far from full where a matrix is (scaling.costs). Here
each holds N pairs at 99 % or half of them, and is asked by keys with noise of half their norm. With exponents d x·e the
own key is at d, the best of N others at √(2 d ln N): what holds at N = e^{d/2} clean holds at N = e^{d/2.5} with noise,
which adds ¼ to the variance of the others. In a matrix the margin shrinks by √1.25 only, whatever its size.

    engram run scaling.fullness --seeds 5
"""

from math import log10

from engram.claims import Figure, Labelled, Measure, Measures, Runs, Scale, Seeds, checks
from engram.records.files import Row
from engram.theory.memory_costs import SHARES

SOURCE = "talks, 'exponential memories'; to compare at equal fullness is our own"
CLAIMS = {
    "scaling.noise-when-full": "Filled to the same share of what they hold, exponential memories lose more to noise.",
}
MATRIX = {"smoke": 32, "quick": 128, "paper": 128}
WIDTHS = {"smoke": (4, 5), "quick": (6, 8), "paper": (6, 8)}  # of the exponential memories
DRAWS = {"smoke": 2, "quick": 20, "paper": 50}
WORDS = {1.0: "full", 0.5: "half full"}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """By kind and width."""
    kinds = [("linear", MATRIX[scale]), *(("exponential", d) for d in WIDTHS[scale])]
    return {(kind, d): checks("costs.fullness", seeds, DRAWS[scale], kind=kind, d=d) for kind, d in kinds}


def claims(runs: Runs) -> Measures:
    for d in WIDTHS[runs.scale]:
        pairs = list(zip(runs["exponential", d], runs["linear", MATRIX[runs.scale]], strict=True))
        for share in SHARES:
            name = f"d={d}, {WORDS[share]}: log10 of errors from noisy keys, over those of a matrix as full"
            ratios = [log10(error_at(a.rows, share) / error_at(b.rows, share)) for a, b in pairs]
            yield Measure.over_seeds(name, ratios, low=0, resolution=log10(2))  # one error more or less


def error_at(rows: list[Row], share: float) -> float:
    """At least one error of all that were asked, so that there is a ratio."""
    return next(max(row["error"], 1 / row["asked"]) for row in rows if row["share"] == share)


def figure(runs: Runs) -> Figure:
    from engram.show.read_anew import noise_when_full

    return noise_when_full(dict(runs))
