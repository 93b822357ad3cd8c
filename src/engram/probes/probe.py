"""What a probe is: one measurement of a training, declared in one place."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Int
from pydantic import Field
from torch import Tensor

from engram.errors import did_you_mean
from engram.memory.stored import Stored
from engram.models import Architecture, Weights
from engram.models.memories import memories_of, two_layers
from engram.tasks import Batch, Bigram, Task
from engram.tasks.batch import UNSEEN
from engram.values import Value, import_room

END_SEQUENCES = 64  # unseen sequences for a probe of the trained model


@dataclass(frozen=True)
class Look:
    """A training at one step, as a probe sees it. A probe measures and changes nothing.

    w            the weights, by the names of their matrices: w["W_O2"]
    first()      the initial weights
    unseen(n)    n sequences that are never trained on: a Batch with tokens and groups
    forward(b)   the model's Trace of a Batch: logits and every intermediate
    memories()   what the matrices store, as a list of Stored
    task, model, seed    of the training
    trained      the names of the trained matrices
    loss         the group of positions that the training reads
    tests        by name, the tasks on which it is tested
    gradients    computes loss and accuracy as the training does (engram.learning.reference.gradients)
    """

    task: Task
    model: Architecture
    w: Weights
    seed: int
    trained: tuple[str, ...]
    loss: str
    tests: Mapping[str, Task]
    gradients: Callable[..., Any]
    first: Callable[[], Weights]

    def unseen(self, sequences: int, task: Task | None = None) -> Batch:
        """Sequences of the training's task, or of another, that are never trained on."""
        return (task or self.task).sample(self.seed, UNSEEN, sequences)

    def forward(self, batch: Batch) -> Any:
        """The model's Trace of these sequences."""
        return self.model.forward(self.w, tensor_of(batch.tokens, self.w))

    def memories(self) -> list[Stored]:
        """The memories of the model."""
        return memories_of(self.model, self.w, self.task, self.seed)

    if not TYPE_CHECKING:  # there a name that is not here is an error already

        def __getattr__(self, name: str) -> Any:
            """Asked for only what a Look lacks."""
            has = [*self.__dataclass_fields__, "unseen", "forward", "memories"]
            hint = "did you mean w? " if name == "weights" else did_you_mean(name, has)
            raise AttributeError(f"a Look has no {name!r}; {hint}it has: {', '.join(has)}")


class Probe(Value):
    """One measurement of a training. Subclass it for a probe of your own, and pass it to Plan(probes=(…,)).

    every      steps between measurements; None: once, in the last row
    columns    the beginnings of the names of its columns
    rhythm     for a probe that every training has, the field of the plan that says how often
    called     for a probe that a plan requests in at_end, its name there
    """

    every: Annotated[int, Field(ge=1)] | None = None
    columns: ClassVar[tuple[str, ...]] = ()
    rhythm: ClassVar[Literal["probe_every", "attention_every"] | None] = None
    called: ClassVar[str | None] = None

    def missing(self, task: Task, model: Architecture) -> str | None:
        """In words, what it needs and this task and model lack; None if it suits them."""

    @abstractmethod
    def measure(self, look: Look) -> dict[str, float]:
        """The columns that it adds to a row, with their values."""

    def is_due(self, step: int, last: int) -> bool:
        return step == last or (self.every is not None and step % self.every == 0)


def known_probes() -> Iterator[type[Probe]]:
    """Every probe that comes with Engram, in the order of their names."""
    import_room("probes")
    found = (kind for base in (Probe, InductionProbe) for kind in base.__subclasses__() if kind.stable_name)
    return iter(sorted(found, key=lambda kind: kind.__name__))


def probes_by_name() -> dict[str, type[Probe]]:
    """The probes that a plan can request in at_end."""
    return {kind.called: kind for kind in known_probes() if kind.called}


class InductionProbe(Probe):
    """A probe of an induction head on the bigram task."""

    def missing(self, task: Task, model: Architecture) -> str | None:
        suits = isinstance(task, Bigram) and two_layers(model)
        return None if suits else "the task Bigram and a model with two layers of attention"


def tensor_of(tokens: Int[np.ndarray, "B T"], w: Weights) -> Int[Tensor, "B T"]:
    """A task's tokens where the weights are; a read-only view is copied."""
    return torch.from_numpy(np.array(tokens, dtype=np.int64)).to(next(iter(w.values())).device)
