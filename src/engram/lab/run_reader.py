"""The runs of a home as pages see them: lists, rows, pictures and predictions, made once for all pages."""

import re
from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from engram.errors import EngramError
from engram.lab import pictures
from engram.lab.protocol import Array, Cell, View, frame
from engram.lab.protocol import Sequence as SequenceOf
from engram.lab.protocol import Tokens as TokensOf
from engram.lab.watched_run import Cache, Tokens, WatchedRun
from engram.models import Head, Weights
from engram.records.faces import Face, faces
from engram.records.follow import NoWeights
from engram.records.index import lines
from engram.records.kept import Kept

RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
MOST_RUNS = 64  # that are followed at once
OF_FACE = ("words", "began", "seconds", "tags", "note", "headline")
LISTED = ("id", "title", "seed", "state", "rows", "steps", "events", "family", "parts_at", "seedless")

Moment = tuple[Any, int]  # a run, and one of its steps


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
        run, less = self.run(view.run), self._subtracted(view)
        tokens, heads = (view.tokens, view.ablate) if name.startswith("attention:") else (None, ())
        key = (view.run, step, name, less and (less[0].id, less[1]), view.dtype, tokens, heads, run.version(step))
        header = {
            "t": "picture",
            "run": run.id,
            "step": step,
            "picture": name,
            "tokens": len(tokens) if tokens else None,
        }

        def made() -> bytes:
            values = difference(run, step, less, name, tokens, heads)
            best = values.argmax(axis=1).tolist() if less is None and run.has_right_answers(name) else None
            return frame(header | named(run, less) | {"best": best}, values, view.dtype)

        return key, self._made.get_or(key, made)

    def _subtracted(self, asked: View | Cell | Array) -> Moment | None:
        """Of which run, and at which step."""
        if asked.minus is None:
            return None
        other = self.seen(asked.minus_run or asked.run)
        return other, other.stored_step(asked.minus)

    def shown(self, view: View) -> View:
        """Where B is shown, the view of B; attention stays on the sequence of A, so that both can be compared."""
        if view.shows == "run" or view.minus is None:
            return view
        run, other = self.run(view.run), self.run(view.minus_run or view.run)
        tokens = view.tokens if other is run else view.tokens or tuple(run.own_tokens)
        b = {"run": other.id, "step": view.minus, "minus": None, "minus_run": None, "shows": "run", "tokens": tokens}
        return view.model_copy(update=b)

    def cell(self, asked: Cell) -> dict[str, Any]:
        run = self.seen(asked.run)
        step, less = run.stored_step(asked.step), self._subtracted(asked)
        values = difference(run, step, less, asked.picture)  # refuses an unknown picture
        entry = next(entry for entry in run.about["pictures"] if entry["name"] == asked.picture)
        found = pictures.cell(values, asked.row, asked.column, entry["diagonal"] and less is None)
        key = pictures.mark(entry["rows"], asked.row)
        value, best = (pictures.mark(entry["columns"], i) for i in (asked.column, found["best"]))
        return {"t": "cell", "id": asked.id, "step": step} | found | {"key": key, "value": value, "best": best}

    def array(self, asked: Array) -> bytes:
        """A picture as numbers that nothing was taken from."""
        run = self.seen(asked.run)
        step, less = run.stored_step(asked.step), self._subtracted(asked)
        attends = asked.picture.startswith("attention:")
        tokens, heads = (asked.tokens, asked.ablate) if attends else (None, ())
        values = difference(run, step, less, asked.picture, tokens, heads)
        header = {"t": "array", "id": asked.id, "run": run.id, "step": step, "picture": asked.picture}
        return frame(header | named(run, less), values, "f4")

    def sequence(self, asked: SequenceOf) -> dict[str, Any]:
        run = self.seen(asked.run)
        step = run.stored_step(asked.step)
        given = asked.text is not None or asked.tokens is not None
        tokens = tuple(run.tokens_of(asked.text, asked.tokens)) if given else None
        return {"t": "sequence", "id": asked.id, "step": step} | run.predictions(step, tokens, asked.ablate)

    def tokens(self, asked: TokensOf) -> dict[str, Any]:
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


def difference(
    run: Any, step: int, less: Moment | None, name: str, tokens: Tokens = None, heads: Sequence[Head] = ()
) -> np.ndarray:
    """A picture; less that of another moment, on the same sequence."""
    if less is None:
        return run.values(step, name, tokens, heads)
    other, minus = less
    if other is not run and name.startswith("attention:"):
        tokens = tokens or run.own_tokens
    a, b = run.values(step, name, tokens, heads), other.values(minus, name, tokens, heads)
    if a.shape != b.shape:
        sizes = [" × ".join(map(str, picture.shape)) for picture in (a, b)]
        raise EngramError(f"minus_run: {name} is {sizes[0]} in {run.id}, but {sizes[1]} in {other.id}")
    return a - b


def named(run: Any, less: Moment | None) -> dict[str, Any]:
    """What was subtracted, in the header of a frame; the run where it is another one."""
    other, minus = less or (run, None)
    return {"minus": minus, "minus_run": None if other is run else other.id}


def said_of(face: Face) -> dict[str, Any]:
    """JSON knows no infinity, which the last value of a run that diverged may be."""
    said = {name: getattr(face, name) for name in OF_FACE}
    return said | {"headline": {name: value if isfinite(value) else None for name, value in face.headline.items()}}
