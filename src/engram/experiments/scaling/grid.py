"""The grid of optimisers: 4,032 cells of three models and two optimisers, with and without layer norm.

Ten seeds of every cell, as published: N=100 Zipf tokens with α=2, M=5 answers, every sample seen once. A cell is a
width d, a rate γ, a batch and a number n of samples (engram.laws.online_grid). The published grid is read from the
folder that ENGRAM_REFERENCE names, which has 2,631 of the cells; without it the committed records still decide. `quick`
has d = 10, 100, 1000, batches of 16, 256, 1024 and n = 1024, 10240.

    engram run scaling.grid --scale paper --seeds 10000-10009
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import copysign, inf, isnan, log, nan, sqrt
from typing import Any

import numpy as np

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds
from engram.laws.online_grid import CELLS, WAYS, Cell, Cells, Way
from engram.records.files import Row
from engram.specs import Check

SOURCE = "Cabannes, Dohmatob and Bietti 2024, section 5, and its published grid (VivienCabannes/memory-theory)"
CLAIMS = {
    "scaling.grid": "The published errors of the grid are those of our trainings.",
    "scaling.adam-helps": "Sign descent beats SGD at batch 1024 and γ = 1 (matrix, n = 10,240), at every width.",
    "scaling.layernorm": "Layer norm helps at a small fixed rate and costs where rates are tuned (matrix, n = 10,240).",
    "scaling.learned-embeddings": "Learned embeddings beat a matrix on fixed ones, most at small d (SGD, γ = 1, "
    "B = 16, n = 10,240).",
}
SEEDS = {"quick": 10, "paper": 10}
SHA256 = "be4a4611b26ffef813ebc8e5d8a98927ef2508697a9da064c36991bd7fb481b4"  # of grid/published_cells.csv
ERRORS = 2.0  # combined standard errors within which a published mean must lie
SMALLEST = 1e-4  # errors below are a few tokens of the tail: their logarithms say nothing
TINY = 1e-6  # what an error of 0 counts as in a ratio: less than the rarest token has
ROUNDED = 2e-6  # published numbers have six digits
PUBLISHED_SEEDS = 10
KINDS_COUNTED = "kinds of training"  # what n counts: models × optimisers × layer norm
NAMES = {"smoke": "smoke", "quick": "quick", "paper": "all"}  # of the cells


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """By model, optimiser and layer norm. At smoke scale other seeds of ours take the place of what is published."""
    smoke = scale == "smoke"
    law, beside = ("online.grid_stand_in", {"other": 990}) if smoke else ("published.grid", {"sha256": SHA256})
    return {way: [Check(law=law, sizes=_sizes(way, scale) | beside, seed=seed) for seed in seeds] for way in WAYS}


def _sizes(way: Way, scale: Scale) -> dict[str, Any]:
    return dict(zip(("kind", "optimiser", "layernorm"), way, strict=True)) | {"cells": NAMES[scale]}


@dataclass(frozen=True)
class Compared:
    """A cell: our error by seed, and where it is published the mean and standard deviation over ten seeds."""

    ours: tuple[float, ...]
    mean: float = nan
    deviation: float = nan

    @property
    def is_published(self) -> bool:
        return not isnan(self.mean)

    @property
    def z(self) -> float:
        """The published mean minus ours, in combined standard errors; without any spread 0 or infinite."""
        spread = np.std(self.ours, ddof=1) if len(self.ours) > 1 else nan
        error = sqrt(spread**2 / len(self.ours) + self.deviation**2 / PUBLISHED_SEEDS)
        gap = self.mean - float(np.mean(self.ours))
        if abs(gap) < ROUNDED * max(self.mean, ROUNDED):
            return 0.0
        return gap / error if error else copysign(inf, gap)


Grid = dict[Way, dict[Cell, Compared]]


def grid(runs: Runs) -> Grid:
    """Every cell, by model, optimiser and layer norm."""
    return {way: dict(_cells(records)) for way, records in runs.items()}


def _cells(records: Records) -> Iterator[tuple[Cell, Compared]]:
    for same in zip(*(record.rows for record in records), strict=True):
        row = same[0]
        ours = tuple(one["error"] for one in same)
        published = (row["error"] + row["gap"], _deviation(same)) if "gap" in row else (nan, nan)
        yield (int(row["d"]), float(row["lr"]), int(row["batch"]), int(row["n"])), Compared(ours, *published)


def _deviation(same: Sequence[Row]) -> float:
    """The published one, from the seed that is farthest from the published mean."""
    row = max(same, key=lambda one: abs(one["gap"]))
    return abs(row["gap"] / row["off"]) if row.get("off") else 0.0


def claims(runs: Runs) -> Claimed:
    found, cells = grid(runs), CELLS[NAMES[runs.scale]]
    n = sorted(cells.samples)[min(1, len(cells.samples) - 1)]
    large, small = max(cells.batches), min(cells.batches)
    yield "scaling.grid", [*_agreement(found)]
    yield "scaling.adam-helps", [_sign_over_sgd(found, d, large, n) for d in cells.widths]
    yield "scaling.layernorm", [_norm_at(found, cells, large, n), _norm_tuned(found, cells, n)]
    yield "scaling.learned-embeddings", [*_learned_over_matrix(found, cells, small, n)]


def _agreement(found: Grid) -> Measures:
    """Cells share seeds and data, so that they are a little less than independent."""
    z = [[cell.z for cell in cells.values() if cell.is_published] for cells in found.values()]
    within = f"share of published cells within {ERRORS:g} combined standard errors"
    hits, of = [sum(abs(one) <= ERRORS for one in same) for same in z], [len(same) for same in z]
    yield Measure.share(within, hits, of, low=0.92, independent=True).noted(counts=KINDS_COUNTED)
    yield Measure.over_seeds("correlation of log errors over cells", [*map(_correlation, _by_seed(found))], low=0.9)
    hits, of = zip(*(signs for signs in map(_signs, _pairs(found)) if signs[1]), strict=True)
    name = "share of published differences (> 2 errors) that have our sign: layer norm, optimiser, model"
    yield Measure.share(name, hits, of, low=0.95, independent=True).noted(counts="pairs of kinds")


def _by_seed(found: Grid) -> Iterator[list[tuple[float, float]]]:
    """For each seed (our error, published mean) of the cells where both are more than a few rare tokens."""
    cells = [cell for same in found.values() for cell in same.values() if cell.mean > SMALLEST]
    for seed in range(len(cells[0].ours) if cells else 0):
        yield [(cell.ours[seed], cell.mean) for cell in cells if cell.ours[seed] > SMALLEST]


def _correlation(pairs: list[tuple[float, float]]) -> float:
    return float(np.corrcoef(np.log(pairs).T)[0, 1])


def _signs(pairs: Sequence[tuple[Compared, Compared]]) -> tuple[int, int]:
    """How many of the comparisons that the published grid decides come out alike in ours."""
    decided = [(one, other) for one, other in pairs if abs(_published_difference(one, other)) > ERRORS]
    alike = [np.mean(a.ours) - np.mean(b.ours) for a, b in decided], [a.mean - b.mean for a, b in decided]
    return sum(bool(x * y > 0) for x, y in zip(*alike, strict=True)), len(decided)


def _pairs(found: Grid) -> Iterator[list[tuple[Compared, Compared]]]:
    """For all kinds that differ in layer norm, in the optimiser or in the model alone, the cells published of both."""
    for one, other in combinations(found, 2):
        if sum(a != b for a, b in zip(one, other, strict=True)) == 1:
            both = [(cell, found[other][at]) for at, cell in found[one].items()]
            yield [(a, b) for a, b in both if a.is_published and b.is_published]


def _published_difference(one: Compared, other: Compared) -> float:
    error = sqrt((one.deviation**2 + other.deviation**2) / PUBLISHED_SEEDS)
    return (one.mean - other.mean) / error if error else 0.0


def _log_ratio(above: Compared, below: Compared) -> list[float]:
    return [log(max(a, TINY) / max(b, TINY)) for a, b in zip(above.ours, below.ours, strict=True)]


def _sign_over_sgd(found: Grid, d: int, batch: int, n: int) -> Measure:
    sign, sgd = (found["matrix", optimiser, False][d, 1.0, batch, n] for optimiser in ("sign", "SGD"))
    return Measure.over_seeds(f"d = {d}: log of the error of signs over that of SGD", _log_ratio(sign, sgd), high=0)


def _norm_at(found: Grid, cells: Cells, batch: int, n: int) -> Measure:
    """At γ = 1 and the largest batch, signs."""
    ways = [found["matrix", "sign", norm] for norm in (True, False)]
    ratios = [_log_ratio(*(way[d, 1.0, batch, n] for way in ways)) for d in cells.widths]
    name = "γ = 1, largest batch, signs: log of the error with layer norm over without, mean over d"
    return Measure.over_seeds(name, np.mean(ratios, axis=0).tolist(), high=0)


def _norm_tuned(found: Grid, cells: Cells, n: int) -> Measure:
    """The best rate for each seed, width, batch and optimiser, with and without."""

    def tuned(optimiser: str, norm: bool, d: int, batch: int) -> np.ndarray:
        return np.min([found["matrix", optimiser, norm][d, lr, batch, n].ours for lr in cells.rates], axis=0)

    places = list(product(("SGD", "sign"), cells.widths, cells.batches))
    costs = [tuned(optimiser, True, d, batch) - tuned(optimiser, False, d, batch) for optimiser, d, batch in places]
    name = "best rate: error with layer norm minus without, mean over optimisers, d and batches"
    return Measure.over_seeds(name, np.mean(costs, axis=0).tolist(), low=0)


def _learned_over_matrix(found: Grid, cells: Cells, batch: int, n: int) -> Measures:
    learned, matrix = (found[kind, "SGD", False] for kind in ("learned", "matrix"))
    ratios = np.array([_log_ratio(learned[d, 1.0, batch, n], matrix[d, 1.0, batch, n]) for d in cells.widths])
    yield Measure.over_seeds(
        "log of the error of learned over fixed, mean over d", ratios.mean(axis=0).tolist(), high=-1
    )
    slopes = np.polyfit(np.log(cells.widths), ratios, 1)[0]
    yield Measure.slope("its slope in ln d", slopes.tolist(), low=0)


def table(runs: Runs) -> list[dict[str, Any]]:
    """Agreement by model, optimiser and layer norm."""
    return [_row(way, [cell.z for cell in cells.values() if cell.is_published]) for way, cells in grid(runs).items()]


def _row(way: Way, z: Sequence[float]) -> dict[str, Any]:
    about = {"model": way[0], "optimiser": way[1], "layer norm": "yes" if way[2] else "no", "published cells": len(z)}
    if not z:
        return about
    share, median = np.mean(np.abs(z) <= ERRORS), np.median(np.abs(z))
    return about | {"within 2 errors": round(float(share), 3), "median |z|": round(float(median), 2)}


def worst_cells(found: Grid, count: int = 20) -> list[tuple[Way, Cell, Compared]]:
    """The published cells that are farthest from ours."""
    cells = [(way, at, cell) for way, same in found.items() for at, cell in same.items() if cell.is_published]
    return sorted(cells, key=lambda one: -abs(one[2].z))[:count]


def figure(runs: Runs) -> Figure:
    from engram.show.grid import small_multiples

    cells = CELLS[NAMES[runs.scale]]
    n = sorted(cells.samples)[min(1, len(cells.samples) - 1)]
    batch = sorted(cells.batches)[len(cells.batches) // 3]
    found = {
        way: {(at[0], at[1]): (cell.ours, cell.mean) for at, cell in same.items() if at[2:] == (batch, n)}
        for way, same in grid(runs).items()
    }
    return small_multiples(found, cells.widths, cells.rates, f"batch {batch}, n = {n:,}")
