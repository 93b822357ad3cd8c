"""A finished record made small enough to be committed: rows gzipped, final weights in float16 if requested."""

import gzip
from pathlib import Path

import torch
from safetensors.torch import save as tensor_bytes

from engram.errors import EngramError
from engram.records import files
from engram.records.files import replace, write_json, writing_to
from engram.records.record import Record


def pack(record: Record, into: Path, weights: bool) -> Path:
    """Writes the record into the folder `into` under its own name; it reads like any other record."""
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
