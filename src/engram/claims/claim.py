"""Claim: one sentence of a paper made checkable, and the one function that decides it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isnan
from typing import Literal

import numpy as np

Verdict = Literal["agrees", "disagrees", "inconclusive"]
Interval = tuple[float, float]
Values = Sequence[float]  # one for each seed


@dataclass(frozen=True)
class Measure:
    """A measured number with its 95 % interval, and the open band (low, high) that it must lie in.

    n            number of seeds
    exact_law    the number does not vary with the seed
    """

    name: str
    low: float
    high: float
    measured: float
    interval: Interval
    n: int
    exact_law: bool = False

    @classmethod
    def over_seeds(cls, name: str, values: Values, low: float = -inf, high: float = inf) -> "Measure":
        """The mean over seeds with its t interval; a single seed has no interval."""
        return cls(name, low, high, float(np.mean(values)), t_interval(values), len(values))

    @classmethod
    def difference(cls, name: str, values: Values, minus: Values, low: float = 0, high: float = inf) -> "Measure":
        """The mean over seeds of one number minus another; unless a band is given it must be positive."""
        return cls.over_seeds(name, [a - b for a, b in zip(values, minus, strict=True)], low, high)

    @classmethod
    def exact(cls, name: str, error: float, tolerance: float) -> "Measure":
        """The error of an exact law, which must lie within ± tolerance; it is its own interval."""
        return cls(name, -tolerance, tolerance, error, (error, error), 1, exact_law=True)

    @property
    def verdict(self) -> Verdict:
        return decide((self.low, self.high), self.interval)


@dataclass(frozen=True)
class Claim:
    """A sentence, its source, and the measures that must all lie in their bands."""

    id: str
    statement: str
    source: str
    measures: tuple[Measure, ...]

    @property
    def deciding(self) -> Measure:
        """The measure that decides the verdict: the worst, or the first of equals."""
        order: list[Verdict] = ["disagrees", "inconclusive", "agrees"]
        return min(self.measures, key=lambda measure: order.index(measure.verdict))

    @property
    def verdict(self) -> Verdict:
        return self.deciding.verdict

    @property
    def n(self) -> int:
        """The smallest number of seeds of any measure that varies with the seed; 1 if none does."""
        return min((measure.n for measure in self.measures if not measure.exact_law), default=1)

    def has_seeds(self, least: int) -> bool:
        """Whether every measure that varies with the seed has enough of them."""
        return all(measure.exact_law or measure.n >= least for measure in self.measures)


def decide(band: Interval, interval: Interval) -> Verdict:
    """agrees: the interval is inside the open band; disagrees: outside it; inconclusive: across an edge, or unknown."""
    (low, high), (a, b) = band, interval
    if isnan(a) or isnan(b):
        return "inconclusive"
    if low < a and b < high:
        return "agrees"
    return "disagrees" if b <= low or a >= high else "inconclusive"


def t_interval(values: Values, level: float = 0.95) -> Interval:
    """mean ± t s/√n, the interval of the t distribution; unbounded for n = 1."""
    if len(values) < 2:
        return (-inf, inf)
    from scipy.stats import t  # slow to import, and needed only here

    mean, error = np.mean(values), np.std(values, ddof=1) / np.sqrt(len(values))
    half = t.ppf((1 + level) / 2, len(values) - 1) * error
    return (float(mean - half), float(mean + half))
