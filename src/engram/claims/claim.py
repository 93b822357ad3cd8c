"""Claim: one sentence of a paper made checkable, and the one function that decides it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, isnan, nan
from typing import Literal

import numpy as np

from engram.claims.intervals import BetaBinomial, Binomial, Estimate, Interval, Student, Values, Worst
from engram.display import Displayed

Verdict = Literal["agrees", "disagrees", "inconclusive"]
Sign = Literal["≥", "≤"]


@dataclass(frozen=True)
class Measure:
    """A measured number with its 95 % interval, and the open band (low, high) that it must lie in.

    n            number of seeds, or of what `estimate.counts` says
    method       how the interval was made
    values       the numbers of the seeds
    exact_law    the number does not vary with the seed
    """

    name: str
    low: float
    high: float
    estimate: Estimate

    @classmethod
    def over_seeds(
        cls, name: str, values: Values, low: float = -inf, high: float = inf, resolution: float = 0.0
    ) -> "Measure":
        """The mean over seeds with its t interval; a single seed has no interval.

        Seeds that all say the same have the resolution of the number (the step between two values that it can take) as
        half width, and no interval if it is not given: what is called exact says so.
        """
        return cls(name, low, high, Student(_floats(values), resolution=resolution))

    @classmethod
    def difference(
        cls, name: str, values: Values, minus: Values, low: float = 0, high: float = inf, resolution: float = 0.0
    ) -> "Measure":
        """The mean over seeds of one number minus another; unless a band is given it must be positive."""
        return cls.over_seeds(name, [a - b for a, b in zip(values, minus, strict=True)], low, high, resolution)

    @classmethod
    def over_datasets(cls, name: str, values: Sequence[Values], low: float = -inf, high: float = inf) -> "Measure":
        """The mean over datasets, each with the values of its seeds: these are averaged first, so n counts datasets."""
        means = _floats([float(np.mean(of_one)) for of_one in values])
        return cls(name, low, high, Student(means, method="t over datasets", counts="datasets"))

    @classmethod
    def slope(
        cls, name: str, slopes: Values, low: float = -inf, high: float = inf, resolution: float = 0.0
    ) -> "Measure":
        """The mean of the slopes that each seed has by itself (engram.claims.fits), with its t interval."""
        return cls(name, low, high, Student(_floats(slopes), resolution=resolution, method="slopes per seed"))

    @classmethod
    def share(
        cls,
        name: str,
        hits: Sequence[int],
        out_of: int | Sequence[int],
        low: float = -inf,
        high: float = inf,
        independent: bool = False,
    ) -> "Measure":
        """The share of trials that are hits, from the counts of each seed, with a beta-binomial interval.

        With independent trials, which share nothing within a seed, the interval is the exact binomial one.
        """
        trials = (out_of,) * len(hits) if isinstance(out_of, int) else tuple(out_of)
        return cls(name, low, high, (Binomial if independent else BetaBinomial).of(hits, trials))

    @classmethod
    def worst(cls, name: str, errors: Values, tolerance: float) -> "Measure":
        """The largest error of any seed, which must lie within ± tolerance. It is no interval."""
        return cls(name, -tolerance, tolerance, Worst(_floats(errors)))

    @classmethod
    def exact(cls, name: str, error: float, tolerance: float) -> "Measure":
        """The error of an exact law, which must lie within ± tolerance; it is its own interval."""
        return cls.known(name, error, -tolerance, tolerance)

    @classmethod
    def known(cls, name: str, value: float, low: float = -inf, high: float = inf) -> "Measure":
        """A number that was computed and does not vary with the seed, with a band of its own."""
        return cls(name, low, high, Estimate((float(value),)))

    def noted(self, note: str = "", counts: str = "seeds") -> "Measure":
        """The same with what a reader must know besides, and with what n counts."""
        return replace(self, estimate=replace(self.estimate, note=note, counts=counts))

    def bounded(self, sign: Sign, seeds: int) -> "Measure":
        """The same, saying that so many of its seeds enter with a bound: what they wait for is not there at the end.

        It changes no number: the last step of the run stands for the birth of a memory that is not born. Bounded from
        both sides it is no bound, and only the note says so; where every seed is, nothing was measured.
        """
        if not seeds or isnan(self.measured):
            return self
        who = "the seed" if self.n == 1 else f"{seeds} of {self.n} seeds"
        words = {"≥": "at least", "≤": "at most"}[sign]
        note = f"a bound, {words}: {who} did not get there, and the end of the run stands for the step"
        known = self.estimate
        if known.bound not in ("", sign) and known.bounded == seeds == self.n:
            return replace(self, estimate=replace(known, values=(nan,) * self.n, note="", bound=""))
        both = "; ".join(filter(None, (known.note, note)))
        return replace(self, estimate=replace(known, note=both, bound="" if known.bound else sign, bounded=seeds))

    @property
    def measured(self) -> float:
        return self.estimate.measured

    @property
    def interval(self) -> Interval:
        return self.estimate.interval

    @property
    def n(self) -> int:
        return self.estimate.n

    @property
    def method(self) -> str:
        return self.estimate.method

    @property
    def values(self) -> tuple[float, ...]:
        return self.estimate.values

    @property
    def exact_law(self) -> bool:
        return self.method == "exact"

    @property
    def verdict(self) -> Verdict:
        return decide((self.low, self.high), self.interval)

    @property
    def p(self) -> float | None:
        """The p-value of the verdict, from one-sided tests against the edges of the band; below 0.025 it is decided.

        agrees: the larger of 'not above low' and 'not below high'; disagrees: the smaller of 'not below low' and 'not
        above high'; inconclusive: the smaller of the two. None for exact laws and the worst of seeds.
        """
        edges = [self.estimate.at_most(self.low), self.estimate.at_least(self.high)]
        across = [self.estimate.at_least(self.low), self.estimate.at_most(self.high)]
        inside, outside = ([p for p in pair if p is not None] for pair in (edges, across))
        if not inside or not outside:
            return None
        found = {"agrees": max(inside), "disagrees": min(outside)}
        return found.get(self.verdict, min(found.values()))

    @property
    def distance(self) -> float | None:
        """How far inside the band the number lies, in units of the arm of its interval that points to the nearest edge.

        The arm is the half width where the interval is symmetric. 1 and more: agrees, −1 and less: disagrees. None for
        numbers without an interval.
        """
        if self.method in ("exact", "worst of seeds") or not all(map(isfinite, self.interval)):
            return None
        (low, high), middle = self.interval, self.measured
        arms = [(middle - self.low, middle - low, high - middle), (self.high - middle, high - middle, middle - low)]
        return min(_in_units(gap, inner if gap >= 0 else outer) for gap, inner, outer in arms)


def _in_units(gap: float, arm: float) -> float:
    return gap / arm if arm > 0 else inf if gap > 0 else 0.0


def _floats(values: Values) -> tuple[float, ...]:
    return tuple(map(float, values))


@dataclass(frozen=True)
class Claim(Displayed):
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
