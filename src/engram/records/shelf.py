"""The shelf: all records of a home, found by name or by Spec, listed, removed."""

import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engram.errors import EngramError, did_you_mean
from engram.records import files
from engram.records.bundle import records_in
from engram.records.files import writing_to
from engram.records.record import Record
from engram.specs.spec import Spec, run_id

RUN_NAME = re.compile(r"[A-Za-z0-9][\w.-]*-s\d+-[0-9a-f]{10}")
PARTS = {"spec.json", "env.json", "rows.jsonl", "rows.jsonl.gz", "timing.jsonl", "state.safetensors", "snapshots"}
PARTS |= {"states", files.LIVE, "events.jsonl", "code", "digest.json", "lock"}
MARKS = ("spec.json", "lock")  # a run that was killed at its very beginning has the lock only


@dataclass(frozen=True)
class Unreadable:
    """Something in a home that cannot be read, and why."""

    record: str
    why: str


def entries(home: Path) -> list[Record | Unreadable]:
    """Every run folder of a home and of the bundles in it, the newest last; each is looked at on its own."""
    found = [entry for path in (home.iterdir() if home.is_dir() else ()) for entry in _entries_at(path)]
    return [entry for _, _, entry in sorted(found, key=lambda entry: entry[:2])]


def _entries_at(path: Path) -> Iterator[tuple[float, str, Record | Unreadable]]:
    """With time and name, by which they are sorted."""
    if path.name.startswith("."):
        return
    try:
        changed = path.stat().st_mtime
        if path.suffix == ".zip" and not path.is_dir():
            yield from ((changed, record.id, record) for record in records_in(path))
        elif any((path / mark).exists() for mark in MARKS):
            yield changed, path.name, Record(path)
    except (EngramError, OSError) as error:
        yield 0.0, path.name, Unreadable(path.name, str(error))


def all_records(home: Path) -> list[Record]:
    """The records among the entries; what cannot be read even as a folder or zip is left out."""
    return [entry for entry in entries(home) if isinstance(entry, Record)]


def find(name: str, home: Path) -> Record:
    """A run by its id, by a part of it that no other run has, or `last`."""
    records = all_records(home)
    own = [record for record in records if isinstance(record.place, Path)]
    if name == "last" and own:
        return own[-1]
    hits = [r for r in records if r.id == name] or [r for r in records if name and name in r.id]
    if len(hits) == 1:
        return hits[0]
    if hits:
        raise EngramError(f"run {name!r} could be {', '.join(r.id for r in hits[:6])}; give more of its name")
    hint = did_you_mean(name, [r.id for r in records])
    raise EngramError(f"no run {name!r} in {home}; {hint}`engram runs ls` lists them")


def of_spec(spec: Spec, homes: Iterable[Path]) -> Record | None:
    """The finished record of a Spec, from the first home that has it."""
    for home in homes:
        record = Record(home / run_id(spec))
        if (record.folder / "digest.json").exists() and record.finished:
            return record
    return None


def being_written(record: Record) -> bool:
    """Whether a process holds the run's lock."""
    return isinstance(record.place, Path) and files.is_held(record.place / "lock")


def state(record: Record) -> str:
    """finished, stale, running, part-done, or what is wrong with it."""
    try:
        if record.ended is None:
            return "running" if being_written(record) else "part-done"
        return "stale" if record.stale else "finished" if record.finished else "diverged"
    except EngramError as error:
        return str(error).partition("; ")[0].partition(": ")[2] or "broken"


def overview(home: Path) -> list[dict[str, Any]]:
    """One line a run, the newest last; what is broken is listed with what is wrong."""
    return [_line(entry) for entry in entries(home)]


def _line(entry: Record | Unreadable) -> dict[str, Any]:
    if isinstance(entry, Unreadable):
        return {"run": entry.record, "rows": 0, "state": entry.why.partition("; ")[0]}
    return {"run": entry.id, "rows": _row_count(entry), "state": state(entry)}


def _row_count(record: Record) -> int:
    try:
        return len(files.complete_lines(files.read(record.place, "rows.jsonl")))
    except EngramError:
        return 0


def removable(name: str, home: Path) -> Record:
    """A run that lies in the home and is nothing but a run; its Spec may be damaged, for such runs must go, too."""
    record = find(name, home) if name == "last" else Record(home / name)
    folder = record.folder
    if not RUN_NAME.fullmatch(folder.name) or folder.parent != home or not folder.is_dir() or folder.is_symlink():
        hint = did_you_mean(name, [r.id for r in all_records(home)])
        raise EngramError(f"runs rm: no run {name!r} in {home}; {hint}give its whole name, or `last`")
    foreign = sorted(path.name for path in folder.iterdir() if not _belongs_to_a_run(path))
    if foreign:
        raise EngramError(f"runs rm: {folder} holds {foreign[0]}, which is no part of a run; remove it by hand")
    _refuse_if_written(record)
    return record


def _belongs_to_a_run(path: Path) -> bool:
    return path.name in PARTS or (path.name.startswith(".") and path.suffix == ".part")


def _refuse_if_written(record: Record) -> None:
    if being_written(record):
        raise EngramError(f"run {record.id} is being written by another process; stop it first")


def remove(record: Record) -> None:
    _refuse_if_written(record)
    with writing_to(record.folder):
        shutil.rmtree(record.folder)
