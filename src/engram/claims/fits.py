"""Laws fitted to measurements: each seed has an exponent of its own, and their mean an interval over seeds."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from engram.claims.claim import Measure
from engram.errors import EngramError

Curve = Sequence[tuple[float, float]]  # sizes and what was measured there, of one seed


def exponent(name: str, curves: Sequence[Curve], low: float, high: float, law: float = 0.0) -> Measure:
    """y ∝ x^exponent: the mean over seeds of each one's least-squares slope in logarithms (t interval), less a law's.

    A size that not every seed has is left out, and the note says so: else seeds would differ in what they fit.
    """
    shared = set.intersection(*({x for x, _ in curve} for curve in curves)) if curves else set()
    left = sorted({x for curve in curves for x, _ in curve} - shared)
    note = f"without size {', '.join(f'{x:g}' for x in left)}, which not every seed has" if left else ""
    found = [slope([(x, y) for x, y in curve if x in shared]) for curve in curves]
    return Measure.slope(name, [one - law for one in found], low, high).noted(note)


def slope(curve: Curve) -> float:
    """The least-squares slope of log y in log x."""
    sizes = {x for x, _ in curve}
    if len(sizes) < 2:
        raise EngramError(f"an exponent needs at least two sizes that every seed has; got {len(sizes)}")
    x, y = np.log(np.array(curve, dtype=float)).T
    return float(np.polyfit(x, y, 1)[0])


def by_seed(by_size: Mapping[Any, Sequence[float]]) -> list[Curve]:
    """For each seed its curve, from values over the same seeds at each size."""
    values = zip(*by_size.values(), strict=True)
    return [[(float(x), y) for x, y in zip(by_size, of_seed, strict=True)] for of_seed in values]


def curves(records: Sequence[Any], point: Callable[[Any], tuple[float, float]]) -> list[Curve]:
    """For each seed its curve, from records that may have several sizes, and several records of one size."""
    found: dict[int, list[tuple[float, float]]] = {}
    for record in records:
        found.setdefault(record.spec.seed, []).append(point(record))
    return [found[seed] for seed in sorted(found)]
