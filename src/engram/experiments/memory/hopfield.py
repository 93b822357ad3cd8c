"""Hopfield's memory keeps patterns up to about 0.138 d, and forgets them all at once beyond.

W = Σ_μ ξ_μ ξ_μᵀ with zero diagonal. From a stored pattern, bits are updated one after the other until none moves
(asynchronous dynamics); what remains is the overlap ξ · x / d. Without any wrong bit a given pattern survives only to
d / (2 ln d): a bit is wrong with probability p = Q(√((d−1)/(N−1))), a pattern without error with (1 − p)^d.

    engram run memory.hopfield --seeds 5
"""

from collections.abc import Sequence
from itertools import pairwise
from math import log, nan

from engram.claims import Figure, Labelled, Measure, Measures, Runs, Scale, Seeds, checks
from engram.experiments.memory import mean, means

SOURCE = "Hopfield 1982; Amit, Gutfreund and Sompolinsky 1985; McEliece et al. 1987"
CLAIMS = {
    "memory.hopfield": "Patterns are attractors up to N = 0.138 d, without error up to d/(2 ln d); energy never rises.",
}
WHY = {
    "memory.hopfield": (
        "0.138 is the limit of large d. At d = 1000 the overlap falls half way at about 0.17 d, and at d = 250 at "
        "0.21 d: small networks hold on longer, and the crossing moves down as d grows. Control: in the same runs "
        "patterns are attractors at 0.12 d and lost at 0.18 d, and the patterns without error follow d/(2 ln d)."
    ),
}
D = {"smoke": 100, "quick": 1000, "paper": 2000}
DRAWS = {"smoke": 1, "quick": 1, "paper": 2}
PERCENT = {"smoke": (12, 18), "quick": (6, 9, 11, 12, 13, 14, 15, 16, 18, 20), "paper": (6, 9, *range(11, 21))}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """The overlaps by 100 N/d."""
    d, draws = D[scale], DRAWS[scale]
    curve = {("overlap", p): checks("hopfield.retrieval", seeds, draws, d=d, N=d * p // 100) for p in PERCENT[scale]}
    return curve | {
        "no error": checks("hopfield.stability", seeds, 40 * draws, d=d, N=round(d / (2 * log(d)))),
        "energy": checks("hopfield.descent", seeds, draws, d=d, N=round(0.12 * d)),
    }


def claims(runs: Runs) -> Measures:
    loads = [p for p in PERCENT[runs.scale] if p > 10]
    crossings = _crossings(runs, loads)
    yield Measure.over_seeds("N/d at which the overlap is half way down to 0.35", crossings, 0.13, 0.15)
    yield mean("overlap at N = 0.12 d", runs["overlap", 12], "overlap", low=0.97)
    yield mean("overlap at N = 0.18 d", runs["overlap", 18], "overlap", high=0.8)
    yield mean("share of patterns without error at N = d/(2 ln d)", runs["no error"], "stable", 0.85, 0.95)
    rises = [max(0.0, float(r.column("rise").max())) for r in runs["energy"]]
    yield Measure.worst("largest rise of the energy", rises, tolerance=1e-9)


def _crossings(runs: Runs, loads: Sequence[int]) -> list[float]:
    """Where the overlap of each seed crosses the middle between that of an attractor at 0.138 d and that of a glass."""
    curves = zip(*(means(runs["overlap", p], "overlap") for p in loads), strict=True)
    return [_crossing(loads, curve) for curve in curves]


def _crossing(loads: Sequence[int], overlaps: Sequence[float]) -> float:
    middle = (0.967 + 0.35) / 2
    for (p, high), (q, low) in pairwise(zip(loads, overlaps, strict=True)):
        if high > middle >= low:
            return (p + (q - p) * (high - middle) / (high - low)) / 100
    return nan


def figure(runs: Runs) -> Figure:
    from engram.show.retrieval import overlap_curve

    overlaps = {percent: means(runs["overlap", percent], "overlap") for percent in PERCENT[runs.scale]}
    return overlap_curve(overlaps, runs["energy"][0].check.sizes["d"])
