"""What all pages share: runs that are followed, pictures that were drawn, the way to the trainer."""

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from engram.errors import EngramError
from engram.lab import pictures, presets
from engram.lab.desk import NOBODY, Desk
from engram.lab.protocol import Cell, Intervene, Start, View, frame
from engram.lab.protocol import Sequence as SequenceOf
from engram.models.transformer import Head
from engram.records import Record, Train
from engram.records.encode import digest_of, encode, user_code
from engram.records.files import Row
from engram.records.follow import Follower
from engram.records.readings import MEMORIES
from engram.records.shelf import all_records, state
from engram.show.sentences import sentence

RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
POLL = 0.03  # seconds between looks at files; all pages share what was seen
KEPT = 512  # pictures
MOST_RUNS = 64  # that are followed at once
Made = TypeVar("Made")


class Lasting(OrderedDict[Any, Any]):
    """What was made last is kept."""

    def get_or(self, key: Any, make: Callable[[], Made], most: int = KEPT) -> Made:
        if key not in self:
            self[key] = make()
        self.move_to_end(key)
        while len(self) > most:
            self.popitem(last=False)
        return self[key]


class Followed:
    """A run that somebody looks at."""

    def __init__(self, folder: Path):
        self.follower = Follower(folder)
        self.id = folder.name
        self.state = "part-done"
        self.births: list[dict[str, Any]] = []
        self._looked = -POLL
        self._digest = 0  # when the run ended, as its folder has it
        self._models = Lasting()

    @cached_property
    def spec(self) -> Train:
        return self.follower.first.train

    def look(self) -> None:
        """What is new, at most every POLL seconds."""
        if time.monotonic() - self._looked < POLL:
            return
        self._see_state()  # first: of a run that is over, all rows are told
        if self.follower.poll():
            self.births = births_in(self.follower.rows)
        self.follower.look()
        self._looked = time.monotonic()

    def _see_state(self) -> None:
        """A record that has ended is checked once."""
        digest = self.follower.folder / "digest.json"
        ended = digest.stat().st_mtime_ns if digest.exists() else 0
        if not ended or ended != self._digest:
            self.state, self._digest = state(self.follower.record), ended

    def model(self, step: int) -> Any:
        return self._models.get_or(step, lambda: self.follower.model(step), most=24)

    @cached_property
    def own(self) -> np.ndarray:
        return pictures.own_sequence(self.spec)

    @cached_property
    def about(self) -> dict[str, Any]:
        spec = self.spec
        return {
            "t": "about",
            "run": self.id,
            "title": spec.title,
            "steps": spec.steps,
            "seed": spec.seed,
            "N": spec.task.N,
            "T": spec.task.T,
            "letters": pictures.marks_of(spec),
            "matrices": list(spec.plan.trained),
            "heads": pictures.heads_of(spec),
            "pictures": pictures.catalogue(spec),
            "columns": columns_of(spec),
            "levels": pictures.levels(spec),
            "events": events_of(spec),
            "settings": presets.fields_of(spec, presets.CHANGE),
        }

    def rows(self, start: int) -> dict[str, Any] | None:
        """Rows from a step on, by column; None if there are none."""
        rows = self.follower.rows[start:]
        if not rows:
            return None
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row.get(name) for row in rows] for name in names}
        return {"t": "rows", "run": self.id, "from": rows[0]["step"], "columns": columns}

    def now(self, trainer: dict[str, Any]) -> dict[str, Any]:
        rows = self.follower.rows
        return {
            "t": "state",
            "run": self.id,
            "state": self.state,
            "step": rows[-1]["step"] if rows else None,
            "snapshots": self.follower.stored,
            "live": self.follower.live_step,
            "births": self.births,
            "trainer": trainer,
        }


def births_in(rows: Sequence[Row]) -> list[dict[str, Any]]:
    found = []
    for column, name in MEMORIES.items():
        born = next((row["step"] for row in rows if (row.get(column) or 0.0) > 0.5), None)
        found += [] if born is None else [{"step": born, "what": f"{name} is born"}]
    return found


def columns_of(spec: Train) -> list[dict[str, str]]:
    """Curves worth a line, with the words for them; what else is measured has the name of its column."""
    groups = {"in_context": "in context", "first": "first visits", "global": "global", "answer": "answers"}
    read = [group for group in spec.task.groups if spec.plan.loss in (group, "all")]
    found = [{"name": "loss", "title": "loss", "group": "loss"}] if len(read) > 1 else []
    for kind in ("loss", "accuracy"):
        found += [{"name": f"{kind}.{g}", "title": f"{kind} {groups.get(g, g)}", "group": kind} for g in read]
    return found + [{"name": name, "title": title, "group": "recall"} for name, title in MEMORIES.items()]


def events_of(spec: Train) -> list[dict[str, Any]]:
    return [{"step": event.step, "what": sentence(event)} for event in spec.events]


class Hub:
    def __init__(self, home: Path):
        self.home, self.desk = home, Desk(home)
        self._runs = Lasting()
        self._made = Lasting()
        self._over: dict[str, dict[str, Any]] = {}  # what is said about runs that have ended
        self._trainer, self._asked = NOBODY, -POLL

    def trainer(self) -> dict[str, Any]:
        """What the trainer does, asked at most every POLL seconds."""
        if time.monotonic() - self._asked > POLL:
            self._trainer, self._asked = self.desk.now(), time.monotonic()
        return self._trainer

    def look_again(self) -> None:
        """An order was obeyed: what was seen before is old."""
        self._asked = -POLL

    def run(self, name: str) -> Followed:
        """A training of this home, by its whole name."""
        return self._runs.get_or(name, lambda: self._follow(name), most=MOST_RUNS)

    def _follow(self, name: str) -> Followed:
        if not RUN.fullmatch(name):
            raise EngramError(f"run: {name!r} is no name of a run")
        folder = self.home / name
        if not (folder / "spec.json").exists():
            raise EngramError(f"run: no run {name!r} here")
        found = Followed(folder)
        _ = found.spec  # refuses what is no training
        return found

    def seen(self, name: str) -> Followed:
        """The same, with what is new of it."""
        run = self.run(name)
        run.look()
        return run

    def runs(self) -> dict[str, Any]:
        listed = []
        for record in all_records(self.home):
            try:
                line = self._over.get(record.id) or (self._line(record) if isinstance(record.spec, Train) else None)
            except EngramError:
                continue  # `engram runs ls` tells what is wrong with it
            listed += [line] if line else []
            if line and line["state"] == "finished":
                self._over[record.id] = line
        return {"t": "runs", "runs": listed, "presets": []}

    def _line(self, record: Record) -> dict[str, Any]:
        spec = record.train
        plain = spec.model_copy(update={"events": ()})
        return {
            "id": record.id,
            "title": spec.title,
            "seed": spec.seed,
            "state": state(record),
            "rows": len(self._rows(record)),
            "steps": spec.steps,
            "events": events_of(spec),
            "family": digest_of(plain)[:10],
            "parts_at": spec.events[-1].step if spec.events else 0,
        }

    def _rows(self, record: Record) -> Sequence[Any]:
        return self._runs[record.id].follower.rows if record.id in self._runs else record.rows

    def frame(self, view: View, name: str, step: int) -> tuple[Any, bytes]:
        """A picture with what it is a picture of."""
        run = self.run(view.run)
        minus = None if view.minus is None else run.follower.stored_step(view.minus)
        attends = name.startswith("attention:")
        tokens = view.tokens if attends else None
        heads = view.ablate if attends else ()
        key = (view.run, step, name, minus, view.dtype, tokens, heads)
        return key, self._made.get_or(key, lambda: self._draw(run, *key[1:]))

    def _draw(
        self,
        run: Followed,
        step: int,
        name: str,
        minus: int | None,
        dtype: str,
        tokens: tuple[int, ...] | None,
        heads: tuple[Head, ...],
    ) -> bytes:
        values = self.values(run, step, name, minus, tokens, heads)
        header = {"t": "picture", "run": run.id, "step": step, "picture": name, "minus": minus}
        return frame(header | {"tokens": len(tokens) if tokens else None}, values, dtype)

    def values(
        self,
        run: Followed,
        step: int,
        name: str,
        minus: int | None = None,
        tokens: tuple[int, ...] | None = None,
        heads: tuple[Head, ...] = (),
    ) -> np.ndarray:
        sequence = run.own if tokens is None else pictures.tokens_of(run.spec, None, tokens)
        found = pictures.picture(run.spec, run.model(step), name, sequence, heads)
        return found if minus is None else found - pictures.picture(run.spec, run.model(minus), name, sequence, heads)

    def cell(self, asked: Cell) -> dict[str, Any]:
        run = self.seen(asked.run)
        step = run.follower.stored_step(asked.step)
        minus = None if asked.minus is None else run.follower.stored_step(asked.minus)
        entry = next((e for e in run.about["pictures"] if e["name"] == asked.picture), None)
        values = self.values(run, step, asked.picture, minus)
        found = pictures.cell(values, asked.row, asked.column, bool(entry and entry["diagonal"] and minus is None))
        rows, columns = (entry["rows"], entry["columns"]) if entry else ([], [])
        key, value, best = (
            marks[i] if i < len(marks) else str(i)
            for marks, i in ((rows, asked.row), (columns, asked.column), (columns, found["best"]))
        )
        return {"t": "cell", "id": asked.id, "step": step} | found | {"key": key, "value": value, "best": best}

    def sequence(self, asked: SequenceOf) -> dict[str, Any]:
        run = self.seen(asked.run)
        step = run.follower.stored_step(asked.step)
        given = asked.text is not None or asked.tokens is not None
        tokens = pictures.tokens_of(run.spec, asked.text, asked.tokens) if given else run.own
        found = pictures.predictions(run.spec, run.model(step), tokens, asked.ablate)
        return {"t": "sequence", "id": asked.id, "step": step} | found

    def reading(self, view: View, step: int) -> tuple[Any, dict[str, Any]]:
        """What the model predicts on the sequence of a view, with what it depends on."""
        key = (view.run, step, "reading", view.tokens, view.ablate)
        return key, self._made.get_or(key, lambda: self._read(self.run(view.run), step, view.tokens, view.ablate))

    def _read(
        self, run: Followed, step: int, tokens: tuple[int, ...] | None, heads: tuple[Head, ...]
    ) -> dict[str, Any]:
        about = {"t": "reading", "run": run.id, "step": step, "own": tokens is None, "ablate": heads}
        sequence = run.own if tokens is None else pictures.tokens_of(run.spec, None, tokens)
        return about | pictures.predictions(run.spec, run.model(step), sequence, heads)

    def order_of(self, asked: Start | Intervene) -> dict[str, Any]:
        """What the trainer is told. A Spec that cannot be is refused here, an event by the trainer: it knows when."""
        if isinstance(asked, Intervene):
            self.run(asked.run)
            if asked.kind == "change" and asked.fields.get("field") not in presets.CHANGE:
                raise EngramError(f"field: what can change here is {', '.join(presets.CHANGE)}")
            at = {"at": asked.at, "kind": asked.kind, "fields": dict(asked.fields)}
            return {"op": "intervene", "run": asked.run} | at
        if asked.run is not None:
            return {"op": "go", "run": self.run(asked.run).id}
        spec = presets.chosen(asked.preset or "birth.joint", asked.seed, asked.settings)
        return spec_order(spec)


def spec_order(spec: Train) -> dict[str, Any]:
    import base64

    code = {name: base64.b64encode(content).decode() for name, content in user_code(spec).items()}
    return {"op": "start", "spec": encode(spec), "code": code}
