"""Runs as they are, for a page without a lab: what it would be told, and as many pictures as there is room for.

    news       about, columns, rows, state of every run: the messages of the protocol
    pictures   frames of the protocol by run, step and name
    readings   what the model predicts on the sequence of the task, by run and step

Everything is deflated and written in base64. What there is no room for is left out and told.
"""

import base64
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from engram.errors import EngramError
from engram.lab.mailbox import NO_TRAINER
from engram.lab.protocol import VERSION, frame
from engram.lab.run_reader import LISTED, said_of
from engram.lab.watched_run import Births, WatchedRun
from engram.records import Record
from engram.records.faces import face_of
from engram.records.index import line_of, state

ONE_STEP = 0.34  # of the room of a run that the pictures of one step may take

Packed = dict[str, str]  # by name


@dataclass
class Still:
    """What a page without a lab knows.

    told    what was left out, in sentences
    """

    news: str = ""
    pictures: dict[str, dict[int, Packed]] = field(default_factory=dict)
    readings: dict[str, dict[int, str]] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {"v": VERSION} | asdict(self)


class StillRun(WatchedRun):
    """A record as it is now: in a folder, or in a bundle. Nothing of it will change."""

    def __init__(self, record: Record):
        super().__init__(Path(record.id))
        self._record = record
        self.table, self.stored = record.table, record.snapshot_steps
        self.state, self._births = state(record), Births(record.table)

    @property
    def record(self) -> Record:
        return self._record

    @property
    def untrusted(self) -> str | None:
        """Why there are only curves to see: its code may not run here, or is missing, or its Spec cannot be read."""
        try:
            _ = self.spec
        except EngramError as error:
            return str(error)
        return None


def packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 9)).decode()


def _as_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def still(records: Sequence[Record], room: int) -> Still:
    """Trainings, with pictures in at most so many bytes; each has an equal share of them."""
    found = Still()
    runs = [StillRun(record) for record in records]
    told = [_news(run, found, room // len(runs)) for run in runs]
    listed = [{"t": "runs", "runs": [_listed(run.record) for run in runs], "presets": []}]
    found.news = packed(_as_json(listed + [message for messages in told for message in messages]))
    return found


def _listed(record: Record) -> dict[str, Any]:
    line = line_of(record)
    return {name: getattr(line, name) for name in LISTED} | said_of(face_of(record))


def _news(run: StillRun, found: Still, room: int) -> list[dict[str, Any]]:
    """The messages about a run; its pictures go into what was found."""
    about, rows = run.about, run.rows_from(0)
    shown = _pictures(run, [entry["name"] for entry in about["pictures"]], found, room)
    about = about | {"pictures": [entry for entry in about["pictures"] if entry["name"] in shown]}
    kept = sorted(found.pictures.get(run.id, {}))
    now = run.now(NO_TRAINER) | {"snapshots": kept, "computed": []}
    if rows is not None and (few := len(rows["columns"]["step"])) < (all_of_them := len(run.table)):
        which = "those in which a curve begins, turns or ends"
        found.told.append(f"{run.id}: {few} of its {all_of_them} rows are in this file: {which}.")
    if about.get("model"):
        found.told.append(f"{run.id}: the scores of all its heads and what feeds them need `engram lab {run.id}`.")
    about |= {"model": None, "interventions": []}
    return [message for message in (about, run.columns(), rows, now) if message is not None]


def _pictures(run: StillRun, names: Sequence[str], found: Still, room: int) -> set[str]:
    """Pictures and predictions of as many stored steps as fit; the names of those that are there."""
    steps = run.stored if run.untrusted is None else []
    if run.untrusted:
        found.told.append(f"{run.id}: {run.untrusted}")
    elif names and not steps:
        found.told.append(f"{run.id}: no weights are stored, so there are curves and no pictures.")
    if not steps or not names:
        return set()
    fitting = _fitting(run, names, room)
    used, kept = 0, dict[int, Packed]()
    for step in spread(steps, [birth["step"] for birth in run.now(NO_TRAINER)["births"]]):
        made, reading = _frames(run, step, fitting), _reading(run, step)
        used += sum(map(len, made.values())) + len(reading)
        if used > room and kept:
            break
        kept[step] = made
        found.readings.setdefault(run.id, {})[step] = reading
    found.pictures[run.id] = kept
    found.told += _left_out(run, names, fitting, len(kept))
    return set(fitting)


def _left_out(run: StillRun, names: Sequence[str], fitting: Sequence[str], steps: int) -> Iterator[str]:
    """What a reader of the file must know."""
    if missing := [name for name in names if name not in fitting]:
        yield f"{run.id}: too large for this file, and left out: {', '.join(missing)}."
    if steps < len(run.stored):
        which = "the first, the last, those of births, and others evenly between them"
        yield f"{run.id}: pictures of {steps} of its {len(run.stored)} stored steps are in this file: {which}."


def _fitting(run: StillRun, names: Sequence[str], room: int) -> list[str]:
    """In their order, the smallest pictures that one step has room for; there are always some."""
    sizes = {name: len(_frame(run, run.stored[-1], name)) for name in names}
    by_size, used, kept = sorted(names, key=sizes.__getitem__), 0, set[str]()
    for name in by_size:
        used += sizes[name]
        if used <= ONE_STEP * room or not kept:
            kept.add(name)
    return [name for name in names if name in kept]


def _frames(run: StillRun, step: int, names: Sequence[str]) -> Packed:
    return {name: _frame(run, step, name) for name in names}


def _frame(run: StillRun, step: int, name: str) -> str:
    values = run.values(step, name)
    best = values.argmax(axis=1).tolist() if run.has_right_answers(name) else None
    header = {"t": "picture", "run": run.id, "step": step, "picture": name, "minus": None, "tokens": None, "best": best}
    return packed(frame(header, values))


def _reading(run: StillRun, step: int) -> str:
    """What the model predicts, or why it predicts nothing on this sequence."""
    about = {"t": "reading", "run": run.id, "step": step, "error": None}
    try:
        return packed(_as_json(about | run.predictions(step, None, ())))
    except EngramError as error:
        return packed(_as_json(about | {"error": str(error)}))


def spread(steps: Sequence[int], marked: Sequence[int] = ()) -> list[int]:
    """All steps, the most telling first: the last, the first, those at marks, then those that halve what is left.

    >>> spread([0, 1, 2, 4, 8, 16, 32], [5])
    [32, 0, 4, 1, 8, 2, 16]
    """
    at_marks = [max((s for s in steps if s <= mark), default=steps[0]) for mark in marked]
    halves = [steps[i] for i in _halves(0, len(steps) - 1)]
    return list(dict.fromkeys([steps[-1], steps[0], *at_marks, *halves]))


def _halves(low: int, high: int) -> Iterator[int]:
    """Indices between two others, the middle first, level by level."""
    stretches = [(low, high)]
    while stretches:
        a, b = stretches.pop(0)
        middle = (a + b) // 2
        if middle > a:
            yield middle
            stretches += [(a, middle), (middle, b)]
