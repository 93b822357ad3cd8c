"""Every step of a training with its row: where learning, events and probes meet."""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

import torch

from engram.learning import PATHS, Moment, train
from engram.learning.reference import Gradients, Measured
from engram.models import Weights
from engram.models.trace import Architecture, Head
from engram.models.transformer import silenced
from engram.records.files import Row
from engram.records.record import initial_weights
from engram.runner.probing import probe
from engram.specs import Train
from engram.specs.events import Past
from engram.specs.steering import at, muted, silent
from engram.tasks import Batch

Steps = Iterator[tuple[Moment, Row]]


@dataclass(frozen=True)
class Standing:
    """Where a training stands: before which step, with what weights and averages, after how many of its events."""

    step: int = 0
    tensors: Mapping[str, torch.Tensor] = field(default_factory=dict)
    events: int = 0


def measured_steps(
    spec: Train,
    device: str = "cpu",
    path: str = "reference",
    start: Standing = Standing(),  # noqa: B008 (frozen)
    past: Past = lambda step: {},
) -> Steps:
    """Loss and accuracy of every fresh batch, and the probes that are due.

    `past` returns trained weights from before the start, where an event needs them.
    """
    w, averages = _state(spec, start.tensors, device)
    kept: dict[int, Weights] = {}
    for begin, end in _stretches(spec, start):
        for i, event in enumerate(spec.events):
            if i >= start.events and event.step == begin:
                event.act(w, averages, lambda step: kept.get(step) or past(step), (spec.seed, f"event.{i}"))
        now, heads = at(spec, begin), silent(spec, begin)
        gradients = _silenced(PATHS[path], heads)
        steps = train(now.task, now.model, now.plan, now.seed, w, gradients, begin, averages, end)
        averages = yield from _rows(spec, now, w, gradients, steps, kept)


def _stretches(spec: Train, start: Standing) -> Iterator[tuple[int, int | None]]:
    """From where to where nothing happens; the last stretch goes to the end."""
    turns = {start.step, *(event.step for event in spec.events[start.events :])}
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
        probed = probe(now, moment.step, muted(spec, w, moment.step), gradients)
        yield moment, {"step": moment.step} | moment.metrics | probed


def _silenced(gradients: Gradients, heads: frozenset[Head]) -> Gradients:
    """The gradients of a model in which these heads write nothing."""
    if not heads:
        return gradients

    def without(model: Architecture, w: Weights, batch: Batch, loss: str, names: tuple[str, ...]) -> Measured:
        found = gradients(model, silenced(model, w, heads), batch, loss, names)
        return replace(found, gradients=silenced(model, found.gradients, heads))

    return without


def _state(spec: Train, stored: Mapping[str, torch.Tensor], device: str) -> tuple[Weights, Weights]:
    """Weights and optimiser averages: initial values, overlaid by what was stored."""
    weights = {key.removeprefix("weights/"): value for key, value in stored.items() if key.startswith("weights/")}
    averages = {key: value.to(device) for key, value in stored.items() if not key.startswith("weights/")}
    return {name: value.to(device) for name, value in (initial_weights(spec) | weights).items()}, averages
