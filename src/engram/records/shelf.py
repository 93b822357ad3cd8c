"""The shelf: all records of a home, found by name or by Spec, removed."""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from engram.errors import EngramError, did_you_mean
from engram.records.faces import SHORTEST
from engram.records.files import writing_to
from engram.records.guard import PARTS
from engram.records.index import being_written
from engram.records.places import Unreadable, find_place, places
from engram.records.record import Record
from engram.specs.spec import Spec, run_id

RUN_NAME = re.compile(r"[A-Za-z0-9][\w.-]*-s\d+-[0-9a-f]{10}")


def all_records(home: Path) -> list[Record]:
    """Every record of a home; what cannot be read even as a folder or zip is left out."""
    return [Record(place) for place in places(home) if not isinstance(place, Unreadable)]


def find(name: str, home: Path) -> Record:
    """A run by its id, by a part of it that no other run has, or `last`."""
    return Record(find_place(name, home))


def of_spec(spec: Spec, homes: Iterable[Path]) -> Record | None:
    """The finished record of a Spec, from the first home that has it."""
    for home in homes:
        record = Record(home / run_id(spec))
        if (record.folder / "digest.json").exists() and record.finished:
            return record
    return None


def removable(name: str, home: Path) -> Record:
    """A run that lies in the home and is nothing but a run; its Spec may be damaged, for such runs must go, too."""
    record = find(name, home) if name == "last" else Record(home / _whole_name(name, home))
    folder = record.folder
    if not _is_run(folder) or folder.parent != home:
        hint = did_you_mean(name, [r.id for r in all_records(home)])
        fix = f"give its name, at least {SHORTEST} letters of it, or `last`"
        raise EngramError(f"runs rm: no run {name!r} in {home}; {hint}{fix}")
    foreign = sorted(path.name for path in folder.iterdir() if not _belongs_to_a_run(path))
    if foreign:
        raise EngramError(f"runs rm: {folder} holds {foreign[0]}, which is no part of a run; remove it by hand")
    refuse_if_written(record)
    return record


def _is_run(folder: Path) -> bool:
    return bool(RUN_NAME.fullmatch(folder.name)) and folder.is_dir() and not folder.is_symlink()


def _whole_name(part: str, home: Path) -> str:
    """The name of the only run that has this part in its name; what is whole, or no part of any, stays as it is."""
    if len(part) < SHORTEST or (home / part).exists() or not home.is_dir():
        return part
    hits = sorted(folder.name for folder in home.iterdir() if part in folder.name and _is_run(folder))
    if len(hits) > 1:
        raise EngramError(f"runs rm: {part!r} could be {', '.join(hits[:6])}; give more of its name")
    return hits[0] if hits else part


def _belongs_to_a_run(path: Path) -> bool:
    return path.name in PARTS or (path.name.startswith(".") and path.suffix == ".part")


def refuse_if_written(record: Record) -> None:
    if being_written(record):
        raise EngramError(f"run {record.id} is being written by another process; wait for it, or stop it first")


def remove(record: Record) -> None:
    refuse_if_written(record)
    with writing_to(record.folder):
        shutil.rmtree(record.folder)
