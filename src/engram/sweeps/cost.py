"""What is left of a sweep, and how long it will take: a few steps of each training are timed."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from engram.records import Record
from engram.runner.execute import path_of
from engram.runner.training import measured_steps
from engram.specs import Spec, Train
from engram.specs.spec import run_id

STEPS = 4  # that are timed: the first with all probes, then plain ones
BUDGET = 15.0  # seconds for all timings; what is left then is taken to be like the mean of the others


def left(specs: Sequence[Spec], home: Path) -> list[Spec]:
    """Those that are not finished."""
    return [spec for spec in specs if not Record(home / run_id(spec)).finished]


def seconds_left(groups: Sequence[Sequence[Spec]], path: str, budget: float = BUDGET) -> float | None:
    """Of one core, for groups that differ in their seed only; None where there is something else than trainings."""
    groups = [group for group in groups if group]
    if not all(isinstance(group[0], Train) for group in groups):
        return None
    known, end = [], time.monotonic() + budget
    for group in groups:
        if known and time.monotonic() > end:
            break
        known.append(seconds_of(group[0], path))
    mean = sum(known) / max(1, len(known))
    each = known + [mean] * (len(groups) - len(known))
    return sum(seconds * len(group) for seconds, group in zip(each, groups, strict=True))


def seconds_of(spec: Spec, path: str = "auto") -> float:
    """Of one whole training, from its first steps: those with probes and those without."""
    assert isinstance(spec, Train)
    first, *plain = _durations(spec, path)
    step = min(plain, default=first)
    return step * spec.steps + max(0.0, first - step) * (1 + spec.steps / spec.plan.probe_every)


def _durations(spec: Train, path: str) -> Iterator[float]:
    began = time.monotonic()
    for n, _ in enumerate(measured_steps(spec, path=path_of(spec, wanted=path)), 1):
        now = time.monotonic()
        yield now - began
        if n == STEPS:
            return
        began = now
