"""Experiments on storing and recall: gradients as memories, capacity, bounds, and memories of other shapes."""

from collections.abc import Iterable, Mapping, Sequence
from math import inf

import numpy as np

from engram.claims import Measure, Records, Rows, Seeds
from engram.claims.readings import means
from engram.specs import Search
from engram.tasks import Association
from engram.values import Value


def searches(model: Value, N: float, asked: int, seeds: Seeds, target: float = 0.99) -> list[Search]:
    """How many pairs a memory written by a formula holds, sought around N, with as many codebooks as `asked` needs."""
    task, bracket, draws = Association(), (max(2, round(N / 2)), round(2 * N)), max(4, round(asked / N))
    return [Search(task=task, model=model, target=target, bracket=bracket, draws=draws, seed=seed) for seed in seeds]


def exponent(rows: Rows, column: str, size: str) -> float:
    """The least-squares slope of log column in log size."""
    x, y = np.log([[row[size], row[column]] for row in rows]).T
    return float(np.polyfit(x, y, 1)[0])


def worst(runs: Sequence[Rows], column: str) -> float:
    """The value with the largest magnitude over all rows of all runs."""
    return max((row[column] for rows in runs for row in rows), key=abs)


def mean(name: str, records: Records, column: str, low: float = -inf, high: float = inf) -> Measure:
    """The mean of a column, over seeds."""
    return Measure.over_seeds(name, means(records, column), low, high)


def geometric_means(by_size: Iterable[Sequence[float]]) -> list[float]:
    """For each seed the geometric mean over sizes."""
    return np.exp(np.log(list(by_size)).mean(axis=0)).tolist()


def collapse(name: str, constants: Mapping[str, Sequence[float]], within: float) -> list[Measure]:
    """Whether a constant is the same for all shapes: for each, its values over seeds divided by the geometric mean."""
    means = geometric_means(constants.values())
    ratios = {f"{name} at {shape}, over the mean": np.divide(values, means) for shape, values in constants.items()}
    return [Measure.over_seeds(at, found.tolist(), 1 - within, 1 + within) for at, found in ratios.items()]
