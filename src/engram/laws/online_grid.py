r"""The grid of optimisers: memories of Zipf data trained online, over widths, rates, batches and samples.

    d        10, 20, 50, 100, 200, 500, 1000        γ    0.1, 1, 10, 100
    batch    16, 64, 256, 1024                      n    1024, 10240, 102400

N = 100 tokens, M = 5 answers, α = 2. A training on 102,400 samples passes the other two on its way: the first samples
do not depend on how many follow, so that a cell has the law of a training of its own. With three models, two optimisers
and layer norm these are 4,032 cells, with ten seeds 40,320 trainings.

Beside them stand the errors that the authors of "Scaling laws for associative memories" published (VivienCabannes/
memory-theory, finer_dim): for a part of the cells the mean and the standard deviation over ten seeds.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import mean, stdev

from engram.errors import EngramError
from engram.learning.online import KINDS, Kind, Online, Optimiser, initial, train
from engram.reference import read_reference
from engram.tasks.zipf import Zipf
from engram.values import Rows, law

PUBLISHED = "grid/published_cells.csv"
THEIR_WORDS = {"matrix": "matrix", "learnable": "learned", "exponential": "exponential", "SGD": "SGD", "Adam": "sign"}
Cell = tuple[int, float, int, int]  # d, γ, batch, n
Way = tuple[str, str, bool]  # model, optimiser, layer norm


@dataclass(frozen=True)
class Cells:
    """The sizes that are combined."""

    widths: tuple[int, ...] = (10, 20, 50, 100, 200, 500, 1000)
    rates: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0)
    batches: tuple[int, ...] = (16, 64, 256, 1024)
    samples: tuple[int, ...] = (1024, 10240, 102400)

    def trainings(self) -> Iterator[tuple[int, int, float]]:
        """Width by width."""
        return ((d, batch, rate) for d in self.widths for batch in self.batches for rate in self.rates)


CELLS = {
    "smoke": Cells((10, 20), (1.0,), (64,), (256, 1024)),
    "quick": Cells((10, 100, 1000), batches=(16, 256, 1024), samples=(1024, 10240)),
    "all": Cells(),
}


@law("online.grid")
def grid(draws: int, seed: int, kind: str, optimiser: str, layernorm: bool, cells: str) -> Rows:
    """The error in every cell, for `draws` seeds; cells: smoke, quick or all."""
    for own in (seed + (draw << 32) for draw in range(draws)):
        yield from errors(way_of(kind, optimiser), layernorm, cells_named(cells), own)


@law("published.grid")
def beside_published(
    draws: int, seed: int, kind: str, optimiser: str, layernorm: bool, cells: str, sha256: str
) -> Rows:
    """The same; where a cell is published, `gap` is its published mean minus ours, and `off` our error minus the
    published mean in published standard deviations (where they are not 0).

    sha256    that of the published file
    """
    published = published_cells(read_reference(PUBLISHED, sha256)).get((kind, optimiser, layernorm), {})
    for row in grid(draws, seed, kind, optimiser, layernorm, cells):
        yield row | (compared(row["error"], *published[_cell(row)]) if _cell(row) in published else {})


@law("online.grid_stand_in")
def beside_stand_in(draws: int, seed: int, kind: str, optimiser: str, layernorm: bool, cells: str, other: int) -> Rows:
    """The same with ten seeds of ours, from `other` on, in the place of what is published."""
    runs = [errors(way_of(kind, optimiser), layernorm, cells_named(cells), other + i) for i in range(10)]
    others = {_cell(same[0]): [row["error"] for row in same] for same in zip(*runs, strict=True)}
    for row in grid(draws, seed, kind, optimiser, layernorm, cells):
        yield row | compared(row["error"], mean(others[_cell(row)]), stdev(others[_cell(row)]))


def _cell(row: Mapping[str, float]) -> Cell:
    return int(row["d"]), row["lr"], int(row["batch"]), int(row["n"])


def compared(error: float, published: float, deviation: float) -> dict[str, float]:
    return {"gap": published - error} | ({"off": (error - published) / deviation} if deviation else {})


def errors(way: tuple[Kind, Optimiser], layernorm: bool, cells: Cells, seed: int) -> Rows:
    (kind, optimiser), task, first = way, Zipf(), {}
    tokens = task.sample(max(cells.samples), seed)
    for d, batch, rate in cells.trainings():
        if not first or first["E"].shape[1] != d:
            first = initial(task, kind, d, seed)
        how = Online(kind=kind, optimiser=optimiser, layernorm=layernorm, d=d, lr=rate, batch=batch)
        found = task.error(train(how, task, first, tokens, cells.samples))
        for n, error in zip(cells.samples, found, strict=True):
            yield {"d": d, "lr": rate, "batch": batch, "n": n, "error": float(error)}


def cells_named(name: str) -> Cells:
    if name not in CELLS:
        raise EngramError(f"cells: {name!r} is none of {', '.join(CELLS)}")
    return CELLS[name]


def way_of(kind: str, optimiser: str) -> tuple[Kind, Optimiser]:
    how = Online(kind=kind, optimiser=optimiser)  # type: ignore[arg-type]  # it refuses others by name
    return how.kind, how.optimiser


def published_cells(content: bytes) -> dict[Way, dict[Cell, tuple[float, float]]]:
    """Mean and standard deviation by model, optimiser and layer norm, and by cell."""
    found: dict[Way, dict[Cell, tuple[float, float]]] = {}
    for row in csv.DictReader(content.decode().splitlines()):
        way = THEIR_WORDS[row["model"]], THEIR_WORDS[row["optimizer"]], row["layernorm"] == "True"
        cell = int(row["d"]), float(row["lr"]), int(row["batch_size"]), int(row["ntrain"])
        found.setdefault(way, {})[cell] = float(row["mean_error"]), float(row["std_error_over_seeds"])
    return found


WAYS: tuple[Way, ...] = tuple(
    (kind, optimiser, norm) for kind in KINDS for optimiser in ("SGD", "sign") for norm in (False, True)
)
