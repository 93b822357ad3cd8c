"""Samples and width together: the ⌊d/12⌋ tokens that were seen most often are stored with q = 1.

The published setting: N = 1000, M = 5, α = 2, n from 10 to 10,000 samples, d from 10 to 1000; 100 trials, which are 5
seeds of 20 here at quick scale, and those of one seed at paper scale. At d = 10 nothing is stored. Where the width
suffices, d ≫ N, storing all that was seen is best.

    engram run scaling.joint --seeds 5
"""

from typing import Any

import numpy as np

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds, checks
from engram.claims.readings import means

TIMES = "quick 1 s a seed, paper 20 s a seed (estimated) on 2 cores"

SOURCE = "Cabannes, Dohmatob and Bietti 2024, figure of error against n and d and its published code"
CLAIMS = {
    "scaling.joint": "With n samples and width d the errors are the published ones, within 15 % (N = 1000, α = 2).",
    "scaling.seen": "Where d ≫ N, storing all that was seen is best, and as good as an infinite memory (d = 10 N).",
}
PUBLISHED = {
    (10, 50): 0.19,
    (10, 100): 0.19,
    (10, 200): 0.19,
    (10, 1000): 0.19,
    (100, 1000): 0.057,
    (1000, 1000): 0.017,
    (10_000, 1000): 0.0075,
}  # read off the figure, by n and d
OTHERS = ("counts", "root of counts", "seen twice")
DRAWS = {"smoke": 2, "quick": 20, "paper": 100}
SMOKE: dict[str, Any] = {"N": 60}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    less = SMOKE if scale == "smoke" else {}
    return {
        "joint": checks("zipf.joint", seeds, DRAWS[scale], **less),
        "seen": checks("zipf.seen", seeds, 5 * DRAWS[scale], d=100 if less else 1000, n=100 if less else 1000),
    }


def claims(runs: Runs) -> Claimed:
    yield "scaling.joint", [*against_published(runs["joint"])]
    yield "scaling.seen", [*seen_is_best(runs["seen"])]


def against_published(records: Records) -> Measures:
    found = [cells(record.rows) for record in records]
    for (n, d), error in PUBLISHED.items():
        ratios = [of_seed[n, d] / error for of_seed in found]
        yield Measure.over_seeds(f"n = {n}, d = {d}: error over {error}", ratios, 0.85, 1.15)


def cells(rows: list[dict[str, float]]) -> dict[tuple[float, float], float]:
    return {(row["n"], row["d"]): row["error"] for row in rows}


def seen_is_best(records: Records) -> Measures:
    seen = means(records, "seen")
    for other in OTHERS:
        yield Measure.difference(f"error of “{other}” minus that of “seen”", means(records, other), seen)
    ratios = np.divide(seen, means(records, "infinite")).tolist()
    yield Measure.over_seeds("error of “seen” over that of an infinite memory", ratios, 0.9, 1.1)


def figure(runs: Runs) -> Figure:
    from engram.show.storage_schemes import joint_figure

    found = [cells(record.rows) for record in runs["joint"]]
    by_cell = {cell: [of_seed[cell] for of_seed in found] for cell in found[0]}
    schemes = {name: means(runs["seen"], name) for name in ("infinite", "seen", *OTHERS)}
    return joint_figure(by_cell, PUBLISHED, schemes)
