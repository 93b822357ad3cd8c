"""Finished records made small enough to be committed: one as a folder, many in one zip."""

import gzip
import shutil
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import torch
from safetensors.torch import save as tensor_bytes

from engram.errors import EngramError
from engram.native import cache
from engram.records import files
from engram.records.files import replace, write_json, writing_to
from engram.records.record import Record

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
    sittings = [{name: value for name, value in s.items() if name != "pid"} for s in record.env["sittings"]]
    with writing_to(target):
        replace(target / "rows.jsonl.gz", gzip.compress(files.read(record.folder, "rows.jsonl"), mtime=0))
        replace(target / "spec.json", files.read(record.folder, "spec.json"))
        for name, content in record.code.items():
            replace(target / "code" / name, content)
        write_json(target / "env.json", {"sittings": sittings})
        digest = {k: v for k, v in (record.ended or {}).items() if not k.startswith("snapshots/")}
        if weights:
            name = f"snapshots/{record.snapshot_steps[-1]:06d}.safetensors"
            half = {key: tensor.to(torch.float16) for key, tensor in record.tensors(name).items()}
            replace(target / name, tensor_bytes(half))
            digest[name] = files.sha256(tensor_bytes(half))
        write_json(target / "digest.json", digest)
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


def unpack(path: Path) -> Path:
    """The folder with the records of a bundle, unpacked into the cache now if this content has not been before."""
    content = path.read_bytes()
    folder = cache() / "records" / f"{path.stem}-{files.sha256(content)[:12]}"
    if folder.exists():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=folder.parent))
        with zipfile.ZipFile(path) as archive:
            archive.extractall(part)
    except (OSError, zipfile.BadZipFile) as error:
        raise EngramError(f"records in {path.name} cannot be unpacked ({error}); restore the file") from None
    try:
        part.rename(folder)  # whole or not at all: another process may be doing the same
    except OSError:
        shutil.rmtree(part)
    return folder
