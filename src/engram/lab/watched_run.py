"""A run that somebody looks at: looked at once for all pages of a moment."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from engram.errors import EngramError
from engram.lab import pictures
from engram.models import Model
from engram.models.memories import heads_of
from engram.models.trace import Head
from engram.probes.columns import axis, curves, memories
from engram.records.files import Row
from engram.records.follow import Follower
from engram.records.shelf import state
from engram.specs import Train
from engram.specs.events import interventions
from engram.tasks.batch import marks_of

POLL = 0.03  # seconds
KEPT = 512  # pictures and readings
Made = TypeVar("Made")
Tokens = Sequence[int] | None  # None: a sequence of the task's own


class Cache(OrderedDict[Any, Any]):
    """What was made last is kept."""

    def get_or(self, key: Any, make: Callable[[], Made], most: int = KEPT) -> Made:
        if key not in self:
            self[key] = make()
        self.move_to_end(key)
        while len(self) > most:
            self.popitem(last=False)
        return self[key]


class WatchedRun(Follower):
    """A run that somebody looks at."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.id = folder.name
        self.state = "part-done"
        self.wrong: str | None = None  # why its rows cannot be read
        self.births: list[dict[str, Any]] = []
        self._looked = -POLL
        self._digest = 0  # when the run ended, as its folder has it
        self._models = Cache()
        self._measured: dict[str, None] = {}  # columns with a number in them, in the order in which they came

    def look(self, since: float | None = None) -> None:
        """What is new, unless it was looked for since a moment; without one, at most every POLL seconds."""
        if self._looked >= (time.monotonic() - POLL if since is None else since):
            return
        self._looked = time.monotonic()
        self._see_state()  # first: of a run that is over, all rows are told
        self.look_for_weights()
        try:
            news, self.wrong = self.poll(), None
        except EngramError as error:
            news, self.wrong = [], str(error)
        if news:
            self._measured |= dict.fromkeys(name for row in news for name, value in row.items() if _is_number(value))
            self.births = births_in(self.rows, self._measured)

    def _see_state(self) -> None:
        """A record that has ended is checked once."""
        try:
            ended = (self.folder / "digest.json").stat().st_mtime_ns
        except OSError:
            ended = 0
        if not ended or ended != self._digest:
            self.state, self._digest = state(self.record), ended

    def model(self, step: int) -> Model:
        return self._models.get_or(step, partial(super().model, step), most=24)

    @cached_property
    def _own(self) -> np.ndarray:
        return pictures.own_sequence(self.spec)

    def _sequence(self, tokens: Tokens) -> np.ndarray:
        return self._own if tokens is None else pictures.tokens_of(self.spec, None, tokens)

    def values(
        self, step: int, name: str, minus: int | None, tokens: Tokens = None, heads: Sequence[Head] = ()
    ) -> np.ndarray:
        """A picture; less that of another step."""
        sequence = self._sequence(tokens)
        found = pictures.picture(self.spec, self.model(step), name, sequence, heads)
        return found if minus is None else found - pictures.picture(self.spec, self.model(minus), name, sequence, heads)

    def predictions(self, step: int, tokens: Tokens, heads: Sequence[Head]) -> dict[str, Any]:
        return pictures.predictions(self.spec, self.model(step), self._sequence(tokens), heads)

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
            "levels": pictures.levels(spec),
            "events": events_of(spec),
            "interventions": interventions(spec),
        }

    def columns(self) -> dict[str, Any]:
        """What can be drawn so far."""
        found = [c._asdict() | {"axis": axis(c.group)} for c in curves(self._measured)]
        return {"t": "columns", "run": self.id, "columns": found}

    def rows_from(self, start: int) -> dict[str, Any] | None:
        """Rows from a step on, by column; None if there are none."""
        rows = self.rows[start:]
        if not rows:
            return None
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row.get(name) for row in rows] for name in names}
        return {"t": "rows", "run": self.id, "from": rows[0]["step"], "columns": columns}

    def now(self, trainer: dict[str, Any]) -> dict[str, Any]:
        return {
            "t": "state",
            "run": self.id,
            "state": self.state,
            "step": self.rows[-1]["step"] if self.rows else None,
            "snapshots": self.stored,
            "live": next(iter(self.live), None),
            "births": self.births,
            "trainer": trainer,
        }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def births_in(rows: Sequence[Row], columns: Iterable[str]) -> list[dict[str, Any]]:
    """When each memory first recalls more than half of what it is asked."""
    found = []
    for memory in memories(columns):
        born = next((row["step"] for row in rows if (row.get(memory.name) or 0.0) > 0.5), None)
        found += [] if born is None else [{"step": born, "what": f"{memory.title} is born"}]
    return found


def events_of(spec: Train) -> list[dict[str, Any]]:
    return [{"step": event.step, "what": event.sentence} for event in spec.events]
