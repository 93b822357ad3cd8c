"""Finished records made small enough to be committed: one as a folder, many in one zip."""

import gzip
import tempfile
import zipfile
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import torch

from engram.errors import EngramError
from engram.plain import open_plain
from engram.records import files
from engram.records.files import replace, writing_to
from engram.records.guard import refuse_links
from engram.records.record import Record
from engram.records.sealed import seal

MOST_ENTRIES, MOST_UNPACKED = 100_000, 8 << 30  # files in a bundle, and bytes of all of them together
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
        if weights:
            name = f"snapshots/{record.snapshot_steps[-1]:06d}.safetensors"
            half = {key: tensor.to(torch.float16) for key, tensor in record.tensors(name).items()}
            replace(target / name, seal(half, {}))
            digest[name] = files.sha256(seal(half, {}))
        files.write_digest(target, digest)
    return target


def bundle(records: Iterable[Record], path: Path) -> Path:
    """Writes packed copies of finished records into one zip."""
    with tempfile.TemporaryDirectory() as folder:
        for record in records:
            pack(record, Path(folder), weights=False)
        parts = sorted(file for file in Path(folder).rglob("*") if file.is_file())
        whole = Path(folder) / "whole.zip"
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
            for part in parts:
                name = part.relative_to(folder).as_posix()
                archive.writestr(zipfile.ZipInfo(name, EPOCH), part.read_bytes(), zipfile.ZIP_DEFLATED)
        with writing_to(path.parent):
            replace(path, whole.read_bytes())
    return path


def records_in(path: Path) -> list[Record]:
    """The records of a bundle, read from the zip itself, which checks every file when it is read."""
    about = path.stat()
    try:
        root = _opened(path, about.st_mtime_ns, about.st_size)
        return [Record(folder) for folder in root.iterdir() if (folder / "spec.json").exists()]
    except (OSError, RuntimeError, ValueError, zipfile.BadZipFile) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise EngramError(f"{path.name} cannot be read as a zip ({why}); restore the file") from None


@lru_cache(maxsize=256)
def _opened(path: Path, changed: int, size: int) -> zipfile.Path:
    """Kept open, as long as it is the same file. A link to a bundle may be read: somebody put it into the home."""
    open_plain(path, follow=True).close()  # refuses what is no file, which would make us wait
    archive = zipfile.ZipFile(path)
    _refuse_odd(archive.infolist())
    return zipfile.Path(archive)


def _refuse_odd(entries: list[zipfile.ZipInfo]) -> None:
    """Nothing is unpacked to disk; but who does so with another program shall not be surprised either."""
    if len(entries) > MOST_ENTRIES:
        raise ValueError(f"it has more than {MOST_ENTRIES} files")
    if sum(entry.file_size for entry in entries) > MOST_UNPACKED:
        raise ValueError(f"unpacked it has more than {MOST_UNPACKED >> 20} MB")
    names = [entry.orig_filename for entry in entries]
    odd = [name for name in names if name.startswith("/") or "\\" in name or ".." in name.split("/")]
    if odd:
        raise ValueError(f"the name {odd[0]!r} in it leads out of it")
    if len(set(names)) < len(names):
        raise ValueError("it has a name twice")
