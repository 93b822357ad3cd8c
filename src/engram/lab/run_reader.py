"""The runs of a home as pages see them: lists, rows, pictures and predictions, made once for all pages."""

import re
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any

from engram.errors import EngramError
from engram.lab import pictures
from engram.lab.protocol import Array, Cell, Tokens, View, frame
from engram.lab.protocol import Sequence as SequenceOf
from engram.lab.watched_run import Cache, WatchedRun
from engram.models import Weights
from engram.records.faces import Face, faces
from engram.records.follow import NoWeights
from engram.records.index import lines
from engram.records.kept import Kept

RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
MOST_RUNS = 64  # that are followed at once
OF_FACE = ("words", "began", "seconds", "tags", "note", "headline")
LISTED = ("id", "title", "seed", "state", "rows", "steps", "events", "family", "parts_at")


class RunReader:
    def __init__(self, home: Path, computed: Callable[[str], dict[int, Weights]] = lambda run: {}):
        self.home, self._computed = home, computed
        self._runs = Cache()
        self._made = Cache()

    def run(self, name: str) -> WatchedRun:
        """A training of this home, by its whole name."""
        return self._runs.get_or(name, lambda: self._follow(name), most=MOST_RUNS)

    def _follow(self, name: str) -> WatchedRun:
        if not RUN.fullmatch(name):
            raise EngramError(f"run: {name!r} is no name of a run")
        folder = self.home / name
        if not (folder / "spec.json").exists():
            raise EngramError(f"run: no run {name!r} here")
        if Kept(folder).kind != "Train":
            raise EngramError(f"run: {name!r} is no training")
        return WatchedRun(folder, self._computed(name))

    def seen(self, name: str, since: float | None = None) -> WatchedRun:
        """The same, with what is new of it."""
        run = self.run(name)
        run.look(since)
        return run

    def runs(self) -> dict[str, Any]:
        """All trainings, in the words of `engram runs ls`; of those that cannot be read it also tells why."""
        trainings = [line for line in lines(self.home) if line.kind == "Train" and line.why is None]
        known = {face.run: face for face in faces(self.home)}
        listed = [
            {name: getattr(line, name) for name in LISTED} | said_of(known.get(line.id) or Face(line.id, line.state))
            for line in trainings
        ]
        return {"t": "runs", "runs": listed, "presets": []}

    def frame(self, view: View, name: str, step: int) -> tuple[Any, bytes]:
        """A picture with what it is a picture of."""
        run = self.run(view.run)
        minus = None if view.minus is None else run.stored_step(view.minus)
        attends = name.startswith("attention:")
        tokens, heads = (view.tokens, view.ablate) if attends else (None, ())
        key = (view.run, step, name, minus, view.dtype, tokens, heads, run.version(step))
        header = {"t": "picture", "run": run.id, "step": step, "picture": name, "minus": minus}
        header |= {"tokens": len(tokens) if tokens else None}

        def made() -> bytes:
            values = run.values(step, name, minus, tokens, heads)
            best = values.argmax(axis=1).tolist() if minus is None and run.has_right_answers(name) else None
            return frame(header | {"best": best}, values, view.dtype)

        return key, self._made.get_or(key, made)

    def cell(self, asked: Cell) -> dict[str, Any]:
        run = self.seen(asked.run)
        step = run.stored_step(asked.step)
        minus = None if asked.minus is None else run.stored_step(asked.minus)
        values = run.values(step, asked.picture, minus)  # refuses an unknown picture
        entry = next(entry for entry in run.about["pictures"] if entry["name"] == asked.picture)
        found = pictures.cell(values, asked.row, asked.column, entry["diagonal"] and minus is None)
        key = pictures.mark(entry["rows"], asked.row)
        value, best = (pictures.mark(entry["columns"], i) for i in (asked.column, found["best"]))
        return {"t": "cell", "id": asked.id, "step": step} | found | {"key": key, "value": value, "best": best}

    def array(self, asked: Array) -> bytes:
        """A picture as numbers that nothing was taken from."""
        run = self.seen(asked.run)
        step = run.stored_step(asked.step)
        minus = None if asked.minus is None else run.stored_step(asked.minus)
        attends = asked.picture.startswith("attention:")
        tokens, heads = (asked.tokens, asked.ablate) if attends else (None, ())
        values = run.values(step, asked.picture, minus, tokens, heads)
        header = {"t": "array", "id": asked.id, "run": run.id, "step": step, "picture": asked.picture, "minus": minus}
        return frame(header, values, "f4")

    def sequence(self, asked: SequenceOf) -> dict[str, Any]:
        run = self.seen(asked.run)
        step = run.stored_step(asked.step)
        given = asked.text is not None or asked.tokens is not None
        tokens = tuple(run.tokens_of(asked.text, asked.tokens)) if given else None
        return {"t": "sequence", "id": asked.id, "step": step} | run.predictions(step, tokens, asked.ablate)

    def tokens(self, asked: Tokens) -> dict[str, Any]:
        """Which tokens a text is; a run need not have weights for that."""
        return {"t": "tokens", "id": asked.id, "tokens": self.run(asked.run).tokens_of(asked.text, None)}

    def reading(self, view: View, step: int) -> tuple[Any, dict[str, Any]]:
        """What the model predicts on the sequence of a view, with what it depends on."""
        key = (view.run, step, "reading", view.tokens, view.ablate, self.run(view.run).version(step))
        return key, self._made.get_or(key, lambda: self._read(view, step))

    def _read(self, view: View, step: int) -> dict[str, Any]:
        """With what is wrong, where a model makes no predictions on this sequence."""
        run = self.run(view.run)
        about = {"t": "reading", "run": run.id, "step": step, "error": None}
        try:
            return about | run.predictions(step, view.tokens, view.ablate)
        except NoWeights:
            raise
        except EngramError as error:
            return about | {"error": str(error)}


def said_of(face: Face) -> dict[str, Any]:
    """JSON knows no infinity, which the last value of a run that diverged may be."""
    said = {name: getattr(face, name) for name in OF_FACE}
    return said | {"headline": {name: value if isfinite(value) else None for name, value in face.headline.items()}}
