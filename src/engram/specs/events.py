"""Interventions: what a person does to a training while it runs.

An event takes effect before its step is measured. A training is a function of its Spec, events included: one that was
steered by hand and one that runs through the same Spec at once have the same rows.
"""

from collections.abc import Callable, Mapping
from typing import Annotated

import torch
from pydantic import Field

from engram.learning.plan import Steps
from engram.models import Weights
from engram.values import Value, generator

Past = Callable[[int], Weights]  # trained weights at an earlier step


class Event(Value):
    step: Steps

    def act(self, w: Weights, moments: Weights, past: Past, stream: tuple[int, str]) -> None:
        """Changes trained weights and the optimiser's averages in place; most events change the Spec instead."""


class OfMatrix(Event):
    matrix: str


class Freeze(OfMatrix, name="learning.events.Freeze"):
    """From this step on the matrix does not move."""


class Unfreeze(OfMatrix, name="learning.events.Unfreeze"):
    """The matrix moves again. Averages of gradients from before it was frozen are forgotten."""

    def act(self, w: Weights, moments: Weights, past: Past, stream: tuple[int, str]) -> None:
        for key in [key for key in moments if key.endswith(f"/{self.matrix}")]:
            del moments[key]


class Reset(OfMatrix, name="learning.events.Reset"):
    """The matrix has the values of an earlier step."""

    to: Steps = 0

    def act(self, w: Weights, moments: Weights, past: Past, stream: tuple[int, str]) -> None:
        w[self.matrix].copy_(past(self.to)[self.matrix])


class Truncate(OfMatrix, name="learning.events.Truncate"):
    """Only the largest `rank` singular values of the matrix are kept."""

    rank: Annotated[int, Field(ge=0)]

    def act(self, w: Weights, moments: Weights, past: Past, stream: tuple[int, str]) -> None:
        U, s, V = torch.linalg.svd(w[self.matrix].double(), full_matrices=False)
        w[self.matrix].copy_((U[:, : self.rank] * s[: self.rank]) @ V[: self.rank])


class Noise(OfMatrix, name="learning.events.Noise"):
    """Gaussian noise is added to the matrix: `size` times the root of the mean square of its entries."""

    size: Annotated[float, Field(gt=0)]

    def act(self, w: Weights, moments: Weights, past: Past, stream: tuple[int, str]) -> None:
        W, (seed, purpose) = w[self.matrix], stream
        noise = torch.from_numpy(generator(seed, purpose, self.step).standard_normal(W.shape)).to(W)
        W += self.size * W.square().mean().sqrt() * noise


class OfHead(Event):
    layer: Annotated[int, Field(ge=1)]
    head: Annotated[int, Field(ge=1)] = 1


class Ablate(OfHead, name="learning.events.Ablate"):
    """The head writes nothing, and learns nothing through what it would write; momentum and decay of W_O go on."""


class Restore(OfHead, name="learning.events.Restore"):
    """The head writes again."""


class Change(Event, name="learning.events.Change"):
    """A field of the Spec has another value from this step on: plan.optimiser.lr, plan.batch, task.K, …"""

    field: str
    value: float | int | str | bool


AnyEvent = Freeze | Unfreeze | Reset | Truncate | Noise | Ablate | Restore | Change
KINDS: Mapping[str, type[Event]] = {
    kind.__name__.lower(): kind for kind in (Freeze, Unfreeze, Reset, Truncate, Noise, Ablate, Restore, Change)
}
