r"""A power law fitted to measurements, and how far to believe it where nothing was measured.

    log y = a + b log x          least squares over all seeds and sizes; s² = Σ residuals² / (n − 2)

    half width = t · s √(1 + 1/n + (log x − mean)²/Sxx)  +  k (k + 1)/2 · missed,        k octaves beyond

The first term is the 95 % prediction interval for one more seed, if the law is a power law. Outside of the measured
sizes the second is added: what the same extrapolation got wrong one octave earlier. The law is fitted again on sizes up
to half of the largest width, and `missed` is the distance of what it says there from what was measured at the largest,
in logarithms. Where fewer than two sizes lie so low, the largest alone is left out, and what is missed is counted for a
whole octave. Where that leaves fewer than two sizes, nobody can tell, and the interval outside is infinite.

A law that bends has another exponent in every octave. If the first octave beyond is missed by as much as the one
before, the second is missed by twice as much, and so on: 1 + 2 + … + k. It is no theorem: tests/test_extrapolation.py
says for which laws it was tried.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log, sqrt

import numpy as np
from jaxtyping import Float
from scipy.special import stdtrit

from engram.errors import EngramError

Points = Sequence[tuple[float, float]]  # a size, and what was measured there; one for each seed
LEVEL = 0.95


@dataclass(frozen=True)
class Fit:
    """y = e^intercept · x^exponent.

    spread        s, of one seed around the law, in logarithms; no less than the resolution of a measurement
    mean, sxx     of the logarithms of sizes
    low, high     the sizes between which it was fitted
    octave        the factor in x that doubles the width: 2 for a width, 4 for a number of parameters
    missed        what the same extrapolation got wrong one octave earlier, in logarithms; None: nobody can tell
    """

    intercept: float
    exponent: float
    spread: float
    n: int
    mean: float
    sxx: float
    sizes: tuple[float, ...]
    octave: float
    missed: float | None

    @property
    def low(self) -> float:
        return self.sizes[0]

    @property
    def high(self) -> float:
        return self.sizes[-1]

    def size_for(self, y: float) -> float:
        """The size at which the law says y."""
        return exp((log(y) - self.intercept) / self.exponent)


@dataclass(frozen=True)
class Predicted:
    """What a law says at a size, with its interval.

    half      half width of the interval, in logarithms
    factor    how far in width it lies outside of the measured sizes; 1 inside
    """

    value: float
    half: float
    factor: float

    @property
    def low(self) -> float:
        return self.value * exp(-self.half)

    @property
    def high(self) -> float:
        return self.value * exp(min(self.half, 700.0)) if self.half < inf else inf

    @property
    def extrapolated(self) -> bool:
        return self.factor > 1


def fitted(points: Points, octave: float = 2.0, resolution: float = 0.0) -> Fit:
    """The power law through these points, and what it would have missed one octave earlier.

    resolution    the step to which a measurement is known, as a share of it: whole numbers may fit too well by chance
    """
    _refuse_too_few(points)
    bare = _line(points, octave)
    return replace(bare, spread=max(bare.spread, resolution), missed=_missed(points, bare))


def _refuse_too_few(points: Points) -> None:
    if min(min(point) for point in points) <= 0:
        raise EngramError("a power law is fitted to numbers > 0; leave out sizes at which nothing was stored")
    sizes = {x for x, _ in points}
    if len(sizes) < 2 or len(points) < 3:
        raise EngramError(
            f"a power law with an interval needs two sizes and three measurements; got {len(sizes)} and {len(points)}"
        )


def _line(points: Points, octave: float) -> Fit:
    x, y = np.log(np.array(points, dtype=float)).T
    exponent, intercept, mean, sxx = _least_squares(x, y)
    spread = sqrt(float(((y - intercept - exponent * x) ** 2).sum()) / (len(x) - 2)) if len(x) > 2 else 0.0
    sizes = tuple(sorted({float(size) for size, _ in points}))
    return Fit(intercept, exponent, spread, len(x), mean, sxx, sizes, octave, None)


def _least_squares(x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> tuple[float, float, float, float]:
    mean = float(x.mean())
    sxx = float(((x - mean) ** 2).sum())
    exponent = float((x - mean) @ y) / sxx
    return exponent, float(y.mean()) - exponent * mean, mean, sxx


def _missed(points: Points, whole: Fit) -> float | None:
    """What is missed at the largest size by a fit that does not know the last octave, for each octave."""
    half = whole.high / whole.octave * (1 + 1e-9)
    below = [size for size in whole.sizes if size <= half]
    known = below if len(below) > 1 else whole.sizes[:-1]
    if len(known) < 2:
        return None
    earlier = _line([point for point in points if point[0] in known], whole.octave)
    measured = float(np.mean([log(y) for x, y in points if x == whole.high]))
    off = abs(measured - earlier.intercept - earlier.exponent * log(whole.high))
    return off / (1.0 if known is below else _octaves(whole.high / known[-1], whole.octave))


def _octaves(factor: float, octave: float) -> float:
    return log(factor) / log(octave)


def predicted(fit: Fit, size: float) -> Predicted:
    """What the law says at this size, with the interval of the module's rule."""
    x = log(size)
    degrees = max(1, fit.n - 2)
    lever = 1 + 1 / fit.n + (x - fit.mean) ** 2 / fit.sxx
    half = float(stdtrit(degrees, (1 + LEVEL) / 2)) * fit.spread * sqrt(lever)
    octaves = _octaves(max(size / fit.high, fit.low / size, 1.0), fit.octave)
    beyond = 0.0 if octaves == 0 else inf if fit.missed is None else octaves * (octaves + 1) / 2 * fit.missed
    return Predicted(exp(fit.intercept + fit.exponent * x), half + beyond, 2.0**octaves)
