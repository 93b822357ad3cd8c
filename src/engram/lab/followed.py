"""A run that somebody looks at: looked at once for all pages of a moment."""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from engram.claims.readings import MEMORIES
from engram.errors import EngramError
from engram.lab import pictures
from engram.models.memories import heads_of
from engram.records.files import Row
from engram.records.follow import Follower
from engram.records.shelf import state
from engram.specs import Train
from engram.specs.events import interventions
from engram.tasks.batch import marks_of

POLL = 0.03  # seconds
KEPT = 512  # pictures and readings
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
        self.wrong: str | None = None  # why its rows cannot be read
        self.births: list[dict[str, Any]] = []
        self._looked = -POLL
        self._digest = 0  # when the run ended, as its folder has it
        self._models = Lasting()

    @cached_property
    def spec(self) -> Train:
        return self.follower.first.train

    def look(self, since: float | None = None) -> None:
        """What is new, unless it was looked for since a moment; without one, at most every POLL seconds."""
        if self._looked >= (time.monotonic() - POLL if since is None else since):
            return
        self._looked = time.monotonic()
        self._see_state()  # first: of a run that is over, all rows are told
        self.follower.look_for_weights()
        try:
            news, self.wrong = self.follower.poll(), None
        except EngramError as error:
            news, self.wrong = [], str(error)
        if news:
            self.births = births_in(self.follower.rows)

    def _see_state(self) -> None:
        """A record that has ended is checked once."""
        try:
            ended = (self.follower.folder / "digest.json").stat().st_mtime_ns
        except OSError:
            ended = 0
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
            "letters": list(marks_of(spec.task)) if hasattr(spec.task, "alphabet") else None,
            "heads": list(heads_of(spec.model)),
            "pictures": pictures.catalogue(spec),
            "columns": columns_of(spec),
            "levels": pictures.levels(spec),
            "events": events_of(spec),
            "interventions": interventions(spec),
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
    there = {picture["name"].partition(":")[2] for picture in pictures.catalogue(spec)}
    recalls = {column: title for column, title in MEMORIES.items() if column.split(".")[1] in there}
    return found + [{"name": name, "title": title, "group": "recall"} for name, title in recalls.items()]


def events_of(spec: Train) -> list[dict[str, Any]]:
    return [{"step": event.step, "what": event.sentence} for event in spec.events]
