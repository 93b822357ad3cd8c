"""The range within which a sentence was tested: the sizes of the Specs whose records decide it."""

from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from typing import Any

from engram.specs import Check, Search, Spec

NAMED = ("d", "m", "N", "M", "K", "T", "S", "R", "D", "n", "heads", "rank", "steps", "batch")


def tested_range(specs: Iterable[Spec]) -> str:
    """Sizes in words, each with its smallest and largest value: “d 64 … 512, T 128, steps 500”."""
    values: dict[str, set[float]] = {}
    for spec in specs:
        for name, value in _sizes(spec):
            values.setdefault(name, set()).add(value)
    return ", ".join(f"{name} {_span(values[name])}" for name in NAMED if name in values)


def _span(values: set[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} … {high:g}"


def _sizes(spec: Spec) -> Iterator[tuple[str, float]]:
    if isinstance(spec, Check):
        yield from _numbers(spec.sizes)
        return
    for part in (spec.task, spec.model, spec.plan):
        yield from _numbers({name: getattr(part, name, None) for name in NAMED})
    if isinstance(spec, Search):
        yield from (("n", float(end)) for end in spec.bracket)


def _numbers(named: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in named.items():
        if name in NAMED and isinstance(value, Real) and not isinstance(value, bool):
            yield name, float(value)
        elif name in NAMED and isinstance(value, list | tuple):
            yield from ((name, float(one)) for one in value if isinstance(one, Real))
