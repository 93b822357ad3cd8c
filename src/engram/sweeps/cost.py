"""What is left of a sweep, and how long it will take: a slice of each training is measured."""

import time
from collections.abc import Sequence
from pathlib import Path

from engram.costs.trainings import of_training
from engram.records import Record
from engram.specs import Spec, Train
from engram.specs.spec import run_id

BUDGET = 15.0  # seconds for all slices; what is left then is taken to be like the mean of the others


def left(specs: Sequence[Spec], home: Path) -> list[Spec]:
    """Those that are not finished."""
    return [spec for spec in specs if not Record(home / run_id(spec)).finished]


def seconds_left(groups: Sequence[Sequence[Spec]], path: str, budget: float = BUDGET) -> float | None:
    """Of one core, for groups that differ in their seed only; None where there is something else than trainings."""
    groups = [group for group in groups if group]
    first = [group[0] for group in groups if isinstance(group[0], Train)]
    if len(first) < len(groups):
        return None
    known, end = list[float](), time.monotonic() + budget
    for spec in first:
        if known and time.monotonic() > end:
            break
        known.append(of_training(spec, path).seconds)
    mean = sum(known) / max(1, len(known))
    each = known + [mean] * (len(groups) - len(known))
    return sum(seconds * len(group) for seconds, group in zip(each, groups, strict=True))
