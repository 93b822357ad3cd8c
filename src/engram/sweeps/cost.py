"""What is left of a sweep, and how long it will take: a slice of each training is measured."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engram.costs.trainings import of_training
from engram.engines.ahead import in_words, share_left
from engram.engines.choosing import Where
from engram.records import Record
from engram.specs import Spec, Train
from engram.specs.spec import run_id

BUDGET = 15.0  # seconds for all slices; what is left then is taken to be like the mean of the others


def left(specs: Sequence[Spec], home: Path) -> list[Spec]:
    """Those that are not finished."""
    return [spec for spec in specs if not Record(home / run_id(spec)).finished]


@dataclass(frozen=True)
class Needs:
    """What runs take.

    seconds    of one core, for each run
    bytes      of all records
    """

    seconds: list[float]
    bytes: float

    @property
    def words(self) -> str:
        """2.5 core-hours, 120 MB of records"""
        spent = _in_units(sum(self.seconds), (("core-hours", 3600), ("core-minutes", 60), ("core-seconds", 1)))
        return f"{spent}, {_in_units(self.bytes, (('GB', 1e9), ('MB', 1e6), ('kB', 1e3)))} of records"


def _in_units(value: float, units: Sequence[tuple[str, float]]) -> str:
    """In the largest unit of which there is one at least.

    >>> _in_units(5400, (("h", 3600), ("s", 1))), _in_units(59, (("h", 3600), ("s", 1)))
    ('1.5 h', '59 s')
    """
    name, size = next((unit for unit in units if value >= unit[1]), units[-1])
    return f"{value / size:.{int(value < 10 * size)}f} {name}"


def needs(groups: Sequence[Sequence[Spec]], path: str, home: Path, budget: float = BUDGET) -> Needs | None:
    """For groups that differ in their seed only; None where there is something else than trainings."""
    groups = [group for group in groups if group]
    first = [group[0] for group in groups if isinstance(group[0], Train)]
    if len(first) < len(groups):
        return None
    known, end = list[tuple[float, float]](), time.monotonic() + budget
    for spec in first:
        if known and time.monotonic() > end:
            break
        cost = of_training(spec, path)
        known.append((cost.seconds, cost.bytes))
    mean = tuple(sum(column) / len(known) for column in zip(*known, strict=True))
    each = [*known, *[mean] * (len(groups) - len(known))]
    runs = [(spec, *one) for one, group in zip(each, groups, strict=True) for spec in group]
    return Needs([seconds * share_left(spec, home) for spec, seconds, _ in runs], sum(size for _, _, size in runs))


@dataclass(frozen=True)
class Costs:
    """What is left of a sweep takes where it would be computed.

    at_once    how many runs are computed side by side there; None: not known
    """

    needs: Needs | None
    seconds: float | None
    at_once: int | None

    @property
    def words(self) -> str:
        """about 4 min, 2 runs at a time (0.13 core-hours, 12 MB of records)"""
        if self.needs is None:
            return in_words(None)
        at_once = "" if self.at_once is None else f", {self.at_once} run{'s' * (self.at_once != 1)} at a time"
        return f"{in_words(self.seconds)}{at_once} ({self.needs.words})"

    def to_json(self) -> dict[str, Any]:
        cores, size = (None, None) if self.needs is None else (sum(self.needs.seconds), self.needs.bytes)
        numbers = {"seconds": self.seconds, "core_seconds": cores, "bytes": size}
        return {name: value and round(value, 3) for name, value in numbers.items()} | {"at_once": self.at_once}


def costs_of(found: Needs | None, where: Where) -> Costs:
    """On the engine that was chosen, which is asked how many machines it has."""
    engine = where.build()
    if found is not None and not found.seconds:  # nobody need be asked
        return Costs(found, 0.0, None)
    at_once = engine.side_by_side()
    return Costs(found, None if found is None else engine.wall(found.seconds, at_once), at_once)
