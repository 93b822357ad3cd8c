"""Writing a record: one process per run, rows appended, state replaced, resumed where it stopped."""

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from safetensors.torch import save as tensor_bytes

from engram.errors import EngramError
from engram.models import Weights
from engram.records import files
from engram.records.files import Row, corrupt, writing_to
from engram.records.record import Record
from engram.specs.encode import encode, refuse_if_unreadable, user_code
from engram.specs.spec import Search, Spec, Train, run_id

SECONDS_BETWEEN_STATES = 20.0


def write_spec(spec: Spec, folder: Path) -> None:
    """The first files of a run: what it is."""
    for name, content in user_code(spec).items():
        files.replace(folder / "code" / name, content)
    files.write_json(folder / "spec.json", encode(spec))


def note(folder: Path, step: int, order: dict[str, Any]) -> None:
    """A command that reached the run in the lab, with the step at which it took effect."""
    about = {"step": step} | {key: order[key] for key in ("op", "kind", "fields", "value") if key in order}
    with suppress(OSError), (folder / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(about) + "\n")


class Writer:
    """The one process that writes a run; a context manager that holds its lock."""

    def __init__(self, spec: Spec, home: Path, env: dict[str, Any]):
        self.folder = home / run_id(spec)
        self.spec, self.env = spec, env
        self.record = Record(self.folder)
        self.sealed = False
        self.step, self.state, self.events = 0, {}, 0
        self._seconds_before = 0.0

    def __enter__(self) -> "Writer":
        with writing_to(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(self.folder / "lock", timeout=1, poll_interval=0.01)  # a look holds it briefly
            self._take_lock()
            try:
                self._write_spec()
                self.sealed = (self.folder / "digest.json").exists()
                if not self.sealed:
                    self._resume()
                    self._write_env()
            except BaseException:
                self._lock.release()
                raise
        return self

    def __exit__(self, *error: object) -> None:
        for file in () if self.sealed else (self._rows, self._timing):
            with suppress(OSError):  # a full disk was reported when the row was written
                file.close()
        self._lock.release()

    def _take_lock(self) -> None:
        try:
            self._lock.acquire()
        except Timeout:
            raise EngramError(
                f"run {self.folder.name} is being written by another process; wait for it, "
                "or use another seed (--fresh, --seeds)"
            ) from None

    def _write_spec(self) -> None:
        if (self.folder / "spec.json").exists():
            _ = self.record.spec  # refuses when it was changed
            return
        refuse_if_unreadable(self.spec)
        write_spec(self.spec, self.folder)

    def _resume(self) -> None:
        """Cut rows and timing back to the stored state; without one start again. A Search is its rows: none is lost."""
        state = self.folder / "state.safetensors"
        if isinstance(self.spec, Search) and (self.folder / "rows.jsonl").exists():
            self.step = len(files.complete_lines((self.folder / "rows.jsonl").read_bytes()))
        if state.exists():
            self.state = self.record.tensors(state.name)
            self.step, self.events = files.standing(state)
        rows = self._kept_lines("rows.jsonl")
        if len(rows) < self.step:
            raise corrupt(self.folder, f"rows.jsonl ends at row {len(rows)} but the state is of step {self.step}")
        self._drop_what_comes_later()
        timing = self._kept_lines("timing.jsonl")
        with suppress(ValueError, IndexError, KeyError, TypeError):  # a clock is nice to have, never a reason to refuse
            self._seconds_before = float(json.loads(timing[-1])["seconds"])
        self._rows, self._timing = self._cut_to("rows.jsonl", rows), self._cut_to("timing.jsonl", timing)

    def _drop_what_comes_later(self) -> None:
        """Weights beyond the rows: they will come again."""
        for kind in ("snapshots", "states"):
            for step, file in files.numbered(self.folder / kind).items():
                if step > self.step:
                    file.unlink()
        (self.folder / files.LIVE).unlink(missing_ok=True)

    def _kept_lines(self, name: str) -> list[bytes]:
        path = self.folder / name
        return files.complete_lines(path.read_bytes())[: self.step] if path.exists() else []

    def _cut_to(self, name: str, lines: list[bytes]) -> Any:
        path = self.folder / name
        with path.open("ab") as file:
            file.truncate(files.size_of(lines))
        return path.open("ab")

    def _write_env(self) -> None:
        """One entry for each sitting: a resumed run may have seen several machines; one that only paused has not."""
        old = files.read_json(self.folder, "env.json")["sittings"] if (self.folder / "env.json").exists() else []
        if not old or {name: value for name, value in old[-1].items() if name != "from_step"} != self.env:
            files.write_json(self.folder / "env.json", {"sittings": [*old, self.env | {"from_step": self.step}]})
        self._began = self._saved = time.monotonic()

    def append(self, row: Row) -> None:
        """Hand a row to the file system before the next step begins."""
        with writing_to(self.folder):
            seconds = self._seconds_before + time.monotonic() - self._began
            timing = {"step": row["step"], "seconds": round(seconds, 4)}
            for file, line in ((self._rows, row), (self._timing, timing)):
                file.write(files.line_of(line))
                file.flush()

    def snapshot(self, step: int, weights: Weights, durable: bool = True) -> None:
        with writing_to(self.folder):
            files.replace(self.folder / "snapshots" / f"{step:06d}.safetensors", tensor_bytes(weights), durable)

    def show(self, step: int, weights: Weights) -> None:
        """The newest weights, for those who watch."""
        with writing_to(self.folder):
            files.replace(self.folder / files.LIVE, tensor_bytes(weights, {"step": str(step)}), durable=False)

    def checkpoint(self, step: int, state: Weights) -> None:
        """A state that is kept: the training can be forked from here."""
        with writing_to(self.folder):
            files.replace(self.folder / "states" / f"{step:06d}.safetensors", self._state(step, state), durable=False)

    def save_if_due(self, step: int, state: Weights) -> None:
        if time.monotonic() - self._saved > SECONDS_BETWEEN_STATES:
            self.save(step, state)

    def save(self, step: int, state: Weights) -> None:
        """State before step `step`; rows up to there are on disk first."""
        with writing_to(self.folder):
            os.fsync(self._rows.fileno())
            files.replace(self.folder / "state.safetensors", self._state(step, state))
        self._saved = time.monotonic()

    def _state(self, step: int, state: Weights) -> bytes:
        """With the number of events that have happened: a fork may have one more at this very step."""
        events = self.spec.events if isinstance(self.spec, Train) else ()
        return tensor_bytes(state, {"step": str(step), "events": str(sum(event.step <= step for event in events))})

    def end(self, how: str) -> None:
        """Seal the record: how it ended, and the digests of its Spec, rows and snapshots."""
        snapshots = sorted(file.relative_to(self.folder) for file in (self.folder / "snapshots").glob("*.safetensors"))
        names = ["spec.json", "rows.jsonl", *(file.as_posix() for file in snapshots)]
        sums = {name: files.sha256((self.folder / name).read_bytes()) for name in names}
        with writing_to(self.folder):
            files.write_json(self.folder / "digest.json", {"end": how} | sums)
            (self.folder / "state.safetensors").unlink(missing_ok=True)
            (self.folder / files.LIVE).unlink(missing_ok=True)
