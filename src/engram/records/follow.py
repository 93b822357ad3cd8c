"""Following a run while a process writes it: the one way in which terminal, lab and report look at runs."""

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from engram.errors import EngramError
from engram.models import Model, Weights
from engram.plain import open_plain
from engram.records.files import LIVE, Row, corrupt, new_lines
from engram.records.record import Record
from engram.records.sealed import unseal
from engram.records.table import Table, naming_damage, step_of
from engram.records.weights import initial_weights, model_at
from engram.specs import Train


class NoWeights(EngramError):
    """The run has no weights yet, or no longer those of this step."""


class Follower:
    """One run: its rows so far, and its weights at any stored step or at the newest there is.

    `poll` finds new rows, `look_for_weights` new weights: until it is called (again) nothing of them is read.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.table = Table()
        self.stored: list[int] = []  # steps whose weights are stored
        self.live: dict[int, Weights] = {}  # by step, what a trainer shows while it is watched
        self._read = 0
        self._live_file: tuple[int, ...] = ()

    @property
    def record(self) -> Record:
        """The record as it is now; a Record keeps what it has read."""
        return Record(self.folder)

    @cached_property
    def spec(self) -> Train:
        return self.record.train

    @cached_property
    def _initial(self) -> Weights:
        return initial_weights(self.spec)

    def poll(self) -> Iterator[Row]:
        """New rows; a resumed run may have been cut back, and then some of them come again."""
        for lines in self._news():
            with naming_damage(self.folder):
                rows = self.table.add(lines)
            yield from rows

    def catch_up(self) -> None:
        """The same for those who need the table only: long runs are read faster."""
        for lines in self._news():
            with naming_damage(self.folder):
                self.table.add_text(b"\n".join(lines) + b"\n")

    def _news(self) -> Iterator[list[bytes]]:
        """New lines, some at a time; what will come again has left the table."""
        path = self.folder / "rows.jsonl"
        try:
            start = self._read if path.stat().st_size >= self._read else 0
        except OSError:
            return
        while True:
            lines, end = self._new_lines(path, start)
            if not lines:
                return
            with naming_damage(self.folder):
                self.table.cut(step_of(lines[0]))
            yield lines
            self._read = start = end  # only what was taken in: a wrong line is named at every look

    def _new_lines(self, path: Path, start: int) -> tuple[list[bytes], int]:
        try:
            return new_lines(path, start)
        except FileNotFoundError:  # removed since: whoever writes it says so
            return [], start
        except OSError as error:
            raise corrupt(self.folder, f"rows.jsonl is missing or unreadable ({error.strerror})") from None

    def look_for_weights(self) -> None:
        """Which weights there are now; those of a file that is still the same are kept."""
        self.stored = self.record.snapshot_steps
        try:
            with open_plain(self.folder / LIVE) as file:  # one look: the file may be replaced at any moment
                about = os.fstat(file.fileno())
                this = (about.st_ino, about.st_mtime_ns, about.st_size)
                if this != self._live_file:
                    self.live, self._live_file = _shown(file.read()), this
        except OSError:
            self.live, self._live_file = {}, ()

    def stored_step(self, step: int | None) -> int:
        """The last step with weights up to this one; None: the newest."""
        known = [s for s in (*self.stored, *self.live) if step is None or s <= step]
        if not known:
            raise NoWeights(f"run {self.folder.name} has no weights yet")
        return max(known)

    def model(self, step: int) -> Model:
        """The model at a stored step, or at the live one."""
        return model_at(self.spec, step, self._initial, self._weights(step))

    def weights(self, step: int) -> Weights:
        """All weights at a stored step, or at the live one; those of heads that are ablated are still there."""
        first = self._initial
        return first | {name: value.to(first[name].dtype) for name, value in self._weights(step).items()}

    def _weights(self, step: int) -> Weights:
        if step in self.live:
            return self.live[step]
        if step not in self.stored:
            raise NoWeights(f"run {self.folder.name} has moved on from step {step}")
        return self.record.snapshot(step)


def _shown(content: bytes) -> dict[int, Weights]:
    """The weights of a live file, by their step; none if it is unreadable."""
    try:
        weights, about = unseal(content)
        return {int(about["step"]): weights}
    except (KeyError, ValueError):
        return {}
