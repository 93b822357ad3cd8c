r"""One run of somebody else beside n of ours: could it be one of them?

    z = (x − mean) / (s √(1 + 1/n))          for normal values Student's t with n − 1 degrees of freedom

A curve is many readings of one run, and they go together: the run is judged by the largest |z| of a few readings that
are named beforehand, and the limit of that number allows for how many they are (Bonferroni, whatever their
correlations). Means over stretches of a curve make better readings than single points, which are far from normal where
the curve is steep: with a limit from the correlations of single points 3 of 13 of our own runs were refused.
"""

from dataclasses import dataclass
from math import inf

import numpy as np
from jaxtyping import Float

from engram.claims.claim import Measure
from engram.claims.intervals import Estimate

Sample = Float[np.ndarray, "n k"]  # a row for each run, a column for each reading
Readings = Float[np.ndarray, " k"]


def standardised(ours: Sample, other: Readings, resolution: float) -> Readings:
    """z of every reading."""
    return (other - ours.mean(axis=0)) / (deviations(ours, resolution) * np.sqrt(1 + 1 / len(ours)))


def deviations(ours: Sample, resolution: float) -> Readings:
    """s of every reading; it counts as no less than the resolution, as one answer more or less of a recall."""
    if len(ours) < 2:  # a single run has none
        return np.full(ours.shape[1], np.nan)
    return np.maximum(ours.std(axis=0, ddof=1), resolution)


def largest(ours: Sample, other: Readings, resolution: float) -> float:
    """The largest |z| of all readings."""
    return float(np.abs(standardised(ours, other, resolution)).max())


def limit(n: int, readings: int, level: float = 0.95) -> float:
    """What the largest |z| of so many readings of one more run beside n stays below with at least this probability."""
    from scipy.stats import t  # slow to import, and needed only here

    return float(t.ppf(1 - (1 - level) / (2 * readings), max(1, n - 1)))


@dataclass(frozen=True)
class Prediction(Estimate):
    """The largest of the |z| of one other run. It is held against a limit, and is no interval; n counts our runs."""

    method: str = "prediction"
    ours: int = 0

    @property
    def n(self) -> int:
        return self.ours

    @property
    def measured(self) -> float:
        return float(np.max(self.values))


def could_be_ours(name: str, ours: Sample, other: Readings, resolution: float, readings: int) -> Measure:
    """Whether the largest |z| of this column's readings lies below the limit for all readings that are asked."""
    z = np.abs(standardised(ours, other, resolution))
    note = f"beside {len(ours)} runs of ours; the limit is that of {readings} readings"
    found = Prediction(tuple(map(float, z)), resolution=resolution, note=note, ours=len(ours))
    return Measure(name, -inf, limit(len(ours), readings), found)
