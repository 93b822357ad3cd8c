"""Record: what is kept of a Spec that ran. Reading only; a Record never changes a run."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors

from engram.errors import EngramError, did_you_mean
from engram.memory.stored import Stored
from engram.models import Model, Weights
from engram.models.memories import memories_of
from engram.models.transformer import silenced
from engram.records import files
from engram.records.files import Row, corrupt
from engram.specs.encode import Code, decode, encode
from engram.specs.spec import Check, Search, Spec, Train, run_id
from engram.values import Value

Kind = TypeVar("Kind", Train, Check, Search)


@dataclass(frozen=True)
class Record:
    """What is kept of a Spec that ran: a folder named by `id`, with `spec`, `rows`, `env` and stored weights.

    rows    one dict of numbers for each step of a training, each vote of a Search, or each row of a Check
    env     versions, device and threads of each sitting
    """

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
            raise corrupt(self.folder, "spec.json does not hold a Spec")
        if not self.stale and run_id(spec) != self.id:
            raise corrupt(
                self.folder,
                "spec.json was changed; a changed Spec is a new run (engram run … --set FIELD=VALUE)",
            )
        return spec

    @property
    def train(self) -> Train:
        """The Spec of a training; an error for other records."""
        return self._spec_as(Train)

    @property
    def check(self) -> Check:
        """The Spec of a Check; an error for other records."""
        return self._spec_as(Check)

    @property
    def search(self) -> Search:
        """The Spec of a Search; an error for other records."""
        return self._spec_as(Search)

    def _spec_as(self, kind: type[Kind]) -> Kind:
        if not isinstance(self.spec, kind):
            what = f"a {type(self.spec).__name__}, not a {kind.__name__}"
            raise EngramError(f"record {self.id} is {what}; `engram runs show {self.id}` says what it is")
        return self.spec

    @property
    def store(self) -> Any:
        """The memory whose capacity a Search measures."""
        return self.search.model

    @cached_property
    def stale(self) -> bool:
        """Whether a class of the Spec has been revised since: the same Spec would give other numbers now."""
        return _revisions(self.spec_json) != _revisions(encode(decode(self.spec_json, self.code)))

    @cached_property
    def ended(self) -> dict[str, Any] | None:
        """The digest, once the run has ended, checked against Spec and rows; None before."""
        if not (self.folder / "digest.json").exists():
            return None
        digest = files.read_json(self.folder, "digest.json", "end")
        for name in ("spec.json", "rows.jsonl"):
            if digest.get(name) != files.sha256(files.read(self.folder, name)):
                raise corrupt(self.folder, f"{name} does not match the digest: it was changed or truncated")
        return digest

    @property
    def finished(self) -> bool:
        """Whether the run reached its end; one that diverged has ended, but not finished."""
        return self.ended is not None and self.ended["end"] == "finished"

    @cached_property
    def env(self) -> dict[str, Any]:
        env = files.read_json(self.folder, "env.json", "sittings")
        if not (isinstance(env["sittings"], list) and env["sittings"] and "threads" in env["sittings"][0]):
            raise corrupt(self.folder, "env.json is unreadable")
        return env

    @cached_property
    def rows(self) -> list[Row]:
        if self.ended is None and not (self.folder / "rows.jsonl").exists():
            return []
        return files.parse_rows(self.folder, files.complete_lines(files.read(self.folder, "rows.jsonl")))

    def column(self, name: str) -> Float[np.ndarray, " rows"]:
        """One value for each row; NaN where it was not measured."""
        values = np.array([row.get(name) for row in self.rows], dtype=float)
        if np.isnan(values).all() and name not in self.columns:
            hint = did_you_mean(name, self.columns)
            raise EngramError(f"record {self.id} has no column {name!r}; {hint}it has: {', '.join(self.columns)}")
        return values

    def curve(self, name: str) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """The steps at which a column was measured, and its values there."""
        values = self.column(name)
        there = ~np.isnan(values)
        return self.column("step")[there], values[there]

    def last(self, name: str) -> float:
        """The value in the last row, or NaN if that row has none; an error for a column that was never measured."""
        return float(self.column(name)[-1])

    @property
    def columns(self) -> list[str]:
        """The names of all columns, in the order in which they first occur."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    @property
    def snapshot_steps(self) -> list[int]:
        """The steps whose weights are stored."""
        return list(files.numbered(self.folder / "snapshots"))

    def model(self, step: int | None = None) -> Model:
        """The model at a stored step (the last one by default): call it on tokens to get a Trace."""
        spec, steps = self.train, self.snapshot_steps
        if not steps or (step is not None and step not in steps):
            where = "" if step is None else f" at step {step}"
            raise EngramError(f"record {self.id} has no weights{where}; stored steps: {steps}")
        at = steps[-1] if step is None else step
        return model_at(spec, at, initial_weights(spec), self.snapshot(at))

    def memories(self, step: int | None = None) -> list[Stored]:
        """The memories of the model at a stored step (the last one by default)."""
        spec = self.train
        return memories_of(spec.model, self.model(step).weights, spec.task, spec.seed)

    def snapshot(self, step: int) -> Weights:
        """The trained weights at a stored step."""
        return self.tensors(f"snapshots/{step:06d}.safetensors")

    def tensors(self, name: str) -> Weights:
        content = files.read(self.folder, name)
        if self.ended is not None and self.ended.get(name, files.sha256(content)) != files.sha256(content):
            raise corrupt(self.folder, f"{name} does not match the digest: it was changed or truncated")
        try:
            return load_tensors(content)
        except (SafetensorError, ValueError):
            raise corrupt(self.folder, f"{name} is unreadable") from None


def model_at(spec: Train, step: int, initial: Weights, stored: Weights) -> Model:
    """The model with the trained weights of a step."""
    w = initial | {name: tensor.to(initial[name].dtype) for name, tensor in stored.items()}
    return Model(spec.model, silenced(spec.model, w, spec.silent(step)))


def initial_weights(spec: Train) -> Weights:
    """Weights before the first step: a pure function of model, task sizes and seed."""
    w = spec.model.init(spec.task.N, spec.task.T, spec.seed)
    return {name: tensor.to(getattr(torch, spec.plan.dtype)) for name, tensor in w.items()}


def _revisions(data: Any) -> list[int]:
    """Revisions of all classes in a Spec; fields that a class gained since, at their defaults, change nothing."""
    if isinstance(data, list):
        return [revision for item in data for revision in _revisions(item)]
    if not isinstance(data, dict):
        return []
    own = [data["revision"]] if "revision" in data else []
    return [*own, *(r for name in sorted(data) for r in _revisions(data[name]))]


def walk(value: Value, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every field of a Value with its dotted name; Values in tuples and dicts too: model.layers.0.heads, tests.x.K."""
    for name in type(value).model_fields:
        yield from _walk(getattr(value, name), f"{prefix}{name}")


def _walk(item: Any, name: str) -> Iterator[tuple[str, Any]]:
    """A Value by its class and its fields; a tuple or dict that holds Values item by item; all else as it is."""
    inside = dict(enumerate(item)) if isinstance(item, tuple | list) else item
    if isinstance(item, Value):
        yield name, type(item).__name__
        yield from walk(item, f"{name}.")
    elif isinstance(inside, dict) and any(isinstance(part, Value) for part in inside.values()):
        for key, part in inside.items():
            yield from _walk(part, f"{name}.{key}")
    else:
        yield name, item
