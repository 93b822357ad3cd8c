"""Every step of a training with its row: where learning, events and probes meet."""

from collections.abc import Callable, Iterator
from functools import partial

import torch

from engram.errors import EngramError
from engram.learning import Moment
from engram.learning.reference import Gradients
from engram.models import Weights
from engram.models.transformer import silenced
from engram.probes.probe import Look, Probe, known_probes, probes_by_name
from engram.records.files import Row
from engram.records.forward import walk
from engram.records.state import State
from engram.records.weights import initial_weights
from engram.specs import Train
from engram.specs.events import Past


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
    for at in walk(spec, device, path, start, past):
        step = at.moment.step
        used = silenced(spec.model, at.w, spec.silent(step))
        probed = probe(at.now, step, used, at.gradients, partial(first_weights, spec, at.w))
        yield at.moment, {"step": step} | spec.plan.kept(step, at.moment.metrics) | probed


@torch.no_grad()
def probe(spec: Train, step: int, w: Weights, gradients: Gradients, first: Callable[[], Weights]) -> dict[str, float]:
    """The columns of the probes that are due at this step; `first` gives the initial weights."""
    due = [probe for probe in probes_of(spec) if probe.is_due(step, spec.plan.steps)]
    seen = look(spec, w, gradients, first)
    found: dict[str, float] = {}
    for probe in due:
        found |= _checked(probe, probe.measure(seen), found)
    return found


def look(spec: Train, w: Weights, gradients: Gradients, first: Callable[[], Weights]) -> Look:
    """What probes see of a training with these weights."""
    plan = spec.plan
    return Look(spec.task, spec.model, w, spec.seed, plan.trained, plan.loss, spec.tests, gradients, first)


def probes_of(spec: Train) -> Iterator[Probe]:
    """Those that every training has where they suit, those that the plan names for the end, and the user's own."""
    for rhythm in ("probe_every", "attention_every"):
        standard = [kind(every=getattr(spec.plan, rhythm)) for kind in known_probes() if kind.rhythm == rhythm]
        yield from (probe for probe in standard if probe.missing(spec.task, spec.model) is None)
    yield from (probes_by_name()[name]() for name in spec.plan.at_end)
    yield from spec.plan.probes  # type: ignore[misc]  # Train has checked that they are probes


def first_weights(spec: Train, w: Weights) -> Weights:
    """The initial weights, where the present ones are."""
    device = next(iter(w.values())).device
    return {name: value.to(device) for name, value in initial_weights(spec).items()}


def _checked(probe: Probe, measured: dict[str, float], before: dict[str, float]) -> dict[str, float]:
    """A probe may write only the columns that it has declared, and none of another probe."""
    for column in measured:
        if not column.startswith(probe.columns) or column in before:
            whose = "another probe wrote it" if column in before else f"its own begin with {', '.join(probe.columns)}"
            raise EngramError(f"{type(probe).__name__}: {column!r} is not a column of this probe; {whose}")
    return measured
