"""The runs of a home as pages see them: lists, rows, pictures and predictions, made once for all pages."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engram.errors import EngramError
from engram.lab import pictures
from engram.lab.protocol import Cell, Tokens, View, frame
from engram.lab.protocol import Sequence as SequenceOf
from engram.lab.watched_run import Cache, WatchedRun, events_of
from engram.models.trace import Head
from engram.records import Record
from engram.records.follow import NoWeights
from engram.records.shelf import all_records, state
from engram.specs import Train
from engram.specs.encode import digest_of

RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
MOST_RUNS = 64  # that are followed at once


class RunReader:
    def __init__(self, home: Path):
        self.home = home
        self._runs = Cache()
        self._made = Cache()
        self._over: dict[str, dict[str, Any]] = {}  # what is said about runs that have ended

    def run(self, name: str) -> WatchedRun:
        """A training of this home, by its whole name."""
        return self._runs.get_or(name, lambda: self._follow(name), most=MOST_RUNS)

    def _follow(self, name: str) -> WatchedRun:
        if not RUN.fullmatch(name):
            raise EngramError(f"run: {name!r} is no name of a run")
        folder = self.home / name
        if not (folder / "spec.json").exists():
            raise EngramError(f"run: no run {name!r} here")
        found = WatchedRun(folder)
        _ = found.spec  # refuses what is no training
        return found

    def seen(self, name: str, since: float | None = None) -> WatchedRun:
        """The same, with what is new of it."""
        run = self.run(name)
        run.look(since)
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
        run: WatchedRun,
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
        run: WatchedRun,
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
        tokens = tuple(pictures.tokens_of(run.spec, asked.text, asked.tokens).tolist()) if given else None
        return {"t": "sequence", "id": asked.id, "step": step} | self._predictions(run, step, tokens, asked.ablate)

    def tokens(self, asked: Tokens) -> dict[str, Any]:
        """Which tokens a text is; a run need not have weights for that."""
        found = pictures.tokens_of(self.run(asked.run).spec, asked.text, None)
        return {"t": "tokens", "id": asked.id, "tokens": found.tolist()}

    def reading(self, view: View, step: int) -> tuple[Any, dict[str, Any]]:
        """What the model predicts on the sequence of a view, with what it depends on."""
        key = (view.run, step, "reading", view.tokens, view.ablate)
        return key, self._made.get_or(key, lambda: self._read(view, step))

    def _read(self, view: View, step: int) -> dict[str, Any]:
        """With what is wrong, where a model makes no predictions on this sequence."""
        run = self.run(view.run)
        about = {"t": "reading", "run": run.id, "step": step, "error": None}
        try:
            return about | self._predictions(run, step, view.tokens, view.ablate)
        except NoWeights:
            raise
        except EngramError as error:
            return about | {"error": str(error)}

    def _predictions(
        self, run: WatchedRun, step: int, tokens: tuple[int, ...] | None, heads: tuple[Head, ...]
    ) -> dict[str, Any]:
        sequence = run.own if tokens is None else pictures.tokens_of(run.spec, None, tokens)
        return pictures.predictions(run.spec, run.model(step), sequence, heads)
