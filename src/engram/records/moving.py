"""Runs on their way: as tables for other programs, and as folders that another machine takes in."""

import csv
import importlib
import io
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engram.errors import EngramError
from engram.records import files
from engram.records.about import began_at
from engram.records.about import write as write_about
from engram.records.audit import refuse_damaged, refuse_damaged_files
from engram.records.faces import Face
from engram.records.files import Place, writing_to
from engram.records.guard import FOLDERS, PARTS, refuse_link
from engram.records.index import being_written
from engram.records.kept import Kept
from engram.records.places import at
from engram.records.record import Record
from engram.records.shelf import RUN_NAME

LEFT = {"lock", files.LIVE}  # what belongs to the process that writes, not to the run


def table_bytes(kept: Kept) -> bytes:
    """The rows as CSV: a line for each, an empty cell where nothing was measured."""
    columns = {name: kept.table.dense(name) for name in kept.columns}
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([_cell(name, value) for name, value in zip(columns, row, strict=True)] for row in _rows(columns))
    return text.getvalue().encode()


def _rows(columns: dict[str, np.ndarray]) -> Iterator[tuple[float, ...]]:
    return zip(*(values.tolist() for values in columns.values()), strict=True)


def _cell(name: str, value: float) -> str:
    if value != value:
        return ""
    return str(int(value)) if name == "step" else repr(value)


def parquet_bytes(kept: Kept) -> bytes:
    """The rows as Parquet; null where nothing was measured."""
    try:
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise EngramError("--format parquet needs pyarrow: pip install 'engram[parquet]'; or take csv") from None
    columns = {name: arrow.array(kept.table.dense(name), from_pandas=True) for name in kept.columns}
    buffer = io.BytesIO()
    parquet.write_table(arrow.table(columns), buffer)
    return buffer.getvalue()


def faces_bytes(faces: Sequence[Face]) -> bytes:
    """A line of CSV for each run: what it is, its settings (set.…) and its final values (final.…)."""
    lines = [_face_line(face) for face in faces]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(dict.fromkeys(name for line in lines for name in line)), restval="")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue().encode()


def _face_line(face: Face) -> dict[str, Any]:
    own = ("run", "state", "rows", "made_for", "label", "seed", "began", "seconds", "note")
    told = {name: getattr(face, name) for name in own} | {"tags": " ".join(face.tags)}
    settings = {f"set.{name}": value for name, value in face.fields.items() if name != "seed"}
    return told | settings | {f"final.{name}": value for name, value in face.final.items()}


def export_folder(record: Record, into: Path) -> Path:
    """A whole copy of a run that another home can take in; with the time at which it began, which copies may lose."""
    if being_written(record):
        raise EngramError(f"run {record.id} is being written by another process; wait for it, or stop it first")
    about = record.about
    target = _copied(record.place, into)
    write_about(target, about.model_copy(update={"began": about.began or began_at(record.place)}))
    return target


def import_runs(source: Path, home: Path) -> tuple[list[str], list[str]]:
    """Takes in the runs of a folder or a bundle, each looked at first: the names of those taken, and of those here."""
    found = [place for place in _runs_at(source) if place.name]
    if not found:
        raise EngramError(
            f"runs import: no run in {source}; give a folder that `engram runs export` wrote, or a bundle"
        )
    new = [place for place in found if not _is_here(place, home)]
    for place in new:
        _refuse_unsound(Record(place))
    for place in new:
        _copied(place, home)
    return [place.name for place in new], [place.name for place in found if place not in new]


def _runs_at(source: Path) -> list[Place]:
    if not source.exists():
        raise EngramError(f"runs import: there is no {source}")
    here = list(at(source))
    return here or ([place for path in sorted(source.iterdir()) for place in at(path)] if source.is_dir() else [])


def _is_here(place: Place, home: Path) -> bool:
    """Whether the home has the very same run; one that differs is not written over."""
    if not (home / place.name).exists():
        return False
    both = [(folder / "digest.json") for folder in (place, home / place.name)]
    if all(file.exists() for file in both) and files.contents(both[0]) == files.contents(both[1]):
        return True
    raise EngramError(f"runs import: {home} has another state of run {place.name}; move that one away, or keep it")


def _refuse_unsound(record: Record) -> None:
    """What is damaged or no run stays out; code that nobody here trusts does not run for it."""
    if not RUN_NAME.fullmatch(record.id):
        raise EngramError(f"runs import: {record.id!r} is no name of a run")
    if not (record.place / "spec.json").exists():
        raise EngramError(f"runs import: {record.id} has no spec.json; nothing can be said about it")
    (refuse_damaged if record.may_run else refuse_damaged_files)(record)


def _copied(place: Place, into: Path) -> Path:
    """The parts of a run in a folder of its name: all of them, or none."""
    target = into / place.name
    refuse_link(target)
    if target.exists():
        raise EngramError(f"{target} is there already; name another folder, or move it away")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    with writing_to(into):
        shutil.rmtree(part, ignore_errors=True)
        try:
            for name, content in _parts(place):
                files.replace(part / name, content, durable=False)
            files.sync(part)
            part.rename(target)
            files.sync(into)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return target


def _parts(place: Place) -> Iterator[tuple[str, bytes]]:
    for path in files.inside(place):
        if path.name in FOLDERS:
            yield from ((f"{path.name}/{inner.name}", files.contents(inner)) for inner in files.inside(path))
        elif path.name in PARTS - LEFT:
            yield path.name, files.contents(path)
