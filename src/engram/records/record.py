"""Record: what is kept of a Spec that ran. Reading only; a Record never changes a run."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float

from engram.errors import EngramError, did_you_mean
from engram.memory.stored import Stored
from engram.models import Model, Weights
from engram.models.memories import memories_of
from engram.models.transformer import silenced
from engram.records import files
from engram.records.files import Place, Row, corrupt
from engram.records.sealed import Damaged, load, unseal
from engram.specs.encode import Code, decode, encode
from engram.specs.spec import Check, Search, Spec, Train, run_id
from engram.tasks.corpus import as_a_record_says
from engram.values import Value

Kind = TypeVar("Kind", Train, Check, Search)


@dataclass(frozen=True)
class Record:
    """What is kept of a Spec that ran: a folder named by `id`, with `spec`, `rows`, `env` and stored weights.

    rows    one dict of numbers for each step of a training, each vote of a Search, or each row of a Check
    env     versions, device and threads of each sitting
    """

    place: Place

    @property
    def id(self) -> str:
        return self.place.name

    @property
    def folder(self) -> Path:
        """Where the record lies on disk; one in a bundle can only be read."""
        if not isinstance(self.place, Path):
            raise EngramError(f"record {self.id} lies in a bundle ({self.place}) and can only be read")
        return self.place

    @cached_property
    def spec_json(self) -> dict[str, Any]:
        return files.read_json(self.place, "spec.json")

    @property
    def code(self) -> Code:
        """The user's files whose classes the Spec names."""
        found = [file for file in files.inside(self.place / "code") if file.suffix == ".py"]
        return {file.name: files.read(self.place / "code", file.name) for file in found}

    @cached_property
    def spec(self) -> Spec:
        """The Spec, checked against the folder's name."""
        if not self.stale and run_id(self._decoded) != self.id:
            raise corrupt(
                self.place,
                "spec.json was changed; a changed Spec is a new run (engram run … --set FIELD=VALUE)",
            )
        return self._decoded

    @cached_property
    def _decoded(self) -> Spec:
        try:
            with as_a_record_says():
                spec = decode(self.spec_json, self.code)
        except EngramError as error:
            raise EngramError(f"record {self.id}: spec.json: {error}") from None
        except Exception as error:  # whatever odd data may lead to
            raise corrupt(self.place, f"spec.json is no description of a run ({type(error).__name__})") from None
        if not isinstance(spec, Spec):
            raise corrupt(self.place, "spec.json does not hold a Spec")
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
        return _revisions(self.spec_json) != _revisions(encode(self._decoded))

    @cached_property
    def ended(self) -> dict[str, Any] | None:
        """The digest, once the run has ended, checked against Spec and rows; None before."""
        if not (self.place / "digest.json").exists():
            return None
        digest = files.read_json(self.place, "digest.json", "end")
        for name in ("spec.json", "rows.jsonl"):
            if digest.get(name) != files.sha256(files.read(self.place, name)):
                raise corrupt(self.place, f"{name} does not match the digest: it was changed or truncated")
        return digest

    @property
    def finished(self) -> bool:
        """Whether the run reached its end; one that diverged has ended, but not finished."""
        return self.ended is not None and self.ended["end"] == "finished"

    @cached_property
    def env(self) -> dict[str, Any]:
        env = files.read_json(self.place, "env.json", "sittings")
        if not (isinstance(env["sittings"], list) and env["sittings"] and "threads" in env["sittings"][0]):
            raise corrupt(self.place, "env.json is unreadable")
        if env.get("digest", files.digest_of(env)) != files.digest_of(env):
            raise corrupt(self.place, "env.json does not match its own digest: it was changed")
        return env

    @cached_property
    def rows(self) -> list[Row]:
        if self.ended is None and not (self.place / "rows.jsonl").exists():
            return []
        rows = files.parse_rows(self.place, files.complete_lines(files.read(self.place, "rows.jsonl")))
        wrong = next((i for i, row in enumerate(rows) if row["step"] != i), None)
        if wrong is not None:
            raise corrupt(self.place, f"line {wrong + 1} of rows.jsonl says it is step {rows[wrong]['step']}")
        return rows

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
        return list(files.numbered(self.place / "snapshots"))

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
        content = files.read(self.place, name)
        if self.ended is not None and self.ended.get(name, files.sha256(content)) != files.sha256(content):
            raise corrupt(self.place, f"{name} does not match the digest: it was changed or truncated")
        try:
            return unseal(content)[0] if self.ended is None else load(content)
        except Damaged as damage:
            raise corrupt(self.place, f"{name} {damage}") from None


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
