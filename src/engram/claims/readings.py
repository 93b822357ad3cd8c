"""Numbers read off the rows of a record: births, late means, capacities."""

from collections.abc import Callable, Mapping, Sequence
from math import log1p, nan, sqrt
from statistics import mean
from typing import Any

import numpy as np

from engram.errors import EngramError
from engram.records.record import Record


def birth(record: Record, column: str, level: float = 0.5) -> int | None:
    """The first step at which a memory's recall is above the level; None if it never is."""
    return record.birth(column, level)


def birth_step(record: Record, column: str, level: float = 0.5, never: float = nan) -> float:
    """The same as a number for ratios: at least 1, and `never` if the recall is never above the level."""
    step = birth(record, column, level)
    return never if step is None else max(1, step)


def unborn(records: Sequence[Record], column: str, level: float = 0.5) -> int:
    """In how many records the recall is never above the level."""
    return sum(birth(record, column, level) is None for record in records)


def reached(record: Record, column: str, level: float, width: int = 10) -> float:
    """The first step, at least 1, at which the mean over the last `width` values is above the level; NaN if never."""
    steps, values = record.curve(column)
    return _first(steps, _running_mean(values, width) > level)


def fallen(record: Record, column: str, share: float, floor: float, width: int = 10) -> float:
    """The first step, at least 1, at which a column has made a share of its way down to the floor; NaN if never."""
    steps, values = record.curve(column)
    return _first(steps, _running_mean(values, width) < values[0] - share * (values[0] - floor))


def highest(record: Record, column: str, until: int, width: int = 30) -> float:
    """The largest mean over `width` values up to and including a step."""
    steps, values = record.curve(column)
    return float(_running_mean(values[steps <= until], width).max())


def _running_mean(values: np.ndarray, width: int) -> np.ndarray:
    """Mean over the last `width` values, over fewer at the beginning."""
    total = np.cumsum(values)
    before = np.concatenate([np.zeros(min(width, len(values))), total[:-width]])
    return (total - before) / np.minimum(np.arange(1, len(values) + 1), width)


def _first(steps: np.ndarray, there: np.ndarray) -> float:
    return max(1.0, float(steps[there][0])) if there.any() else nan


def mean_between(record: Record, column: str, begin: float, end: float) -> float:
    """Mean over the measured steps between two shares of the training."""
    steps, values = record.curve(column)
    inside = (steps >= begin * record.train.steps) & (steps <= end * record.train.steps)
    return float(values[inside].mean())


def value_at(record: Record, column: str, step: int) -> float:
    """The last value measured up to and including a step."""
    steps, values = record.curve(column)
    return float(values[steps <= step][-1])


def late_mean(record: Record, column: str, step: int, width: int = 30) -> float:
    """Mean over the last `width` steps up to and including `step`, which must have been measured."""
    steps, values = record.curve(column)
    if step not in steps:
        raise EngramError(
            f"record {record.id} has no {column} at step {step}; finish it: engram runs resume {record.id}"
        )
    return float(values[(steps > step - width) & (steps <= step)].mean())


def means(records: Sequence[Record], column: str) -> list[float]:
    """The mean of a column over its rows, for each record."""
    return [float(record.column(column).mean()) for record in records]


def mean_difference(record: Record, column: str, minus: str, from_step: int) -> float:
    """Mean of column − minus over the measured steps from `from_step` on."""
    steps, values = record.curve(column)
    return float(np.mean((values - record.curve(minus)[1])[steps >= from_step]))


def one_step(*steps: Sequence[float]) -> float:
    """How much one step changes the log of any of these numbers of steps at most: the resolution of their ratios."""
    return log1p(1 / min((step for same in steps for step in same if step >= 1), default=1))


def worst_by_seed(records: Sequence[Record], column: str) -> list[float]:
    """For each seed the value with the largest magnitude over all rows of all its records."""
    found: dict[int, list[float]] = {}
    for record in records:
        found.setdefault(record.spec.seed, []).extend(record.column(column).tolist())
    return [max(found[seed], key=abs) for seed in sorted(found)]


def counted(shares: Sequence[float], out_of: int | Sequence[int]) -> list[int]:
    """How many of `out_of` trials each share stands for; one that is no share of so many is an error."""
    trials = [out_of] * len(shares) if isinstance(out_of, int) else out_of
    hits = [round(share * m) for share, m in zip(shares, trials, strict=True)]
    wrong = [(s, m) for s, h, m in zip(shares, hits, trials, strict=True) if not abs(s * m - h) < 0.01]
    if wrong:
        raise EngramError(f"{wrong[0][0]!r} is no share of {wrong[0][1]} trials")
    return hits


def least_share(shares: Mapping[str, float], out_of: Mapping[str, int]) -> tuple[int, int]:
    """Hits and trials of the smallest share; of equal ones that with the fewest trials, which shows least."""
    name = min(shares, key=lambda one: (shares[one], out_of[one]))
    return counted([shares[name]], out_of[name])[0], out_of[name]


def capacity(record: Record) -> float:
    """The size at which a Search crosses its target, between the largest size that passed and the smallest that failed;
    where accuracy rises with the size, between the largest that failed and the smallest that passed.

    Averages over many codebooks are interpolated; votes are not, and then it is the geometric mean of the two.
    """
    spec, (lo, hi) = record.search, turn(record)
    if spec.draws == 1:
        return sqrt(lo * hi)
    above, below = (mean(row["accuracy"] for row in record.rows if row["n"] == n) for n in (lo, hi))
    return lo + (hi - lo) * (above - spec.target) / (above - below)


def turn(record: Record) -> tuple[int, int]:
    """The last size of a Search before it turns, and the first behind it."""
    spec, accuracies = record.search, dict[int, list[float]]()
    for row in record.rows:
        accuracies.setdefault(row["n"], []).append(row["accuracy"])
    won = {n: spec.passed(found) != spec.rises for n, found in accuracies.items()}
    lo = max(n for n, passed in won.items() if passed)
    return lo, min(n for n, passed in won.items() if not passed and n > lo)


def capacities(
    records: Sequence[Record], size: Callable[[Any], float] = lambda model: model.d
) -> dict[float, list[float]]:
    """Capacities over seeds, by a size of the memory (its width unless said otherwise)."""
    found: dict[float, list[float]] = {}
    for record in records:
        found.setdefault(size(record.store), []).append(capacity(record))
    return dict(sorted(found.items()))
