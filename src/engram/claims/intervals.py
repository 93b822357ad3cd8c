"""What is known of a number after several seeds: its 95 % interval, and how surely it lies beyond an edge.

Each kind says how it was made (`method`), keeps the numbers of the seeds, and says in its docstring what it covers;
docs/log/2026-11-17-intervals.md has the coverages, tests/test_coverage.py measures them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf, isnan, nan, pi, sqrt

import numpy as np
from jaxtyping import Float

Interval = tuple[float, float]
Values = Sequence[float]  # one for each seed
Edges = Float[np.ndarray, " e"]
LEVEL = 0.95
TAIL = (1 - LEVEL) / 2


@dataclass(frozen=True)
class Estimate:
    """A number from the values of seeds; by itself (an exact law) it is its own interval.

    values       what each seed says
    out_of       of how many trials each value is the share; empty if it is none
    resolution   the step between two neighbouring values that the number can take; 0 if it is not known
    counts       what n counts
    note         what a reader of the number must know besides
    bound        ≥ or ≤ where seeds enter with a bound instead of a number; empty where all were measured
    bounded      how many seeds do
    """

    values: tuple[float, ...]
    out_of: tuple[int, ...] = ()
    resolution: float = 0.0
    method: str = "exact"
    counts: str = "seeds"
    note: str = ""
    bound: str = ""
    bounded: int = 0

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def remark(self) -> str:
        """The note, and what else explains the verdict."""
        return self.note

    @property
    def measured(self) -> float:
        return float(np.mean(self.values))

    @property
    def interval(self) -> Interval:
        return self.measured, self.measured

    def at_most(self, edge: float) -> float | None:
        """The p-value of 'the number is at most this'; None where there is no distribution to ask."""
        return None

    def at_least(self, edge: float) -> float | None:
        return None


@dataclass(frozen=True)
class Worst(Estimate):
    """The error with the largest magnitude of any seed. It says nothing of other seeds: it is no interval."""

    method: str = "worst of seeds"

    @property
    def measured(self) -> float:
        return nan if any(map(isnan, self.values)) else max(self.values, key=abs)


@dataclass(frozen=True)
class Student(Estimate):
    """The mean over seeds ± t s/√n: covers 95 % of normal values, whatever n ≥ 2.

    The interval never has no width. Where all seeds say the same, the half width is the resolution of the number, or
    unbounded if that is not known: equal values then decide nothing.
    """

    method: str = "t over seeds"

    @property
    def error(self) -> float:
        """The standard error; where all seeds say the same, what the resolution asks for."""
        if self.n < 2:
            return inf
        if self._is_one_value:
            return self.resolution / self._quantile or inf
        return float(np.std(self.values, ddof=1)) / sqrt(self.n)

    @property
    def _is_one_value(self) -> bool:
        """But for rounding."""
        return bool(np.ptp(self.values) <= 1e-12 * np.max(np.abs(self.values)))

    @property
    def remark(self) -> str:
        if self.n < 2 or self.resolution or not self._is_one_value:
            return self.note
        why = f"all {self.n} {self.counts} say the same, so there is no spread to judge by; give resolution="
        return "; ".join(filter(None, (self.note, f"{why}, the step between two values that it can take")))

    @property
    def _quantile(self) -> float:
        from scipy.special import stdtrit  # scipy.stats has the same numbers, a hundred times as slowly

        return float(stdtrit(self.n - 1, 1 - TAIL))

    @property
    def interval(self) -> Interval:
        half = self._quantile * self.error if self.n > 1 else inf
        return self.measured - half, self.measured + half

    def at_most(self, edge: float) -> float | None:
        return self._beyond((self.measured - edge) / self.error)

    def at_least(self, edge: float) -> float | None:
        return self._beyond((edge - self.measured) / self.error)

    def _beyond(self, deviations: float) -> float | None:
        from scipy.special import stdtr

        return None if self.n < 2 or isnan(deviations) else float(stdtr(self.n - 1, -deviations))


@dataclass(frozen=True)
class Trials(Estimate):
    """A share of trials, of which each seed has `out_of`."""

    hits: tuple[int, ...] = field(default=(), kw_only=True)

    @classmethod
    def of(cls, hits: Sequence[int], out_of: Sequence[int]) -> "Trials":
        shares = tuple(h / m for h, m in zip(hits, out_of, strict=True))
        return cls(shares, tuple(out_of), hits=tuple(hits))

    @property
    def none_or_all(self) -> tuple[bool, bool]:
        return not any(self.hits), self.hits == self.out_of


@dataclass(frozen=True)
class Binomial(Trials):
    """A share of trials that are independent within a seed too: the exact interval of Clopper and Pearson.

    It covers at least 95 %, and up to 100 % near 0 and 1, where shares of few trials leave gaps.
    """

    method: str = "exact binomial"

    @property
    def measured(self) -> float:
        return sum(self.hits) / sum(self.out_of)

    @property
    def interval(self) -> Interval:
        from scipy.stats import binomtest

        found = binomtest(sum(self.hits), sum(self.out_of)).proportion_ci(LEVEL, method="exact")
        return float(found.low), float(found.high)

    def at_most(self, edge: float) -> float | None:
        from scipy.stats import binom

        return 0.0 if edge < 0 else float(binom.sf(sum(self.hits) - 1, sum(self.out_of), min(edge, 1.0)))

    def at_least(self, edge: float) -> float | None:
        from scipy.stats import binom

        return 0.0 if edge > 1 else float(binom.cdf(sum(self.hits), sum(self.out_of), max(edge, 0.0)))


@dataclass(frozen=True)
class BetaBinomial(Trials):
    """The mean over seeds of a share of few trials, where the trials of one seed may go together.

    The share of a seed is drawn from a beta distribution with mean p and intra-class correlation ρ, its hits from a
    binomial one. The interval has the middle 95 % of the posterior of p, for Jeffreys' prior on p and the density
    5(1−ρ)⁴ on ρ (mean 1/6; the shares of this house have ρ between 0 and 0.08); where all trials are hits it reaches up
    to 1, and down to 0 where none is. So it has a width also when all seeds say 1: five seeds with 64 hits of 64 leave
    0.94 … 1, since a seed in which much fails may be rare. It covers at least 93 % for ρ up to 0.1 (up to 100 % where
    ρ is 0), and at least 88 % for ρ = 0.3. A single seed has no interval.
    """

    method: str = "beta-binomial"

    @property
    def interval(self) -> Interval:
        if self.n < 2:
            return -inf, inf
        edges, cumulated = posterior(self.hits, self.out_of)
        low, high = (float(np.interp(level, cumulated, edges)) for level in (TAIL, 1 - TAIL))
        none, every = self.none_or_all
        return 0.0 if none else low, 1.0 if every else high

    def at_most(self, edge: float) -> float | None:
        if self.n < 2:
            return None
        none, _ = self.none_or_all
        return 1.0 if none and edge >= 0 else float(np.interp(edge, *posterior(self.hits, self.out_of)))

    def at_least(self, edge: float) -> float | None:
        if self.n < 2:
            return None
        _, every = self.none_or_all
        return 1.0 if every and edge <= 1 else 1 - float(np.interp(edge, *posterior(self.hits, self.out_of)))


POINTS, CORRELATIONS, RARE = 1000, 80, 5  # of p and of ρ on the grid; the prior density of ρ is RARE (1−ρ)^(RARE−1)


@lru_cache(maxsize=256)
def posterior(hits: tuple[int, ...], out_of: tuple[int, ...]) -> tuple[Edges, Float[np.ndarray, " e"]]:
    """Shares p and the posterior probability that p is smaller. Jeffreys' prior is uniform in θ, p = sin²θ."""
    counts = Counter(zip(hits, out_of, strict=True))
    logs = sum(often * log_likelihoods(hit, of) for (hit, of), often in counts.items())
    return cumulated(np.asarray(logs))


def log_likelihoods(hits: int | np.ndarray, out_of: int) -> Float[np.ndarray, "... p rho"]:
    """log P(hits | p, ρ) on the grid, up to what depends on neither; for each of several hits if so asked."""
    from scipy.special import betaln

    p, rho, _ = _grid()
    a, b = p[:, None] * (1 - rho) / rho, (1 - p)[:, None] * (1 - rho) / rho
    hits = np.asarray(hits)[..., None, None]
    return betaln(a + hits, b + out_of - hits) - betaln(a, b)


def cumulated(logs: Float[np.ndarray, "... p rho"]) -> tuple[Edges, Float[np.ndarray, "... e"]]:
    """From log-likelihoods on the grid: the edges of its cells in p, and the posterior below each."""
    _, _, weights = _grid()
    mass = (np.exp(logs - logs.max(axis=(-2, -1), keepdims=True)) * weights).sum(axis=-1)
    below = np.cumsum(mass / mass.sum(axis=-1, keepdims=True), axis=-1)
    edges = np.sin(np.arange(POINTS + 1) / POINTS * pi / 2) ** 2
    return edges, np.concatenate([np.zeros((*below.shape[:-1], 1)), below], axis=-1)


@lru_cache(maxsize=1)
def _grid() -> tuple[Float[np.ndarray, " p"], Float[np.ndarray, " rho"], Float[np.ndarray, " rho"]]:
    """p, ρ and the prior weights of ρ; cells of ρ grow geometrically, as many trials tell small ones apart."""
    p = np.sin((np.arange(POINTS) + 0.5) / POINTS * pi / 2) ** 2
    edges = np.concatenate([[0.0], np.geomspace(1e-4, 1, CORRELATIONS)])
    middles = np.concatenate([[edges[1] / 2], np.sqrt(edges[1:-1] * edges[2:])])
    return p, middles, np.diff(1 - (1 - edges) ** RARE)
