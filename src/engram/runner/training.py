"""Every step of a training with its row: where learning, events and probes meet."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from itertools import pairwise

import torch

from engram.errors import EngramError
from engram.learning import PATHS, Moment, train
from engram.learning.reference import Gradients, Measured
from engram.models import Weights
from engram.models.trace import Architecture, Head
from engram.models.transformer import silenced
from engram.probes.probe import Look, Probe, known_probes, probes_by_name
from engram.records.files import Row
from engram.records.state import State
from engram.records.weights import initial_weights
from engram.specs import Train
from engram.specs.events import Past
from engram.tasks import Batch


def measured_steps(
    spec: Train,
    device: str = "cpu",
    path: str = "reference",
    start: State = State(),  # noqa: B008 (frozen)
    past: Past = lambda step: {},
) -> Iterator[tuple[Moment, Row]]:
    """Loss and accuracy of every fresh batch, and the probes that are due.

    `past` returns trained weights from before the start, where an event needs them.
    """
    w, averages = _state(spec, start.tensors, device)
    kept: dict[int, Weights] = {}
    for begin, end in _stretches(spec, start):
        for i, event in enumerate(spec.events):
            if i >= start.events and event.step == begin:
                event.act(w, averages, lambda step: kept.get(step) or past(step), (spec.seed, f"event.{i}"))
        now, heads = spec.at(begin), spec.silent(begin)
        gradients = _silenced(PATHS[path], heads)
        steps = train(now.task, now.model, now.plan, now.seed, w, gradients, begin, averages, end)
        averages = yield from _rows(spec, now, w, gradients, steps, kept)


def _stretches(spec: Train, start: State) -> Iterator[tuple[int, int | None]]:
    """From where to where nothing happens; the last stretch goes to the end."""
    stages = (stage.step for stage in spec.plan.stages if stage.step > start.step)
    turns = {start.step, *stages, *(event.step for event in spec.events[start.events :])}
    return pairwise([*sorted(turns), None])  # type: ignore[list-item]


def _rows(
    spec: Train,
    now: Train,
    w: Weights,
    gradients: Gradients,
    steps: Generator[Moment, None, Weights],
    kept: dict[int, Weights],
) -> Generator[tuple[Moment, Row], None, Weights]:
    """Each step with its row; weights that a later event needs are kept."""
    asked_for = {step for event in spec.events for step in event.earlier.values()}
    while True:
        try:
            moment = next(steps)
        except StopIteration as over:
            return over.value
        if moment.step in asked_for:
            kept[moment.step] = {name: value.clone() for name, value in moment.weights.items()}
        used = silenced(spec.model, w, spec.silent(moment.step))
        probed = probe(now, moment.step, used, gradients, lambda: _first(spec, w))
        yield moment, {"step": moment.step} | moment.metrics | probed


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


@torch.no_grad()
def probe(spec: Train, step: int, w: Weights, gradients: Gradients, first: Callable[[], Weights]) -> dict[str, float]:
    """The columns of the probes that are due at this step; `first` gives the initial weights."""
    due = [probe for probe in probes_of(spec) if probe.is_due(step, spec.plan.steps)]
    plan = spec.plan
    look = Look(spec.task, spec.model, w, spec.seed, plan.trained, plan.loss, spec.tests, gradients, first)
    found: dict[str, float] = {}
    for probe in due:
        found |= _checked(probe, probe.measure(look), found)
    return found


def probes_of(spec: Train) -> Iterator[Probe]:
    """Those that every training has where they suit, those that the plan names for the end, and the user's own."""
    for rhythm in ("probe_every", "attention_every"):
        standard = [kind(every=getattr(spec.plan, rhythm)) for kind in known_probes() if kind.rhythm == rhythm]
        yield from (probe for probe in standard if probe.missing(spec.task, spec.model) is None)
    yield from (probes_by_name()[name]() for name in spec.plan.at_end)
    yield from spec.plan.probes  # type: ignore[misc]  # Train has checked that they are probes


def _first(spec: Train, w: Weights) -> Weights:
    device = next(iter(w.values())).device
    return {name: value.to(device) for name, value in initial_weights(spec).items()}


def _checked(probe: Probe, measured: dict[str, float], before: dict[str, float]) -> dict[str, float]:
    """A probe may write only the columns that it has declared, and none of another probe."""
    for column in measured:
        if not column.startswith(probe.columns) or column in before:
            whose = "another probe wrote it" if column in before else f"its own begin with {', '.join(probe.columns)}"
            raise EngramError(f"{type(probe).__name__}: {column!r} is not a column of this probe; {whose}")
    return measured
