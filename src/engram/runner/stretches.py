"""From where the rows of a record can be computed again: its beginning, stored states and weights, the sizes tried."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from engram.learning import Diverged
from engram.records import Record, files
from engram.records.files import Row
from engram.records.forward import has_averages, is_exact, state_of_snapshot
from engram.records.state import NAME, State
from engram.runner.execute import fresh_rows, search_rows, tried
from engram.runner.training import measured_steps
from engram.specs import Search, Spec, Train


@dataclass
class Stretch:
    """Rows begin … end − 1 of a record, and the same rows computed again, one at a time; `at` is the next one."""

    begin: int
    end: int
    again: Iterator[Row]
    at: int = field(init=False)

    def __post_init__(self) -> None:
        self.at = self.begin


def whole(spec: Spec, path: str, n: int) -> Stretch:
    """All rows from the very beginning; nothing that is stored is believed."""
    return Stretch(0, n, _until_diverged(fresh_rows(spec, path)))


def stretches(record: Record, spec: Spec, path: str, n: int, steps: int) -> list[Stretch]:
    """Together they hold all rows, the first `steps` without the help of a stored state.

    Rows of a Check can only be computed in their order: they are one stretch.
    """
    if isinstance(spec, Train):
        first, *others = _between_states(record, spec, path, n)
        first.end = max(first.end, min(steps, n))
        return [first, *others]
    return _sizes(record, spec, path, n) if isinstance(spec, Search) else [whole(spec, path, n)]


def snapshot_rows(record: Record, spec: Spec, path: str, n: int) -> list[Stretch]:
    """The row of each step whose weights are stored: loss, accuracy and probes, measured at these weights."""
    steps = [step for step in record.snapshot_steps if step < n]
    if not isinstance(spec, Train) or not steps or not is_exact(record, spec, steps[-1]):
        return []
    return [Stretch(step, step + 1, _until_diverged(_from_snapshot(record, spec, path, step))) for step in steps]


def _between_states(record: Record, spec: Train, path: str, n: int) -> list[Stretch]:
    names = {step: f"states/{step:06d}.safetensors" for step in files.numbered(record.place / "states")}
    if (record.place / NAME).exists():
        names[State.read(record.place).step] = NAME
    starts = {step: _from_state(record, spec, path, name) for step, name in names.items() if 0 < step < n}
    if not has_averages(spec):  # weights are all that such a training hands from step to step
        found = snapshot_rows(record, spec, path, n)
        starts = {one.begin: one.again for one in found if one.begin} | starts
    starts[0] = fresh_rows(spec, path)
    ends = [*sorted(starts), n]
    return [Stretch(b, e, _until_diverged(starts[b])) for b, e in pairwise(ends)]


def _from_state(record: Record, spec: Train, path: str, name: str) -> Iterator[Row]:
    state = State.read(record.place, name)
    yield from (row for _, row in measured_steps(spec, "cpu", path, state, record.snapshot))


def _from_snapshot(record: Record, spec: Train, path: str, step: int) -> Iterator[Row]:
    """Without the optimiser's averages: the first row is right in any case, later ones only where there are none."""
    state = state_of_snapshot(record, spec, step)
    yield from (row for _, row in measured_steps(spec, "cpu", path, state, record.snapshot))


def _sizes(record: Record, spec: Search, path: str, n: int) -> list[Stretch]:
    """Each size that was tried is a question of its own; that it is the next one to ask follows from the answers."""
    rows = record.rows
    if record.ended is not None:
        more = next(search_rows(spec, path, rows), None)  # refuses answers to other questions
        if more is not None:
            return [whole(spec, path, n)]  # rows were cut off, which the last stretch finds
    votes = spec.votes
    return [Stretch(at, min(at + votes, n), _tried(spec, at, rows[at]["n"], path)) for at in range(0, n, votes)]


def _tried(spec: Search, step: int, size: int, path: str) -> Iterator[Row]:
    yield from tried(spec, step, size, path)


def _until_diverged(rows: Iterator[Row]) -> Iterator[Row]:
    try:
        yield from rows
    except Diverged:
        return
