"""Interventions: what a person does to a training while it runs.

An event takes effect before its step is measured. A training is a function of its Spec, events included: one that was
steered by hand and one that runs through the same Spec at once have the same rows.

All about an intervention stands in its class: fields and how a form asks for them (engram.specs.settings), words,
effects, and what it refuses. Another intervention is another class, here or in a file of one's own:

    from engram import OfMatrix

    class Scale(OfMatrix):
        "All entries of the matrix are multiplied by a factor."

        title = "Scale a matrix"
        words = "scale {matrix} by {factor:g}"
        factor: float = 2.0

        def act(self, w, moments, past, stream):
            w[self.matrix] *= self.factor
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import torch
from pydantic import Field

from engram.errors import EngramError, did_you_mean
from engram.learning.plan import Steps
from engram.memory.stored import truncated
from engram.models import Weights
from engram.models.memories import heads_of
from engram.models.trace import Architecture, Head
from engram.specs.encode import in_files, user_code
from engram.specs.settings import Ask, Offer, form, setting, with_settings
from engram.tasks.corpus import is_a_record_read, unread
from engram.values import Value, generator, import_room

if TYPE_CHECKING:
    from engram.specs.spec import Train

Past = Callable[[int], Weights]  # trained weights at an earlier step
WeightsOf = Callable[[str, int], Weights]  # all weights of a run, by its name, at a stored step
CHANGEABLE = ("plan.batch", "plan.loss", "plan.optimiser.", "task.")
FIXED = ("task.corpus",)  # another text is another vocabulary, and a file that nobody asked to read
OFFERED = ("plan.optimiser.lr", "plan.batch", "task.K", "task.triggers", "task.outputs")


class Event(Value):
    """The docstring of a class is the hint that its form shows."""

    title: ClassVar[str] = ""  # what a list of interventions calls it
    words: ClassVar[str] = ""  # what was done, with the names of fields in braces
    step: Steps

    @property
    def sentence(self) -> str:
        """What was done; of a class without words, its name."""
        try:
            return (self.words or type(self).__name__).format_map(vars(self))
        except (KeyError, ValueError, IndexError, AttributeError) as error:
            why = f"{type(error).__name__}: {error}"
            raise EngramError(f"words: {self.words!r} does not suit the fields ({why})") from None

    @property
    def earlier(self) -> dict[str, int]:
        """Steps, by the field that names them, whose weights `act` asks `past` for."""
        return {}

    def act(self, w: Weights, moments: Weights, past: Past, stream: tuple[int, str]) -> None:
        """Changes trained weights and the optimiser's running averages in place; no gradient is taken.

        moments    the averages, named kind/matrix (exp_avg/W_O2)
        past       past(step) gives the trained weights of an earlier step (see `earlier`)
        stream     (seed, purpose) for engram.generator, if the event draws something
        """

    def act_on(self, model: Architecture, w: Weights, moments: Weights, past: Past, stream: tuple[int, str]) -> None:
        """The same, for an event that must know the model."""
        self.act(w, moments, past, stream)

    @classmethod
    def completed(cls, fields: dict[str, Any], weights_of: WeightsOf) -> dict[str, Any]:
        """What was put into a form, with what the form does not ask for (`Filled`)."""
        return fields

    def steer(self, now: "Train") -> "Train":
        """What is trained from then on."""
        return now

    def silence(self, heads: frozenset[Head]) -> frozenset[Head]:
        """The heads that write nothing from then on."""
        return heads

    def refuse(self, now: "Train", silent: frozenset[Head]) -> None:
        """ValueError that begins with the name of a field, if that makes no sense where the event comes."""
        for field, step in self.earlier.items():
            if step >= self.step:
                raise ValueError(f"{field}: step {step} is not before step {self.step}")


class OfMatrix(Event):
    """An intervention on one matrix; derive your own from it."""

    matrix: Annotated[str, Ask("matrix", lambda spec: Offer(choices=spec.plan.trained))]

    def refuse(self, now: "Train", silent: frozenset[Head]) -> None:
        if self.matrix not in now.plan.trained:
            hint = did_you_mean(self.matrix, now.plan.trained)
            raise ValueError(f"matrix: {self.matrix!r} is not trained; {hint}allowed: {', '.join(now.plan.trained)}")
        super().refuse(now, silent)


class Freeze(OfMatrix, name="learning.events.Freeze"):
    """From this step on the matrix does not move."""

    title = "Freeze a matrix"
    words = "freeze {matrix}"

    def steer(self, now: "Train") -> "Train":
        return _frozen(now, now.plan.frozen_until | {self.matrix: now.steps + 1})

    def refuse(self, now: "Train", silent: frozenset[Head]) -> None:
        super().refuse(now, silent)
        if self.matrix not in now.plan.trained_at(self.step):
            raise ValueError(f"matrix: {self.matrix} is frozen already at step {self.step}")


class Unfreeze(OfMatrix, name="learning.events.Unfreeze"):
    """The matrix moves again. Averages of gradients from before it was frozen are forgotten."""

    title = "Unfreeze a matrix"
    words = "unfreeze {matrix}"

    def act(self, w: Weights, moments: Weights, past: Past, stream: tuple[int, str]) -> None:
        for key in [key for key in moments if key.endswith(f"/{self.matrix}")]:
            del moments[key]

    def steer(self, now: "Train") -> "Train":
        return _frozen(now, {name: until for name, until in now.plan.frozen_until.items() if name != self.matrix})

    def refuse(self, now: "Train", silent: frozenset[Head]) -> None:
        super().refuse(now, silent)
        if self.matrix in now.plan.trained_at(self.step):
            raise ValueError(f"matrix: {self.matrix} is not frozen at step {self.step}")


def _frozen(now: "Train", until: dict[str, int]) -> "Train":
    return now.model_copy(update={"plan": now.plan.model_copy(update={"frozen_until": until})})


class Reset(OfMatrix, name="learning.events.Reset"):
    """The matrix has the values of an earlier stored step."""

    title = "Reset a matrix"
    words = "reset {matrix} to step {to}"
    to: Annotated[Steps, Ask("to step", lambda spec: Offer(0))] = 0

    @property
    def earlier(self) -> dict[str, int]:
        return {"to": self.to}

    def act(self, w: Weights, moments: Weights, past: Past, stream: tuple[int, str]) -> None:
        w[self.matrix].copy_(past(self.to)[self.matrix])


class Truncate(OfMatrix, name="learning.events.Truncate"):
    """Only the largest singular values of the matrix are kept."""

    title = "Truncate the rank"
    words = "truncate {matrix} to rank {rank}"
    rank: Annotated[int, Field(ge=0), Ask("rank", lambda spec: Offer(1))]

    def act(self, w: Weights, moments: Weights, past: Past, stream: tuple[int, str]) -> None:
        w[self.matrix].copy_(truncated(w[self.matrix], self.rank))

    def refuse(self, now: "Train", silent: frozenset[Head]) -> None:
        super().refuse(now, silent)
        if is_a_record_read():
            return  # it was not refused when it was made, and a list does not wait for large matrices
        if now.model.init(now.task.N, now.task.T, now.seed)[self.matrix].ndim < 2:
            raise ValueError(f"matrix: {self.matrix} is a vector; it has no rank")


class Noise(OfMatrix, name="learning.events.Noise"):
    """Gaussian noise is added to the matrix; its size is a share of the root of the mean square of the entries."""

    title = "Add noise"
    words = "noise of size {size:g} on {matrix}"
    size: Annotated[float, Field(gt=0), Ask("size", lambda spec: Offer(0.5))]

    def act(self, w: Weights, moments: Weights, past: Past, stream: tuple[int, str]) -> None:
        W, (seed, purpose) = w[self.matrix], stream
        noise = torch.from_numpy(generator(seed, purpose, self.step).standard_normal(W.shape)).to(W)
        W += self.size * W.square().mean().sqrt() * noise


def _layers(spec: "Train") -> Offer:
    return Offer(choices=tuple(dict.fromkeys(layer for layer, _ in heads_of(spec.model))))


def _heads(spec: "Train", layer: int) -> Offer:
    return Offer(choices=tuple(head for of, head in heads_of(spec.model) if of == layer))


class OfHead(Event):
    """An intervention on one head; derive your own from it."""

    layer: Annotated[int, Field(ge=1), Ask("layer", _layers)]
    head: Annotated[int, Field(ge=1), Ask("head", _heads, "layer")] = 1

    @property
    def place(self) -> Head:
        return self.layer, self.head

    def refuse(self, now: "Train", silent: frozenset[Head]) -> None:
        if not hasattr(now.model, "without"):
            raise ValueError(f"{type(now.model).__name__} has no heads that can be ablated")
        now.model.without({}, self.place)  # type: ignore[attr-defined]  # refuses an unknown head
        super().refuse(now, silent)


class Ablate(OfHead, name="learning.events.Ablate"):
    """The head writes nothing, and learns nothing through what it would write."""

    title = "Ablate a head"
    words = "ablate head {layer}.{head}"

    def silence(self, heads: frozenset[Head]) -> frozenset[Head]:
        return heads | {self.place}  # its weights are still there: momentum and decay of W_O go on

    def refuse(self, now: "Train", silent: frozenset[Head]) -> None:
        super().refuse(now, silent)
        if self.place in silent:
            raise ValueError(f"head: {self.place} is ablated already")


class Restore(OfHead, name="learning.events.Restore"):
    """The head writes again."""

    title = "Restore a head"
    words = "restore head {layer}.{head}"

    def silence(self, heads: frozenset[Head]) -> frozenset[Head]:
        return heads - {self.place}

    def refuse(self, now: "Train", silent: frozenset[Head]) -> None:
        super().refuse(now, silent)
        if self.place not in silent:
            raise ValueError(f"head: {self.place} is not ablated")


def _settings(spec: "Train") -> Offer:
    return Offer(choices=tuple(name for name in OFFERED if setting(spec, name)))


def _setting(spec: "Train", name: str) -> Offer:
    return setting(spec, name) or Offer()


class Change(Event, name="learning.events.Change"):
    """A setting has another value from this step on."""

    title = "Change a setting"
    words = "set {field} to {value}"
    field: Annotated[str, Ask("setting", _settings)]
    value: Annotated[float | int | str | bool, Ask("value", _setting, "field")]

    def steer(self, now: "Train") -> "Train":
        return with_settings(now, {self.field: self.value})

    def refuse(self, now: "Train", silent: frozenset[Head]) -> None:
        if not self.field.startswith(CHANGEABLE) or self.field.startswith(FIXED):
            raise ValueError(f"field: {self.field} cannot change on the way; allowed: {', '.join(CHANGEABLE)}")
        after = self.steer(now)
        if after.task.T != now.task.T or not (unread(now.task) or after.task.N == now.task.N):
            raise ValueError(f"{self.field}: the vocabulary and the length of sequences must stay as they are")
        if type(after.plan.optimiser) is not type(now.plan.optimiser):
            raise ValueError(f"{self.field}: the optimiser must stay the same")


def kinds(spec: "Train") -> dict[str, type[Event]]:
    """Interventions by name: Engram's own, then those in the files of one's own that the Spec carries."""
    import_room("specs")  # some are in modules of their own
    code, known = user_code(spec), _subclasses(Event)
    own = [kind for kind in known if in_files(kind, code)]
    return {kind.__name__.lower(): kind for kind in [*(kind for kind in known if kind.stable_name), *own]}


def interventions(spec: "Train") -> list[dict[str, Any]]:
    """What can be done to a run, with all that a page needs to ask for it."""
    found = [(name, kind, form(kind, spec)) for name, kind in kinds(spec).items()]
    return [
        {"kind": name, "title": kind.title or kind.__name__, "hint": _hint(kind), "fields": fields}
        for name, kind, fields in found
        if fields is not None
    ]


def _hint(kind: type[Event]) -> str:
    return " ".join((kind.__doc__ or "").split())


def kind_called(name: str, spec: "Train") -> type[Event]:
    known = kinds(spec)
    if name not in known:
        raise EngramError(f"kind: no intervention {name!r}; {did_you_mean(name, known)}allowed: {', '.join(known)}")
    return known[name]


def _subclasses(kind: type[Event]) -> list[type[Event]]:
    return [found for sub in kind.__subclasses__() for found in (sub, *_subclasses(sub))]
