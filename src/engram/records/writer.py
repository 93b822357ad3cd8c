"""Writing a record: one process per run, rows appended, state replaced, resumed where it stopped."""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from engram.errors import EngramError, Interrupted
from engram.models import Weights
from engram.plain import open_to_append
from engram.records import files
from engram.records import state as states
from engram.records.files import Row, corrupt, writing_to
from engram.records.guard import refuse_link, refuse_links
from engram.records.record import Record
from engram.records.sealed import Damaged, seal, unseal
from engram.records.state import State
from engram.records.trust import trust_own
from engram.specs.encode import encode, refuse_if_unreadable, user_code
from engram.specs.spec import Spec, Train, run_id
from engram.tasks.corpus import text_files

SECONDS_BETWEEN_STATES = 20.0


def write_spec(spec: Spec, folder: Path) -> None:
    """The first files of a run: what it is."""
    refuse_links(folder)
    own = user_code(spec)
    trust_own(own.values())
    for name, content in own.items():
        files.replace(folder / "code" / name, content)
    for sha256, text in text_files(spec).items():
        files.replace(folder / "texts" / f"{sha256}.json", text.counted.counts.to_bytes())
    files.write_json(folder / "spec.json", encode(spec))


def begin(spec: Spec, home: Path) -> Path:
    """The folder of a run that another process will compute: what is asked stands there before it begins."""
    folder = home / run_id(spec)
    with writing_to(folder):
        refuse_links(folder)
        files.make_folder(folder)
        if (folder / "spec.json").exists():
            _ = Record(folder).spec  # refuses one that was changed, and code that nobody here trusts
        else:
            refuse_if_unreadable(spec)
            write_spec(spec, folder)
    return folder


def note(folder: Path, step: int, order: dict[str, Any]) -> None:
    """A command that reached the run in the lab, with the step at which it took effect."""
    about = {"step": step} | {key: order[key] for key in ("op", "kind", "fields", "value") if key in order}
    with suppress(EngramError, OSError):  # what is wrong with the folder is told when the run is written to
        refuse_link(folder)
        with open_to_append(folder / "events.jsonl") as file:
            file.write(json.dumps(about).encode() + b"\n")


def removed(folder: Path) -> EngramError:
    """Why a run cannot go on that is no longer where it was."""
    return EngramError(
        f"the folder of run {folder.name} was removed; nothing more is written; run it again to begin anew"
    )


class Writer:
    """The one process that writes a run; a context manager that holds its lock."""

    def __init__(self, spec: Spec, home: Path, env: dict[str, Any]):
        self.folder = home / run_id(spec)
        self.spec, self.env = spec, env
        self.record = Record(self.folder)
        self.sealed = False
        self.state = State()
        self._seconds_before = 0.0
        self._open: list[Any] = []

    def __enter__(self) -> "Writer":
        with writing_to(self.folder):
            refuse_links(self.folder)
            self._made = not self.folder.exists()
            files.make_folder(self.folder)
            self._lock = FileLock(self.folder / "lock", timeout=1, poll_interval=0.01)  # a look holds it briefly
            self._take_lock()
            try:
                self._write_spec()
                self.sealed = (self.folder / "digest.json").exists()
                if not self.sealed:
                    self._resume()
                    self._write_env()
            except BaseException:
                self._close()
                raise
        return self

    def __exit__(self, kind: object = None, error: BaseException | None = None, trace: object = None) -> None:
        if isinstance(error, Exception) and not isinstance(error, Interrupted):
            self._forget_if_empty()
        self._close()

    def _forget_if_empty(self) -> None:
        """A run that failed before its first row leaves nothing: nobody could tell what it was, nor resume it."""
        if self._made and not self.sealed and not self._rows.tell() and not (self.folder / "digest.json").exists():
            with suppress(EngramError, OSError):
                self._refuse_if_removed()
                shutil.rmtree(self.folder)

    def _close(self) -> None:
        for file in self._open:
            with suppress(OSError):  # a full disk was reported when the row was written
                file.close()
        self._lock.release()

    def _take_lock(self) -> None:
        try:
            self._lock.acquire()
        except Timeout:
            raise EngramError(
                f"run {self.folder.name} is being written by another process; wait for it, or use another seed"
            ) from None

    def _write_spec(self) -> None:
        if (self.folder / "spec.json").exists():
            _ = self.record.spec  # refuses when it was changed
            return
        refuse_if_unreadable(self.spec)
        write_spec(self.spec, self.folder)

    def _resume(self) -> None:
        """Cut rows and timing back to the stored state; without one start again."""
        if (self.folder / states.NAME).exists():
            self.state = State.read(self.folder)
        rows, timing = self._lines("rows.jsonl"), self._lines("timing.jsonl")
        self.state.refuse_other_rows(self.folder, rows)
        states.refuse_stranger(self.folder, states.NAME, {"of": self.state.of}, states.family(self.spec), "")
        if states.digest_of_lines(timing) != self.state.timing:
            timing = []  # a clock is nice to have, never a reason to refuse: it starts again
        self._seconds_before = float(json.loads(timing[-1])["seconds"]) if timing else 0.0
        self._drop_what_comes_later()
        self._rows, self._timing = self._cut_to("rows.jsonl", rows), self._cut_to("timing.jsonl", timing)
        self._path, self._file = str(self.folder / "rows.jsonl"), os.fstat(self._rows.fileno())
        self._sums = self._sums_before = {"rows": _sum(rows), "timing": _sum(timing)}

    def _drop_what_comes_later(self) -> None:
        """Weights beyond the rows: they will come again."""
        for kind in ("snapshots", "states"):
            for step, file in files.numbered(self.folder / kind).items():
                if step > self.state.step:
                    file.unlink()
        (self.folder / files.LIVE).unlink(missing_ok=True)

    def _lines(self, name: str) -> list[bytes]:
        """The lines of a file before the state."""
        path = self.folder / name
        return files.complete_lines(path.read_bytes())[: self.state.step] if path.exists() else []

    def _cut_to(self, name: str, lines: list[bytes]) -> Any:
        file = open_to_append(self.folder / name)
        self._open.append(file)
        file.truncate(files.size_of(lines))
        return file

    def _write_env(self) -> None:
        """One entry for each sitting: a resumed run may have seen several machines; one that only paused has not."""
        self._sittings = self.record.env["sittings"] if (self.folder / "env.json").exists() else []
        last = self._sittings[-1] if self._sittings else {}
        if {name: value for name, value in last.items() if name != "from_step"} != self.env:
            self._sittings.append(self.env | {"from_step": self.state.step})
            files.write_env(self.folder, self._sittings)
        self._began = self._saved = time.monotonic()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Nothing is written to a run that was removed or moved away, and no part of its folder made again."""
        self._refuse_if_removed()
        try:
            with writing_to(self.folder):
                yield
        except EngramError:
            self._refuse_if_removed()  # meanwhile: this is why it could not be written
            raise

    def _refuse_if_removed(self) -> None:
        """One look at the file that is always there: it must be the one that is being written."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            raise removed(self.folder) from None
        if (found.st_ino, found.st_dev) != (self._file.st_ino, self._file.st_dev):
            raise removed(self.folder)

    def append(self, row: Row) -> None:
        """Hand a row to the file system before the next step begins."""
        self._refuse_if_removed()
        with writing_to(self.folder):
            seconds = self._seconds_before + time.monotonic() - self._began
            timing = {"step": row["step"], "seconds": round(seconds, 4)}
            self._sums_before = {name: total.copy() for name, total in self._sums.items()}
            self._write_line("rows", self._rows, row)
            self._write_line("timing", self._timing, timing)

    def _write_line(self, name: str, file: Any, row: Row) -> None:
        line = files.line_of(row)
        full = file.tell() + len(line) > files.MOST_BYTES
        if len(line) > files.MOST_LINE or row["step"] >= files.MOST_ROWS or full:  # it could not be read back
            most = f"{files.MOST_ROWS} rows of {files.MOST_LINE >> 20} MB each, {files.MOST_BYTES >> 30} GB in all"
            raise EngramError(f"run {self.folder.name}: a record holds at most {most}; measure less, or less often")
        file.write(line)
        file.flush()
        self._sums[name].update(line)

    def snapshot(self, step: int, weights: Weights, durable: bool = True) -> None:
        """The weights of the step whose row has just been written, with what they belong to."""
        about = {"step": str(step), "rows": self._sums_before["rows"].hexdigest(), "of": states.family(self.spec)}
        self._put(f"snapshots/{step:06d}.safetensors", seal(weights, about), durable)

    def show(self, step: int, weights: Weights) -> None:
        """The newest weights, for those who watch."""
        self._put(files.LIVE, seal(weights, {"step": str(step)}), durable=False)

    def checkpoint(self, step: int, tensors: Weights) -> None:
        """A state that is kept, of the step whose row has just been written: the training can be forked from here."""
        state = self._state(step, tensors, self._sums_before)
        self._put(f"states/{step:06d}.safetensors", state.to_bytes(), durable=False)

    def _put(self, name: str, content: bytes, durable: bool) -> None:
        with self._writing():
            files.replace(self.folder / name, content, durable)

    def save_if_due(self, step: int, tensors: Weights) -> None:
        if time.monotonic() - self._saved > SECONDS_BETWEEN_STATES:
            self.save(step, tensors)

    def save(self, step: int, tensors: Weights) -> None:
        """The state before step `step`; the rows up to there are on disk first."""
        with self._writing():
            self._sync_lines()
            files.replace(self.folder / states.NAME, self._state(step, tensors, self._sums).to_bytes())
        self._saved = time.monotonic()

    def _state(self, step: int, tensors: Weights, sums: dict[str, Any]) -> State:
        events = self.spec.events if isinstance(self.spec, Train) else ()
        happened = sum(event.step <= step for event in events)
        digests = sums["rows"].hexdigest(), sums["timing"].hexdigest()
        return State(step, happened, *digests, tensors, states.family(self.spec))

    def _sync_lines(self) -> None:
        for file in (self._rows, self._timing):
            files.sync_open(file)

    def end(self, how: str) -> None:
        """Seal the record: how it ended, and digests of all that it holds, which is on disk before they are."""
        with self._writing():
            self._sync_lines()
            for folder in (self.folder / "snapshots", self.folder / "states"):
                for path in (*files.numbered(folder).values(), *([folder] if folder.exists() else [])):
                    files.sync(path)
            files.sync(self.folder)
            files.write_env(self.folder, self._sittings, self._sums["timing"].hexdigest())
            files.write_digest(self.folder, {"end": how} | self._digests())
            (self.folder / states.NAME).unlink(missing_ok=True)
            (self.folder / files.LIVE).unlink(missing_ok=True)

    def _digests(self) -> dict[str, str]:
        """Of Spec, rows, snapshots, texts and code, once they are known to hold what was written to them."""
        snapshots = {step: f"snapshots/{step:06d}.safetensors" for step in files.numbered(self.folder / "snapshots")}
        sums = {name: files.sha256((self.folder / name).read_bytes()) for name in ("spec.json", "rows.jsonl")}
        if sums["rows.jsonl"] != self._sums["rows"].hexdigest():
            raise corrupt(self.folder, "rows.jsonl does not hold what was written to it")
        before = states.digests_before(files.complete_lines((self.folder / "rows.jsonl").read_bytes()), snapshots)
        for step, name in snapshots.items():
            content = (self.folder / name).read_bytes()
            self._refuse_damaged(name, content, before[step])
            sums[name] = files.sha256(content)
        sums |= {name: files.sha256((self.folder / name).read_bytes()) for name in self.record.texts}
        return sums | {f"code/{name}": files.sha256(content) for name, content in self.record.code.items()}

    def _refuse_damaged(self, name: str, content: bytes, rows: str) -> None:
        try:
            states.refuse_stranger(self.folder, name, unseal(content)[1], states.family(self.spec), rows)
        except Damaged as damage:
            raise corrupt(self.folder, f"{name} {damage}") from None


def _sum(lines: list[bytes]) -> Any:
    """A running digest."""
    return hashlib.sha256(b"".join(line + b"\n" for line in lines))
