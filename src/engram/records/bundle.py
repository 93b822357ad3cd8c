"""Finished records made small enough to be committed: one as a folder, many in one zip."""

import gzip
import lzma
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import torch

from engram.errors import EngramError
from engram.records import files
from engram.records.columns import by_columns
from engram.records.files import replace, writing_to
from engram.records.guard import refuse_links
from engram.records.places import opened
from engram.records.record import Record
from engram.records.sealed import seal

MOST_COMMITTED = 25_000_000  # bytes of all committed records together
EPOCH = (1980, 1, 1, 0, 0, 0)  # no clock in it: the same records make the same file


def pack(record: Record, into: Path, weights: bool) -> Path:
    """Writes the record into the folder `into` under its own name; it reads like any other record.

    Rows are gzipped; final weights are kept in float16, if requested.
    """
    if not record.finished:
        raise EngramError(f"run {record.id} is not finished; finish it first with: engram runs resume {record.id}")
    if weights and not record.snapshot_steps:
        raise EngramError(f"run {record.id} has no weights to pack; leave out --weights")
    target = into / record.id
    refuse_links(target)
    sittings = [{name: value for name, value in s.items() if name != "pid"} for s in record.env["sittings"]]
    with writing_to(target):
        replace(target / "rows.jsonl.gz", gzip.compress(files.read(record.place, "rows.jsonl"), mtime=0))
        replace(target / "spec.json", files.read(record.place, "spec.json"))
        files.write_env(target, sittings)
        digest = {name: (record.ended or {})[name] for name in ("end", "spec.json", "rows.jsonl")}
        for name, content in record.code.items():
            replace(target / "code" / name, content)
            digest[f"code/{name}"] = files.sha256(content)
        for name in record.texts:
            replace(target / name, record.sealed(name))
            digest[name] = files.sha256(record.sealed(name))
        if weights:
            name = f"snapshots/{record.snapshot_steps[-1]:06d}.safetensors"
            half = {key: tensor.to(torch.float16) for key, tensor in record.tensors(name).items()}
            replace(target / name, seal(half, {}))
            digest[name] = files.sha256(seal(half, {}))
        files.write_digest(target, digest)
    return target


def bundle(records: Iterable[Record], path: Path) -> Path:
    """Writes packed copies of finished records into one zip, their rows as xz: by columns where that is smaller."""
    with tempfile.TemporaryDirectory() as folder:
        return _packed(records, Path(folder), path)


def add_to_bundle(records: Iterable[Record], path: Path) -> Path:
    """The same, beside the records that the zip already has: these stay as they are."""
    with tempfile.TemporaryDirectory() as folder:
        if path.exists():
            try:
                opened(path).root.extractall(folder)
            except zipfile.BadZipFile as error:
                raise EngramError(f"{path.name} is damaged ({error}); restore the file") from None
        return _packed(records, Path(folder), path)


def _packed(records: Iterable[Record], folder: Path, path: Path) -> Path:
    """What lies in the folder, and these records."""
    for record in records:
        pack(record, folder, weights=False)
    parts = sorted(file for file in folder.rglob("*") if file.is_file())
    whole = folder / "whole.zip"
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for part in parts:
            name, content = part.relative_to(folder).as_posix(), part.read_bytes()
            if part.suffix == ".gz":
                ending, content = _smaller(gzip.decompress(content))
                name = f"{name[:-2]}{ending}"
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED)
    with writing_to(path.parent):
        replace(path, whole.read_bytes())
    return path


def _smaller(rows: bytes) -> tuple[str, bytes]:
    """Rows as xz, as they are or column by column, with the ending that says so."""
    columns = by_columns(rows)
    ways = [("xz", lzma.compress(rows)), *([] if columns is None else [("columns.xz", lzma.compress(columns))])]
    return min(ways, key=lambda way: len(way[1]))
