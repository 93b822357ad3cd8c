"""What the experiments run: the functions and classes behind their claims."""

from collections.abc import Sequence
from typing import Any

from engram.specs import Check, Spec


def functions() -> dict[str, list[str]]:
    """By experiment: laws, and models with their tasks, as `room.module.name`."""
    from engram import experiments

    return {name: _run_by(experiments.find(name).specs("quick", [0])) for name in experiments.names()}


def _run_by(specs: Sequence[Spec]) -> list[str]:
    """Each once, in the order of the Specs."""
    found = [thing for spec in specs for thing in _behind(spec)]
    return list(dict.fromkeys(f"{one.__module__}.{one.__qualname__}".removeprefix("engram.") for one in found))


def _behind(spec: Spec) -> list[Any]:
    return [spec.function] if isinstance(spec, Check) else [type(spec.model), type(spec.task)]
