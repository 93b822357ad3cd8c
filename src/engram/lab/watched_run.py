"""A run that somebody looks at: looked at once for all pages of a moment."""

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from engram.errors import EngramError
from engram.experiments.real.birth import BORN as HEAD_BORN
from engram.lab import pictures
from engram.models import Model, Weights
from engram.models.memories import heads_of
from engram.models.trace import Head
from engram.probes.columns import BY_HOPS, DRAWN, axis, column, curves, memories
from engram.records import stored_spec
from engram.records.follow import Follower
from engram.records.index import line_of, state
from engram.records.table import Column, Table
from engram.records.thinning import thinned
from engram.records.trust import Untrusted
from engram.specs.events import interventions
from engram.specs.fields import fields
from engram.tasks.batch import marks_of
from engram.tasks.facts import FactTask

POLL = 0.03  # seconds
KEPT = 512  # pictures and readings
BORN, SOLVED = 0.5, 0.9  # of recall; of accuracy on unseen sequences
HEADS = {"previous": "a previous-token head", "induction": "an induction head"}
FEW = 4  # heads
LONGEST_SETTING = 120  # characters of a value that is told whole
MOST_ROWS = 20_000  # that a page is sent at once
Made = TypeVar("Made")
NOTHING_TO_SEE = {"N": None, "T": None, "letters": None, "model": None, "facts": False} | {
    k: [] for k in ("stages", "heads", "pictures", "levels", "interventions")
}
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
    """A run that somebody looks at.

    computed    weights of steps that are not stored, and yet are at hand
    """

    def __init__(self, folder: Path, computed: dict[int, Weights] | None = None):
        super().__init__(folder)
        self.computed = {} if computed is None else computed  # another thread may add steps, and take them away
        self.id = folder.name
        self.state = "part-done"
        self.wrong: str | None = None  # why its rows cannot be read
        self._births = Births(self.table)
        self._looked = -POLL
        self._digest = 0  # when the run ended, as its folder has it
        self._models = Cache()

    def look(self, since: float | None = None) -> None:
        """What is new, unless it was looked for since a moment; without one, at most every POLL seconds."""
        if self._looked >= (time.monotonic() - POLL if since is None else since):
            return
        self._looked = time.monotonic()
        self._see_state()  # first: of a run that is over, all rows are told
        self.look_for_weights()
        try:
            self.catch_up()
            self.wrong = None
        except EngramError as error:
            self.wrong = str(error)

    def _see_state(self) -> None:
        """A record that has ended is checked once."""
        try:
            ended = (self.folder / "digest.json").stat().st_mtime_ns
        except OSError:
            ended = 0
        if not ended or ended != self._digest:
            self.state, self._digest = state(self.record), ended

    def stored_step(self, step: int | None) -> int:
        if step is None and self.computed:
            return max(super().stored_step(None), *list(self.computed))
        return step if step in self.computed else super().stored_step(step)

    def _weights(self, step: int) -> Weights:
        return self.computed.get(step) or super()._weights(step)

    def model(self, step: int) -> Model:
        return self._models.get_or(step, partial(super().model, step), most=24)

    def version(self, step: int) -> tuple[int, ...]:
        """Weights of a step stay as they are: nothing but the step tells what is seen."""
        return ()

    def tokens_of(self, text: str | None, tokens: Tokens) -> list[int]:
        """A user's own sequence."""
        return pictures.tokens_of(self.spec, text, tokens).tolist()

    @cached_property
    def _own(self) -> np.ndarray:
        return pictures.own_sequence(self.spec)

    def _sequence(self, tokens: Tokens) -> np.ndarray:
        return self._own if tokens is None else pictures.tokens_of(self.spec, None, tokens)

    @property
    def own_tokens(self) -> list[int]:
        """A sequence of the task that training never sees."""
        return self._own.tolist()

    def values(self, step: int, name: str, tokens: Tokens = None, heads: Sequence[Head] = ()) -> np.ndarray:
        """A picture."""
        return pictures.picture(self.spec, self.model(step), name, self._sequence(tokens), heads)

    def predictions(self, step: int, tokens: Tokens, heads: Sequence[Head]) -> dict[str, Any]:
        return pictures.predictions(self.spec, self.model(step), self._sequence(tokens), heads)

    @property
    def untrusted(self) -> str | None:
        """Why there are only curves to see: pictures and predictions need code of the record that may not run here."""
        try:
            _ = self.spec
        except Untrusted as error:
            return str(error)
        return None

    @property
    def about(self) -> dict[str, Any]:
        """From the Spec; of one that may not be built, what lists say."""
        known = self._parts if self.untrusted is None else self._listed | NOTHING_TO_SEE
        return {"t": "about", "run": self.id, "settings": self._settings} | known

    @cached_property
    def _settings(self) -> list[dict[str, Any]]:
        """Every field of the Spec by its dotted name, as it is stored."""
        found = ((name, _as_text(value)) for name, value in stored_spec.fields(self.record.spec_json))
        return [
            {"name": name, "value": _shortened(text), "changed": text != self._defaults.get(name)}
            for name, text in found
        ]

    @cached_property
    def _defaults(self) -> dict[str, str]:
        """Of the fields that have one; of a Spec that may not be built none is known."""
        known = fields(self.spec) if self.untrusted is None else ()
        return {one.field: _as_text(one.default) for one in known if one.default is not None or one.value is None}

    @cached_property
    def _listed(self) -> dict[str, Any]:
        line = line_of(self.record)
        return {"title": line.title, "steps": line.steps, "seed": line.seed, "events": line.events}

    @cached_property
    def _parts(self) -> dict[str, Any]:
        spec = self.spec
        return {
            "title": spec.title,
            "steps": spec.steps,
            "seed": spec.seed,
            "events": [{"step": event.step, "what": event.sentence} for event in spec.events],
            "stages": [{"step": stage.step, "what": stage.sentence} for stage in spec.plan.stages],
            "N": spec.task.N,
            "T": spec.task.T,
            "letters": list(marks_of(spec.task)) if hasattr(spec.task, "alphabet") else None,
            "heads": list(heads_of(spec.model)),
            "pictures": pictures.catalogue(spec),
            "levels": pictures.levels(spec),
            "interventions": interventions(spec),
            "facts": isinstance(spec.task, FactTask),
            "model": _probed(self.id, list(heads_of(spec.model))),
        }

    def columns(self) -> dict[str, Any]:
        """What can be drawn so far."""
        known = curves(self.table.measured)
        found = [c._asdict() | {"axis": axis(c.group), "drawn": c.group in DRAWN} for c in known]
        return {"t": "columns", "run": self.id, "columns": found}

    def rows_from(self, start: int) -> dict[str, Any] | None:
        """Rows from a step on, by column, of very many those that a drawing needs; None if there are none."""
        if start >= len(self.table):
            return None
        return {"t": "rows", "run": self.id, "from": start, "columns": drawn_columns(self.table, start)}

    def has_right_answers(self, picture: str) -> bool:
        """Whether each row of a memory has one right answer that its place does not tell: such answers are listed."""
        return any(entry["name"] == picture and entry["right"] is not None for entry in self.about["pictures"])

    @property
    def _why(self) -> str | None:
        """Why it ended before its time, in the words of its record."""
        return str((self.record.ended or {}).get("end", "")) if self.state == "diverged" else None

    def now(self, trainer: dict[str, Any]) -> dict[str, Any]:
        return {
            "t": "state",
            "run": self.id,
            "state": self.state,
            "step": len(self.table) - 1 if len(self.table) else None,
            "snapshots": self.stored,
            "computed": sorted(list(self.computed)),
            "live": next(iter(self.live), None),
            "why": self._why,
            "births": self._births.so_far(),
            "trainer": trainer,
        }


class Births:
    """When each memory first recalls more than half of what it is asked, and each number of hops is solved.

    On real text, when the first head of a kind passes the level of its kind.
    What was seen is not looked at again.
    """

    def __init__(self, table: Table):
        self._table, self._cuts = table, table.cuts
        self._born: dict[str, int] = {}
        self._seen: dict[str, int] = {}  # measurements, by column

    def so_far(self) -> list[dict[str, Any]]:
        if self._cuts != self._table.cuts:
            self._cuts, self._born, self._seen = self._table.cuts, {}, {}
        known = list(_milestones(self._table.measured))
        for name, level, _ in known:
            if name not in self._born:
                self._look_at(name, self._table.columns[name], level)
        steps: dict[str, list[int]] = {}
        for name, what in ((name, what) for name, _, what in known if name in self._born):
            steps.setdefault(what, []).append(self._born[name])
        return [{"step": min(of), "what": what} for what, of in steps.items()]

    def _look_at(self, name: str, column: Column, level: float) -> None:
        seen = self._seen.get(name, 0)
        above = np.flatnonzero(column.values[seen:] > level)
        self._seen[name] = len(column.values)
        if len(above):
            self._born[name] = int(column.steps[seen + above[0]])


def _probed(run: str, heads: Sequence[Head]) -> dict[str, Any] | None:
    """What a page needs to ask about all heads; None where there are so few that their attention maps show them all."""
    if len(heads) <= FEW:
        return None
    about = {"name": run, "family": "engram", "note": "", "sha256": "", "layers": max(layer for layer, _ in heads)}
    return about | {"matrices": "", "seeds": 3, "text": False, "edits": False, "revisions": 0}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SETTING else f"{text[:LONGEST_SETTING]}… ({len(text)} characters)"


def _milestones(names: Sequence[str]) -> Iterator[tuple[str, float, str]]:
    """By column: a level, and what has happened when it is first above it."""
    for memory in memories(names):
        yield memory.name, BORN, f"{memory.title} is born"
    for hops in (found for found in map(column, names) if found.group == BY_HOPS):
        yield hops.name, SOLVED, f"{hops.title} {'is' if hops.title.endswith('hop') else 'are'} solved"
    for name, kind in ((name, name.partition(".L")[0]) for name in names):
        if kind in HEADS:
            yield name, HEAD_BORN[kind], f"{HEADS[kind]} is born"


def drawn_columns(table: Table, start: int) -> dict[str, list[Any]]:
    """Columns from a step on; where they are long, only rows in which a curve begins, turns or ends."""
    new = {name: table.columns[name].since(start) for name in table.measured}
    kept = np.arange(start, len(table))
    if len(kept) > MOST_ROWS:
        kept = np.unique(np.concatenate([steps[thinned(steps, values)] for steps, values in new.values()]))
    return {"step": kept.tolist()} | {n: _aligned(kept, *curve) for n, curve in new.items() if n != "step"}


def _aligned(kept: np.ndarray, steps: np.ndarray, values: np.ndarray) -> list[float | None]:
    """One value for each row that is kept; None where there is none."""
    found = np.full(len(kept), None, dtype=object)
    inside = np.isin(steps, kept, assume_unique=True)
    found[np.searchsorted(kept, steps[inside])] = values[inside]
    return found.tolist()
