"""A training walked through step by step, and the weights of any step of a record: stored, or computed again."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch

from engram.errors import EngramError
from engram.learning import PATHS, SGD, Diverged, Moment, choose_path, train
from engram.learning.reference import Gradients, Measured
from engram.models import Weights
from engram.models.trace import Architecture, Head
from engram.models.transformer import silenced
from engram.records import files
from engram.records.state import NAME, State
from engram.records.weights import initial_weights
from engram.specs import Train
from engram.specs.events import Past
from engram.tasks import Batch

LAST_DIGITS = 1e-3  # relative: another machine may round differently


@dataclass(frozen=True)
class Walked:
    """A step about to be taken: the Spec as it is now, all weights, which change in place, and how to differentiate."""

    now: Train
    w: Weights
    gradients: Gradients
    moment: Moment


def walk(
    spec: Train,
    device: str = "cpu",
    path: str = "reference",
    start: State = State(),  # noqa: B008 (frozen)
    past: Past = lambda step: {},
) -> Iterator[Walked]:
    """Every step from a state on. `past` returns trained weights from before the start, where an event needs them."""
    w, averages = _state(spec, start.tensors, device)
    kept: dict[int, Weights] = {}

    def before(step: int) -> Weights:
        return kept.get(step) or past(step)

    for begin, end in _stretches(spec, start):
        for i, event in enumerate(spec.events):
            if i >= start.events and event.step == begin:
                event.act_on(spec.model, w, averages, before, (spec.seed, f"event.{i}"))
        now, heads = spec.at(begin), spec.silent(begin)
        gradients = _silenced(PATHS[path], heads)
        steps = train(now.task, now.model, now.plan, now.seed, w, gradients, begin, averages, end)
        averages = yield from _steps(spec, now, w, gradients, steps, kept)


def _stretches(spec: Train, start: State) -> Iterator[tuple[int, int | None]]:
    """From where to where nothing happens; the last stretch goes to the end."""
    stages = (stage.step for stage in spec.plan.stages if stage.step > start.step)
    turns = {start.step, *stages, *(event.step for event in spec.events[start.events :])}
    return pairwise([*sorted(turns), None])  # type: ignore[list-item]


def _steps(
    spec: Train,
    now: Train,
    w: Weights,
    gradients: Gradients,
    steps: Generator[Moment, None, Weights],
    kept: dict[int, Weights],
) -> Generator[Walked, None, Weights]:
    """Each step of a stretch; weights that a later event needs are kept."""
    asked_for = {step for event in spec.events for step in event.earlier.values()}
    while True:
        try:
            moment = next(steps)
        except StopIteration as over:
            return over.value
        if moment.step in asked_for:
            kept[moment.step] = {name: value.clone() for name, value in moment.weights.items()}
        yield Walked(now, w, gradients, moment)


def _silenced(gradients: Gradients, heads: frozenset[Head]) -> Gradients:
    """The gradients of a model in which these heads write nothing."""
    if not heads:
        return gradients

    def without(model: Architecture, w: Weights, batch: Batch, loss: str, names: tuple[str, ...]) -> Measured:
        found = gradients(model, silenced(model, w, heads), batch, loss, names)
        return replace(found, gradients=silenced(model, found.gradients, heads))

    return without


def _state(spec: Train, stored: Weights, device: str) -> tuple[Weights, Weights]:
    """Weights and optimiser averages: initial values, overlaid by what was stored."""
    first = initial_weights(spec)
    _refuse_other_shapes(spec, first, stored)
    weights = {key.removeprefix("weights/"): value for key, value in stored.items() if key.startswith("weights/")}
    averages = {key: value.to(device) for key, value in stored.items() if not key.startswith("weights/")}
    return {name: value.to(device) for name, value in (first | weights).items()}, averages


def _refuse_other_shapes(spec: Train, first: Weights, stored: Weights) -> None:
    """A state holds the trained matrices, all of them, and averages of these; each in its own shape."""
    held = {key.removeprefix("weights/") for key in stored if key.startswith("weights/")}
    if stored and held != set(spec.plan.trained):
        raise EngramError(f"the state holds the matrices {sorted(held)}, not {sorted(spec.plan.trained)}")
    for key, value in stored.items():
        name = key.partition("/")[2]
        if name not in held or (value.dim() and value.shape != first[name].shape):
            raise EngramError(f"the state holds {key} of shape {tuple(value.shape)}, which is none of the model's")


def computed_weights(record: Any, step: int) -> Weights:
    """The trained weights of a step, computed from the last state before it; its loss must be the one in the record.

    record    a Record of a training, which has this step
    """
    found: Weights = {}
    for found in approach(record, step):  # noqa: B007 (the last ones)
        pass
    return {name: value.clone() for name, value in found.items()}


def approach(record: Any, step: int) -> Iterator[Weights]:
    """The same on the way: the weights of each step from that state on, which change in place; the last are checked."""
    spec: Train = record.train
    _refuse_step(record, step)
    start = state_before(record, spec, step)
    try:
        for at in walk(spec, "cpu", _path(record, spec), start, record.snapshot):
            if at.moment.step == step:
                _refuse_other_loss(record, at.moment)
            yield at.moment.weights
            if at.moment.step == step:
                return
    except Diverged:
        pass
    raise EngramError(f"record {record.id}: step {step} cannot be computed again: the training diverges before it")


def _refuse_step(record: Any, step: int) -> None:
    last = len(record.table) - 1
    if not 0 <= step <= last:
        raise EngramError(f"step: record {record.id} has the steps 0 … {last}; got {step}")
    if record.stale:
        stored = ", ".join(map(str, record.snapshot_steps)) or "none"
        raise EngramError(
            f"record {record.id} is of an older revision, which cannot be computed again; stored steps: {stored}"
        )


def state_before(record: Any, spec: Train, step: int) -> State:
    """The last stored state up to a step; weights alone will do where the optimiser remembers nothing."""
    names = {at: f"states/{at:06d}.safetensors" for at in files.numbered(record.place / "states")}
    states = [State.read(record.place, name) for at, name in names.items() if at <= step]
    states += [State.read(record.place)] if (record.place / NAME).exists() else []
    snapshots = [at for at in record.snapshot_steps if at <= step and not has_averages(spec)]
    if snapshots and is_exact(record, spec, snapshots[-1]):
        states.append(state_of_snapshot(record, spec, snapshots[-1]))
    return max((state for state in states if state.step <= step), key=lambda state: state.step, default=State())


def state_of_snapshot(record: Any, spec: Train, step: int) -> State:
    """Without the optimiser's averages."""
    weights = {f"weights/{name}": tensor for name, tensor in record.snapshot(step).items()}
    return State(step, sum(event.step <= step for event in spec.events), tensors=weights)


def is_exact(record: Any, spec: Train, step: int) -> bool:
    """Packed weights are rounded to float16, so that nothing can be recomputed from them to the byte."""
    return all(tensor.dtype == getattr(torch, spec.plan.dtype) for tensor in record.snapshot(step).values())


def has_averages(spec: Train) -> bool:
    """Whether the optimiser remembers anything, at any time."""
    optimisers = [spec.plan.optimiser, *(spec.at(event.step).plan.optimiser for event in spec.events)]
    return any(not isinstance(one, SGD) or one.momentum > 0 for one in optimisers)


def _path(record: Any, spec: Train) -> str:
    """The path on which it was made, where there is one; the other one gives the same up to the last digits."""
    made_on = record.env["sittings"][0].get("path")
    possible = choose_path("auto", spec.model, spec.plan, "cpu")
    return "reference" if made_on == "reference" else possible


def _refuse_other_loss(record: Any, moment: Moment) -> None:
    """Weights that are not those of the record are never handed out as if they were."""
    stored = record.table.dense("loss")[moment.step]
    now = moment.metrics.get("loss", float("nan"))
    if abs(now - stored) > LAST_DIGITS * max(1.0, abs(stored)):
        raise EngramError(
            f"record {record.id}: computed again, step {moment.step} has loss {now:.6g}, and the record says "
            f"{stored:.6g}; `engram runs check {record.id}` says where they part"
        )
