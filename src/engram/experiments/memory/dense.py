"""Steeper energies hold more: d^{n−1} patterns for F(t) = tⁿ, exponentially many for F = exp.

E(x) = −Σ_μ F(ξ_μ · x); a pattern counts as kept if one step of all bits leaves it (or brings it back) without error.
Powers: N at which 90 % of the patterns are kept, beside d^{n−1} / (2 (2n−3)!! ln d). Exponential: N at which in half of
the draws all patterns are kept, beside 2^{d/2}; with a share ρ of wrong bits at the start, beside exp(d I(1−2ρ)/2).

    engram run memory.dense --seeds 5
"""

from math import log, log2

import numpy as np

from engram.claims import Claimed, Figure, Labelled, Measure, Records, Runs, Scale, Seeds, checks
from engram.theory.hopfield import crossing, exponential_rate

SOURCE = "Krotov and Hopfield 2016; Demircigil et al. 2017, Theorem 3"
CLAIMS = {
    "memory.dense": "A memory with energy −Σ(ξ·x)ⁿ keeps N ∝ d^{n−1} / ln d patterns without error, n = 2, 3, 4.",
    "memory.exponential": "With −Σ exp(ξ·x), log2 N grows by 1/2 a dimension, by less when bits of the cue are wrong.",
}
POWERS: dict[Scale, dict[int, dict[int, int]]] = {  # n → d → draws
    "smoke": {2: {16: 4, 32: 4}, 3: {8: 4, 16: 4}, 4: {8: 4, 16: 2}},
    "quick": {
        2: {128: 100, 256: 100, 512: 100, 1024: 60},
        3: {32: 40, 64: 40, 128: 40, 256: 10},
        4: {32: 40, 64: 20, 128: 6},
    },
    "paper": {
        2: {256: 200, 512: 200, 1024: 200, 2048: 200},
        3: {64: 80, 128: 80, 256: 40, 512: 10},
        4: {32: 80, 64: 40, 128: 20, 160: 10},
    },
}
NOISE: dict[Scale, dict[int, tuple[int, ...]]] = {  # wrong bits in eight → d
    "smoke": {0: (6, 8), 1: (8, 16), 2: (16, 24)},
    "quick": {0: (12, 15, 18, 21, 24), 1: (16, 24, 32, 40), 2: (32, 48, 64, 80)},
    "paper": {0: (14, 17, 20, 23, 26), 1: (24, 32, 40, 48), 2: (48, 64, 80, 96)},
}
DRAWS = {"smoke": 4, "quick": 64, "paper": 64}
Capacity = dict[int, dict[int, list[float]]]  # degree, or wrong bits in eight → d → N of each seed


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """By the energy, its degree or the wrong bits in eight, and d."""
    powers = [(n, d, draws) for n, sizes in POWERS[scale].items() for d, draws in sizes.items()]
    noise = [(k, d, d * k // 8) for k, widths in NOISE[scale].items() for d in widths]
    return {
        **{("power", n, d): checks("hopfield.error_free", seeds, draws, n=n, d=d) for n, d, draws in powers},
        **{("exp", k, d): checks("hopfield.all_stable", seeds, DRAWS[scale], d=d, flips=f) for k, d, f in noise},
    }


def claims(runs: Runs) -> Claimed:
    powers, noise = capacities(runs)
    exponents = {n: slopes({log2(d): [N * log(d) for N in Ns] for d, Ns in by_d.items()}) for n, by_d in powers.items()}
    dense = [Measure.slope(f"n={n}: exponent of N ln d", v, n - 1.2, n - 0.8) for n, v in exponents.items()]
    yield "memory.dense", dense
    exponential = []
    for k in (0, 1):
        law, shared = exponential_rate(k / 8), max(set(noise[k]) & set(noise[k + 1]))
        drop = np.log2(np.divide(noise[k][shared], noise[k + 1][shared])).tolist()
        rate = slopes({float(d): Ns for d, Ns in noise[k].items()})
        exponential.append(Measure.slope(f"log2 N a dimension, {k}/8 wrong", rate, law - 0.1, law + 0.1))
        exponential.append(Measure.over_seeds(f"log2 N at d={shared}, {k}/8 minus {k + 1}/8 wrong", drop, low=0))
    yield "memory.exponential", exponential


def figure(runs: Runs) -> Figure:
    from engram.show.retrieval import capacity_curves

    return capacity_curves(*capacities(runs))


def capacities(runs: Runs) -> tuple[Capacity, Capacity]:
    """N of the powers by degree, and of exp by wrong bits in eight."""
    powers = {n: {d: kept(runs["power", n, d], 0.9) for d in sizes} for n, sizes in POWERS[runs.scale].items()}
    noise = {k: {d: kept(runs["exp", k, d], 0.5) for d in widths} for k, widths in NOISE[runs.scale].items()}
    return powers, noise


def kept(records: Records, level: float) -> list[float]:
    return [crossing(r.column("N").tolist(), r.column("stable").tolist(), level) for r in records]


def slopes(by_x: dict[float, list[float]]) -> list[float]:
    """For each seed the slope of log2 y over x."""
    return np.polyfit(list(by_x), np.log2(np.array(list(by_x.values()))), 1)[0].tolist()
