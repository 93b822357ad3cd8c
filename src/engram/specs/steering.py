"""What the events of a training make of its Spec, from step to step."""

from functools import reduce
from typing import TYPE_CHECKING

from engram.errors import EngramError
from engram.models import Weights
from engram.models.trace import Head
from engram.models.transformer import silenced

if TYPE_CHECKING:
    from engram.specs.spec import Train


def at(spec: "Train", step: int) -> "Train":
    """What is trained at this step: the Spec with the changes up to it, and without events."""
    done = (event for event in spec.events if event.step <= step)
    return reduce(lambda now, event: event.steer(now), done, _plain(spec))


def silent(spec: "Train", step: int) -> frozenset[Head]:
    """The heads that are ablated at this step."""
    done = (event for event in spec.events if event.step <= step)
    return reduce(lambda heads, event: event.silence(heads), done, frozenset[Head]())


def muted(spec: "Train", w: Weights, step: int) -> Weights:
    """The weights as the model uses them at this step: ablated heads write nothing."""
    return silenced(spec.model, w, silent(spec, step))


def check(spec: "Train") -> None:
    """Every event makes sense where it comes, or ValueError."""
    steps = [event.step for event in spec.events]
    if steps != sorted(steps):
        raise ValueError(f"events: they come in the order of their steps; got steps {', '.join(map(str, steps))}")
    now, heads = _plain(spec), frozenset[Head]()
    for i, event in enumerate(spec.events):
        if event.step > spec.steps:
            raise ValueError(f"events.{i}: at: step {event.step} is beyond the end, {spec.steps}")
        try:
            event.refuse(now, heads)
            now, heads = event.steer(now), event.silence(heads)
            _ = event.sentence  # what cannot be told is refused, too
        except (EngramError, ValueError) as error:
            raise ValueError(f"events.{i}: {error}") from None


def _plain(spec: "Train") -> "Train":
    return spec.model_copy(update={"events": ()})
