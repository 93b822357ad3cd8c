"""The shelf: all records of a home, found by name or by Spec, listed, removed."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engram.errors import EngramError, did_you_mean
from engram.records import files
from engram.records.bundle import unpack
from engram.records.files import writing_to
from engram.records.record import Record
from engram.specs.spec import Spec, run_id


def all_records(home: Path) -> list[Record]:
    """Every run folder of a home and of the bundles in it, the newest last."""
    marks = ("spec.json", "lock")  # a run that was killed at its very beginning has the lock only
    places = [home, *map(unpack, sorted(home.glob("*.zip")))]
    folders = [
        folder for place in places for folder in place.glob("[!.]*") if any((folder / m).exists() for m in marks)
    ]
    return [Record(folder) for folder in sorted(folders, key=lambda f: (f.stat().st_mtime, f.name))]


def find(name: str, home: Path) -> Record:
    """A run by its id, by a part of it that no other run has, or `last`."""
    records = all_records(home)
    if name == "last" and records:
        return records[-1]
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
    return files.is_held(record.folder / "lock")


def state(record: Record) -> str:
    """finished, stale, running, part-done, or what is wrong with it."""
    try:
        if record.ended is None:
            return "running" if being_written(record) else "part-done"
        return "stale" if record.stale else "finished" if record.finished else "diverged"
    except EngramError as error:
        return str(error).partition("; ")[0].partition(": ")[2] or "broken"


def overview(home: Path) -> list[dict[str, Any]]:
    """One line a run, the newest last; a broken record is listed with what is wrong."""
    return [{"run": record.id, "rows": _row_count(record), "state": state(record)} for record in all_records(home)]


def _row_count(record: Record) -> int:
    try:
        return len(files.complete_lines(files.read(record.folder, "rows.jsonl")))
    except EngramError:
        return 0


def remove(record: Record) -> None:
    if being_written(record):
        raise EngramError(f"run {record.id} is being written by another process; stop it first")
    with writing_to(record.folder):
        shutil.rmtree(record.folder)
