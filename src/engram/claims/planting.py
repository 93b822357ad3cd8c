"""Planted records: what an experiment reads, changed so that an effect is absent or another law holds.

A planted record has the Spec and the format of a real one, and its noise; only numbers differ. It lives in memory:
nothing is written, nothing is trained. A Check whose law takes seconds is measured anew instead, with a part of the
code exchanged for a wrong one (`exchanged`).
"""

import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import cycle
from math import exp
from typing import Any

import numpy as np

from engram.claims.experiment import Runs
from engram.errors import EngramError
from engram.records import Record
from engram.records.files import Row
from engram.records.table import Table
from engram.specs import Spec
from engram.values import generator, law_named

Plant = Callable[[Runs], Runs]
Change = Callable[[Record], Record]
Factor = float | Callable[[Record, Row], float]
Wrong = Callable[[Any], Any]  # from the right function, or any other value of a module, to the one that replaces it
LOOKS = 5  # measurements that count as the beginning of a training


def as_it_is(runs: Runs) -> Runs:
    return runs


def with_rows(record: Record, rows: list[Row], spec: Spec | None = None) -> Record:
    """The same record with other rows, and perhaps another Spec; what lies on disk is not touched."""
    planted, table = Record.of(record), Table()
    numbered = [{**row, "step": step} for step, row in enumerate(rows)]
    table.add([json.dumps(row).encode() for row in numbered])
    vars(planted).update(rows=numbered, table=table, spec=spec or record.spec)
    return planted


def changed(*changes: Change, only: Callable[[Any], bool] = lambda label: True) -> Plant:
    """Every record under the labels that `only` admits, changed; the other records stay."""

    def plant(runs: Runs) -> Runs:
        return Runs(
            {label: [_all(changes, r) if only(label) else r for r in rs] for label, rs in runs.items()}, runs.scale
        )

    return plant


def _all(changes: tuple[Change, ...], record: Record) -> Record:
    for change in changes:
        record = change(record)
    return record


def together(*plants: Plant) -> Plant:
    """One plant after the other."""

    def plant(runs: Runs) -> Runs:
        for one in plants:
            runs = one(runs)
        return runs

    return plant


def instead(labels: Mapping[Any, Any]) -> Plant:
    """Under each label the records of another one, moved on by a seed: seeds that were paired share no noise."""

    def plant(runs: Runs) -> Runs:
        return Runs({**runs, **{label: _moved_on(runs[other], 1) for label, other in labels.items()}}, runs.scale)

    return plant


def _moved_on(records: list[Record], by: int) -> list[Record]:
    at = by % len(records)
    return [*records[at:], *records[:at]]


def swapped(*pairs: tuple[Any, Any], every: int = 1) -> Plant:
    """The labels of each pair exchanged; with every=2 in every other seed."""

    def plant(runs: Runs) -> Runs:
        planted = dict(runs)
        for label, other in (both for a, b in pairs for both in ((a, b), (b, a))):
            seeds = zip(runs[label], runs[other], strict=True)
            planted[label] = [theirs if i % every == 0 else mine for i, (mine, theirs) in enumerate(seeds)]
        return Runs(planted, runs.scale)

    return plant


def shuffled(*pairs: tuple[Any, Any]) -> Plant:
    """The labels of each pair exchanged in every other seed: a comparison of them has nothing to find."""
    return swapped(*pairs, every=2)


def alike(*sources: Any, only: Callable[[Any], bool]) -> Plant:
    """These labels hold the records of one of them, each in another order of seeds: the label makes no difference."""

    def plant(runs: Runs) -> Runs:
        labels = [label for label in runs if only(label)]
        source = runs[sources[0] if sources else labels[0]]
        turned = {label: _moved_on(source, i) for i, label in enumerate(labels)}
        return Runs({**runs, **turned}, runs.scale)

    return plant


def grafted(labels: Mapping[Any, Any], *names: str) -> Plant:
    """Records keep their Spec, but hold the numbers of another label's: all columns that both have, or those named."""

    def plant(runs: Runs) -> Runs:
        pairs = {label: zip(runs[label], _moved_on(runs[other], 1), strict=True) for label, other in labels.items()}
        return Runs(
            {**runs, **{label: [_graft(a, b, names) for a, b in same] for label, same in pairs.items()}}, runs.scale
        )

    return plant


def _graft(record: Record, other: Record, names: tuple[str, ...]) -> Record:
    """Row by row; beyond the end of the other record its last row is repeated."""
    rows = [other.rows[min(i, len(other.rows) - 1)] for i in range(len(record.rows))]
    taken = [
        {name: row[name] for name in names or row if name in row and name in own}
        for own, row in zip(record.rows, rows, strict=True)
    ]
    return with_rows(record, [{**own, **row} for own, row in zip(record.rows, taken, strict=True)])


def columns(sources: Mapping[str, str], spread: float = 0.0) -> Change:
    """Each column named holds the numbers of another one, times e^{spread · noise}, the same for all rows of a seed."""

    def change(record: Record) -> Record:
        by = {name: exp(spread * generator(record.spec.seed, f"control.{name}").normal()) for name in sources}
        return with_rows(record, [_copied(row, sources, by) for row in record.rows])

    return change


def _copied(row: Row, sources: Mapping[str, str], by: Mapping[str, float]) -> Row:
    kept = {name: value for name, value in row.items() if name not in sources}
    return kept | {name: by[name] * row[source] for name, source in sources.items() if source in row}


def exchanged_columns(*pairs: tuple[str, str]) -> Change:
    return columns({name: other for a, b in pairs for name, other in ((a, b), (b, a))})


def held(*names: str, begin: float = 0.0, end: float | None = None) -> Change:
    """Nothing more is learned: columns repeat what they were between two shares of the steps, noise included.

    Without an end these are the first measurements. All columns, or those named.
    """

    def change(record: Record) -> Record:
        steps = len(record.rows) - 1
        chosen = [name for name in names or record.columns if name != "step"]
        repeated = {
            name: cycle(_between(record, name, begin * steps, None if end is None else end * steps)) for name in chosen
        }
        late = 0 if end is None else end * steps
        return with_rows(record, [_repeat(row, repeated) if i > late else row for i, row in enumerate(record.rows)])

    return change


def _between(record: Record, name: str, begin: float, end: float | None) -> list[float]:
    steps, values = record.curve(name)
    inside = values[steps >= begin][:LOOKS] if end is None else values[(steps >= begin) & (steps <= end)]
    return (inside if len(inside) else values).tolist()


def _repeat(row: Row, repeated: Mapping[str, Iterator[float]]) -> Row:
    return {name: next(repeated[name]) if name in repeated else value for name, value in row.items()}


def rewritten(rewrite: Callable[[Record, Row], Row]) -> Change:
    """Every row with some numbers replaced."""

    def change(record: Record) -> Record:
        return with_rows(record, [{**row, **rewrite(record, row)} for row in record.rows])

    return change


def multiplied(factor: Factor, *names: str) -> Change:
    """Columns off by a factor, a number or a function of record and row."""

    def times(record: Record, row: Row) -> Row:
        by = factor(record, row) if callable(factor) else factor
        return {name: by * row[name] for name in names if name in row}

    return rewritten(times)


def drawn(noise: Callable[[np.random.Generator], float], *names: str) -> Change:
    """Columns that hold nothing but noise, a draw of its own for each seed."""

    def draw(record: Record, row: Row) -> Row:
        streams = {name: generator(record.spec.seed, f"control.{name}") for name in names if name in row}
        return {name: noise(stream) for name, stream in streams.items()}

    return rewritten(draw)


def resized(factor: Callable[[Record], float]) -> Change:
    """A Search that turns at other sizes, by one factor for all of a record: another law of capacity, noise kept."""

    def change(record: Record) -> Record:
        sizes = _whole_sizes({row["n"] for row in record.rows}, factor(record))
        return with_rows(record, [{**row, "n": sizes[row["n"]]} for row in record.rows])

    return change


def _whole_sizes(sizes: set[int], factor: float) -> dict[int, int]:
    """Whole numbers as in a real Search; two sizes never become one."""
    found: dict[int, int] = {}
    for n in sorted(sizes):
        found[n] = max(round(factor * n), max(found.values(), default=1) + 1)
    return found


def anew(draws: int | None = None, **sizes: Any) -> Change:
    """A Check measured again, perhaps at other sizes; its law runs in this process."""

    def change(record: Record) -> Record:
        spec = record.check.model_copy(update={"sizes": {**record.check.sizes, **sizes}})
        law = law_named(spec.law)
        if law is None:
            raise EngramError(f"record {record.id}: no law is called {spec.law!r}")
        rows = law(draws=spec.draws if draws is None else draws, seed=spec.seed, **spec.sizes)
        return with_rows(record, [dict(row) for row in rows], spec)

    return change


@contextmanager
def exchanged(parts: Mapping[str, Wrong]) -> Iterator[None]:
    """While this lasts, parts of the code, by their dotted names, are what `Wrong` makes of them."""
    with ExitStack() as stack:
        for name, wrong in parts.items():
            module, _, part = name.rpartition(".")
            stack.enter_context(_replaced(module, part, wrong))
        yield


@contextmanager
def _replaced(module: str, name: str, wrong: Wrong) -> Iterator[None]:
    place = importlib.import_module(module)
    right = getattr(place, name)
    setattr(place, name, wrong(right))
    try:
        yield
    finally:
        setattr(place, name, right)
