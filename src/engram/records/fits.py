"""Laws fitted to measurements: an exponent with a bootstrap interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from engram.records.claim import Interval, Measure


@dataclass(frozen=True)
class Power:
    """y = factor · x^exponent, with the 95 % interval of the exponent."""

    exponent: float
    factor: float
    interval: Interval
    n: int  # fewest seeds at any size that has more than one

    def measure(self, name: str, low: float, high: float) -> Measure:
        return Measure(name, low, high, self.exponent, self.interval, self.n)


def power_law(measured: Mapping[float, Sequence[float]]) -> Power:
    """Least squares in logarithms through the means over seeds at each size; seeds are resampled within each size.

    A size with one seed stays as it is; without a second seed anywhere the exponent has no interval.
    """
    logs = [np.log(values) for values in measured.values()]
    x = np.log(list(measured))
    slope, offset = np.polyfit(x, [values.mean() for values in logs], 1)
    several = [len(values) for values in logs if len(values) > 1]
    interval = _interval(x, logs) if several else (-np.inf, np.inf)
    return Power(float(slope), float(np.exp(offset)), interval, min(several, default=1))


def _interval(x: Float[np.ndarray, " sizes"], logs: Sequence[np.ndarray]) -> Interval:
    from scipy.stats import bootstrap

    weight = (x - x.mean()) / np.sum((x - x.mean()) ** 2)  # the slope is Σ weight · mean
    free = [i for i, values in enumerate(logs) if len(values) > 1]
    fixed = sum(weight[i] * float(logs[i][0]) for i in range(len(logs)) if i not in free)

    def slope(*samples: np.ndarray, axis: int) -> np.ndarray:
        parts = [weight[i] * sample.mean(axis=axis) for i, sample in zip(free, samples, strict=True)]
        return fixed + np.sum(parts, axis=0)

    if all(np.ptp(logs[i]) == 0 for i in free):  # every seed says the same
        exact = fixed + sum(weight[i] * float(logs[i][0]) for i in free)
        return float(exact), float(exact)
    found = bootstrap([logs[i] for i in free], slope, method="percentile", rng=np.random.default_rng(0))
    low, high = found.confidence_interval
    return float(low), float(high)
