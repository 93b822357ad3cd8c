"""What the events of a training make of its Spec, from step to step."""

from typing import TYPE_CHECKING

from engram.errors import EngramError, did_you_mean
from engram.models import Weights
from engram.models.trace import Head
from engram.models.transformer import silenced
from engram.specs.events import Ablate, Change, Event, Freeze, OfHead, OfMatrix, Reset, Restore, Truncate, Unfreeze
from engram.specs.settings import with_settings

if TYPE_CHECKING:
    from engram.specs.spec import Train

CHANGEABLE = ("plan.batch", "plan.loss", "plan.optimiser.", "task.")
FIXED = ("task.corpus",)  # another text is another vocabulary, and a file that nobody asked to read


def at(spec: "Train", step: int) -> "Train":
    """What is trained at this step: the Spec with the changes up to it, and without events."""
    now = spec.model_copy(update={"events": ()})
    for event in spec.events:
        now = _steered(now, event) if event.step <= step else now
    return now


def _steered(now: "Train", event: Event) -> "Train":
    if isinstance(event, Change):
        return with_settings(now, {event.field: event.value})
    if not isinstance(event, Freeze | Unfreeze):
        return now
    frozen = {name: until for name, until in now.plan.frozen_until.items() if name != event.matrix}
    if isinstance(event, Freeze):
        frozen[event.matrix] = now.steps + 1
    return now.model_copy(update={"plan": now.plan.model_copy(update={"frozen_until": frozen})})


def silent(spec: "Train", step: int) -> frozenset[Head]:
    """The heads that are ablated at this step."""
    heads = frozenset[Head]()
    for event in spec.events:
        heads = _quieted(heads, event) if event.step <= step else heads
    return heads


def _quieted(heads: frozenset[Head], event: Event) -> frozenset[Head]:
    if not isinstance(event, OfHead):
        return heads
    head = {(event.layer, event.head)}
    return heads | head if isinstance(event, Ablate) else heads - head


def muted(spec: "Train", w: Weights, step: int) -> Weights:
    """The weights as the model uses them at this step: ablated heads write nothing."""
    return silenced(spec.model, w, silent(spec, step))


def check(spec: "Train") -> None:
    """Every event makes sense where it comes, or ValueError."""
    steps = [event.step for event in spec.events]
    if steps != sorted(steps):
        raise ValueError(f"events: they come in the order of their steps; got steps {', '.join(map(str, steps))}")
    now, quiet = spec.model_copy(update={"events": ()}), frozenset[Head]()
    for i, event in enumerate(spec.events):
        if event.step > spec.steps:
            raise ValueError(f"events.{i}: at: step {event.step} is beyond the end, {spec.steps}")
        try:
            _suits(now, event, quiet)
            now, quiet = _steered(now, event), _quieted(quiet, event)
        except (EngramError, ValueError) as error:
            raise ValueError(f"events.{i}: {error}") from None


def _suits(now: "Train", event: Event, quiet: frozenset[Head]) -> None:
    if isinstance(event, OfMatrix):
        _of_matrix(now, event)
    elif isinstance(event, OfHead):
        _of_head(now, event, quiet)
    elif isinstance(event, Change):
        _of_field(now, event)


def _of_matrix(now: "Train", event: OfMatrix) -> None:
    trained, moves = now.plan.trained, event.matrix in now.plan.trained_at(event.step)
    if event.matrix not in trained:
        hint = did_you_mean(event.matrix, trained)
        raise ValueError(f"matrix: {event.matrix!r} is not trained; {hint}allowed: {', '.join(trained)}")
    if isinstance(event, Freeze | Unfreeze) and moves != isinstance(event, Freeze):
        how = "not frozen" if moves else "frozen already"
        raise ValueError(f"matrix: {event.matrix} is {how} at step {event.step}")
    if isinstance(event, Truncate) and now.model.init(now.task.N, now.task.T, now.seed)[event.matrix].ndim < 2:
        raise ValueError(f"matrix: {event.matrix} is a vector; it has no rank")
    if isinstance(event, Reset) and event.to >= event.step:
        raise ValueError(f"to: step {event.to} is not before step {event.step}")


def _of_head(now: "Train", event: OfHead, quiet: frozenset[Head]) -> None:
    if not hasattr(now.model, "without"):
        raise ValueError(f"{type(now.model).__name__} has no heads that can be ablated")
    head = event.layer, event.head
    now.model.without({}, head)  # type: ignore[attr-defined]  # refuses an unknown head
    if isinstance(event, Restore) == (head not in quiet):
        raise ValueError(f"head: {head} is {'not ablated' if head not in quiet else 'ablated already'}")


def _of_field(now: "Train", event: Change) -> None:
    if not event.field.startswith(CHANGEABLE) or event.field.startswith(FIXED):
        raise ValueError(f"field: {event.field} cannot change on the way; allowed: {', '.join(CHANGEABLE)}")
    after = _steered(now, event)
    if (after.task.N, after.task.T) != (now.task.N, now.task.T):
        raise ValueError(f"{event.field}: the vocabulary and the length of sequences must stay as they are")
    if type(after.plan.optimiser) is not type(now.plan.optimiser):
        raise ValueError(f"{event.field}: the optimiser must stay the same")
