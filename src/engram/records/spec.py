"""Spec: what to run. Frozen, JSON, its hash is its identity."""

import importlib
import inspect
import json
from collections.abc import Callable, Iterator
from typing import Annotated, Any

from pydantic import Field, InstanceOf, model_validator

from engram.errors import EngramError, did_you_mean
from engram.learning import Plan
from engram.models.trace import Architecture
from engram.records.encode import TAGS, decode, digest_of, encode, user_code
from engram.tasks import Task
from engram.values import Value

Seed = Annotated[int, Field(ge=0, lt=2**63)]


class Train(Value):
    """One training: a task, a model, a plan, a seed."""

    task: InstanceOf[Task]
    model: InstanceOf[Architecture]
    plan: Plan
    seed: Seed = 0

    @model_validator(mode="after")
    def _parts_fit(self) -> "Train":
        for field, part in {"task": self.task, "model": self.model}.items():
            if not isinstance(part, Value):
                raise ValueError(f"{field}: {type(part).__name__} must be a frozen engram.Value to be stored")
        _known("plan.loss", self.plan.loss, (*self.task.groups, "all"))
        for name in self.plan.trained:
            _known("plan.trained", name, self.model.names)
        return self

    @property
    def steps(self) -> int:
        return self.plan.steps

    @property
    def title(self) -> str:
        return f"{type(self.task).__name__}-{type(self.model).__name__}".lower()


class Check(Value):
    """A measurement that trains nothing: `law` names a function of engram.theory that yields rows.

    The function is called as law(draws=…, seed=…, **sizes).
    """

    law: str
    sizes: dict[str, int] = {}
    draws: Annotated[int, Field(ge=1)] = 1
    seed: Seed = 0

    @model_validator(mode="after")
    def _law_exists(self) -> "Check":
        function = self.function
        allowed = inspect.signature(function).parameters
        for name in self.sizes:
            _known("sizes", name, tuple(n for n in allowed if n not in ("draws", "seed")))
        return self

    @property
    def function(self) -> Callable[..., Iterator[dict[str, float]]]:
        module, _, name = self.law.rpartition(".")
        try:
            return getattr(importlib.import_module(f"engram.theory.{module}"), name)
        except (ImportError, AttributeError, ValueError):
            raise ValueError(f"law: {self.law!r} is no function of engram.theory; write module.function") from None

    @property
    def steps(self) -> int:
        return self.draws

    @property
    def title(self) -> str:
        return f"check-{self.law}"


Spec = Train | Check


def _known(field: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        hint = did_you_mean(given, allowed)
        raise ValueError(f"{field}: unknown {given!r}; {hint}allowed: {', '.join(allowed)}")


def run_id(spec: Spec) -> str:
    """A name a person can read, ending in ten digits of the hash."""
    return f"{spec.title}-s{spec.seed}-{digest_of(spec)[:10]}"


def with_settings(spec: Spec, settings: dict[str, Any]) -> Spec:
    """The Spec with dotted fields replaced: {"task.K": 3}."""
    data = encode(spec)
    for path, value in settings.items():
        _set(data, path.split("."), value, path)
    return decode(data, user_code(spec))


def parse_settings(words: tuple[str, ...]) -> dict[str, Any]:
    """task.K=3 … as a dict; values are JSON, or else plain words."""
    settings = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not (name and equals):
            raise EngramError(f"--set {word!r}: write FIELD=VALUE, as in --set task.K=3")
        try:
            settings[name] = json.loads(text)
        except json.JSONDecodeError:
            settings[name] = text
    return settings


def _set(data: dict[str, Any], path: list[str], value: Any, whole: str) -> None:
    if set(path) & set(TAGS):
        raise EngramError(f"--set {whole}: this is no field of a Spec")
    inner = data
    for part in path[:-1]:
        inner = inner.get(part) if isinstance(inner, dict) else None
    if not isinstance(inner, dict):
        fields = [name for name in data if name not in TAGS]
        hint = did_you_mean(path[0], fields)
        raise EngramError(f"--set {whole}: no such field; {hint}allowed first parts: {', '.join(fields)}")
    inner[path[-1]] = value
