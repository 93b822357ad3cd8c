"""Record: what is kept of a Spec that ran. Reading only; a Record never changes a run."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors

from engram.errors import EngramError, did_you_mean
from engram.models import Model, Weights
from engram.records import files
from engram.records.encode import Code, decode, encode
from engram.records.files import Row, corrupt
from engram.records.spec import Check, Spec, Train, run_id
from engram.values import Value


@dataclass(frozen=True)
class Record:
    """One run folder. `id` is its name; `spec`, `rows`, `env` its content; `model(step)` its stored weights."""

    folder: Path

    @property
    def id(self) -> str:
        return self.folder.name

    @cached_property
    def spec_json(self) -> dict[str, Any]:
        return files.read_json(self.folder, "spec.json")

    @property
    def code(self) -> Code:
        return {file.name: file.read_bytes() for file in (self.folder / "code").glob("*.py")}

    @cached_property
    def spec(self) -> Spec:
        """The Spec, checked against the folder's name."""
        spec = decode(self.spec_json, self.code)
        if not isinstance(spec, Spec):
            raise corrupt(self.folder, "spec.json holds no Spec")
        if not self.stale and run_id(spec) != self.id:
            raise corrupt(
                self.folder,
                "spec.json was changed; a changed Spec is a new run (engram run … --set FIELD=VALUE)",
            )
        return spec

    @property
    def train(self) -> Train:
        """The Spec of a record that must be a training."""
        if not isinstance(self.spec, Train):
            raise EngramError(f"record {self.id} is no training; `engram runs show {self.id}` tells what it is")
        return self.spec

    @property
    def check(self) -> Check:
        """The Spec of a record that must be a Check."""
        if not isinstance(self.spec, Check):
            raise EngramError(f"record {self.id} is a training; `engram runs show {self.id}` tells what it is")
        return self.spec

    @cached_property
    def stale(self) -> bool:
        """Whether a class of the Spec has been revised since: the same Spec gives other numbers now."""
        return _revisions(self.spec_json) != _revisions(encode(decode(self.spec_json, self.code)))

    @cached_property
    def ended(self) -> dict[str, Any] | None:
        """The digest, once the run has ended; it must fit the rows."""
        if not (self.folder / "digest.json").exists():
            return None
        digest = files.read_json(self.folder, "digest.json")
        for name in ("spec.json", "rows.jsonl"):
            if digest.get(name) != files.sha256(files.read(self.folder, name)):
                raise corrupt(self.folder, f"{name} does not match the digest: it was changed or cut")
        return digest

    @property
    def finished(self) -> bool:
        return self.ended is not None and self.ended["end"] == "finished"

    @cached_property
    def env(self) -> dict[str, Any]:
        return files.read_json(self.folder, "env.json")

    @cached_property
    def rows(self) -> list[Row]:
        _ = self.ended
        try:
            return files.parse_rows(self.folder, files.read(self.folder, "rows.jsonl"))
        except FileNotFoundError:
            return []
        except EOFError:
            raise corrupt(self.folder, "rows.jsonl.gz is cut") from None

    def column(self, name: str) -> Float[np.ndarray, " rows"]:
        """One value for each row; NaN where it was not measured."""
        values = np.array([row.get(name) for row in self.rows], dtype=float)
        if np.isnan(values).all():
            self._explain_missing(name)
        return values

    def curve(self, name: str) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Steps at which `name` was measured, and its values there."""
        values = self.column(name)
        there = ~np.isnan(values)
        return self.column("step")[there], values[there]

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def _explain_missing(self, name: str) -> None:
        if name not in self.columns:
            hint = did_you_mean(name, self.columns)
            raise EngramError(f"record {self.id} has no column {name!r}; {hint}it has: {', '.join(self.columns)}")

    @property
    def snapshot_steps(self) -> list[int]:
        return sorted(int(file.stem) for file in (self.folder / "snapshots").glob("*.safetensors"))

    def model(self, step: int | None = None) -> Model:
        """The model as it was at a stored step (the last one by default): call it on tokens to get a Trace."""
        spec, steps = self.train, self.snapshot_steps
        if not steps or (step is not None and step not in steps):
            raise EngramError(f"record {self.id} has no weights of step {step}; stored steps: {steps}")
        w = initial_weights(spec)
        stored = self.tensors(f"snapshots/{steps[-1] if step is None else step:06d}.safetensors")
        return Model(spec.model, w | {name: tensor.to(w[name].dtype) for name, tensor in stored.items()})

    def tensors(self, name: str) -> Weights:
        try:
            return load_tensors(files.read(self.folder, name))
        except (OSError, SafetensorError, ValueError):
            raise corrupt(self.folder, f"{name} is missing or unreadable") from None


def initial_weights(spec: Train) -> Weights:
    """Weights before the first step: a pure function of model, task sizes and seed."""
    w = spec.model.init(spec.task.N, spec.task.T, spec.seed)
    return {name: tensor.to(getattr(torch, spec.plan.dtype)) for name, tensor in w.items()}


def _revisions(data: Any) -> list[Any]:
    if not isinstance(data, dict):
        return []
    return [data.get("revision"), *(r for name in sorted(data) for r in _revisions(data[name]))]


def walk(value: Value, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every field of a Value with its dotted name."""
    for name in type(value).model_fields:
        item = getattr(value, name)
        if isinstance(item, Value):
            yield f"{prefix}{name}", type(item).__name__
            yield from walk(item, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", item
