"""What has not been run, from the same at other sizes: a power law in each number in which Specs differ."""

from collections.abc import Iterator, Sequence
from math import exp, log
from typing import Any

import numpy as np

from engram.costs.cost import Cost
from engram.specs import Spec
from engram.specs.encode import encode

LEAST = 2  # measured Specs that an extrapolation needs
HARDLY = 0.1  # of the direction in which they differ most
FAR = 1000.0  # times the dearest that was measured


def kind(spec: Spec) -> str:
    """All of a Spec but its numbers."""
    return str([(at, value) for at, value in _leaves(encode(spec)) if not _is_number(value)])


def numbers(spec: Spec) -> dict[str, float]:
    """Its positive numbers, but the seed."""
    found = _leaves(encode(spec))
    return {at: float(value) for at, value in found if _is_number(value) and value > 0 and not at.endswith(".seed")}


def work(spec: Spec) -> float:
    """Specs of one kind in the order of what they roughly cost."""
    return sum(map(log, numbers(spec).values()))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _leaves(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _leaves(part, f"{at}.{name}")
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from _leaves(part, f"{at}.{i}")
    else:
        yield at, value


def extrapolated(spec: Spec, known: Sequence[tuple[Spec, Cost]]) -> Cost | None:
    """log cost = c + Σ k log number, the smallest k that fit, by least squares; dear Specs weigh more than cheap ones.

    Directions in which the known ones hardly differ are left out. None where fewer than two others of its kind are
    known, or where the answer is too far from them.
    """
    if len(known) < LEAST:
        return None
    each = [numbers(one) for one, _ in known]
    names = [name for name in numbers(spec) if all(name in one for one in each)]
    X = np.array([[log(one[name]) for name in names] for one in each])
    x = np.array([log(numbers(spec)[name]) for name in names])
    y = np.array([log(max(cost.seconds, 1e-6)) for _, cost in known])
    weights = np.exp((y - y.max()) / 2)
    centre, level = np.average(X, axis=0, weights=weights), np.average(y, weights=weights)
    root = np.sqrt(weights)
    powers, *_ = np.linalg.lstsq((X - centre) * root[:, None], (y - level) * root, rcond=HARDLY)
    seconds = exp(min(700.0, float(level + (x - centre) @ powers)))
    if seconds > FAR * max(cost.seconds for _, cost in known):
        return None
    return Cost(seconds, None, float(np.mean([cost.bytes for _, cost in known])), "sizes")
