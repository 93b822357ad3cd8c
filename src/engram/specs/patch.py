r"""Interventions that put other weights in the place of those that training has found: rescaled ones, or those of
another run or step.

    Rescale        W ← c W
    RescaleHead    W_O[:, h] ← c W_O[:, h]
    Patch          W ← W of another run, or of another step

A patch carries its numbers with it: a run that was patched can be computed again when the other run is gone.
"""

import base64
import binascii
from math import prod
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from engram.errors import EngramError, did_you_mean
from engram.learning.plan import Steps
from engram.models import Weights
from engram.models.trace import Architecture, Head
from engram.specs.events import OfHead, OfMatrix, Past, WeightsOf
from engram.specs.settings import Ask, Filled, Offer
from engram.tasks.corpus import is_a_record_read
from engram.values import BadValue

if TYPE_CHECKING:
    from engram.specs.spec import Train

MOST_NUMBERS = 2**20  # that a Spec carries for one patch
TYPES = {4: "<f4", 8: "<f8"}  # by the bytes of a number
Factor = Annotated[float, Field(allow_inf_nan=False), Ask("factor", lambda spec: Offer(0.5))]


def _refuse_one(factor: float) -> None:
    if factor == 1:
        raise ValueError("factor: 1 changes nothing")


class Rescale(OfMatrix, name="specs.patch.Rescale"):
    """All entries of the matrix are multiplied by a factor; 0 removes it, until it is trained again."""

    title = "Rescale a matrix"
    words = "rescale {matrix} by {factor:g}"
    factor: Factor

    def act(self, w: Weights, moments: Weights, past: Past, stream: tuple[int, str]) -> None:
        w[self.matrix] *= self.factor

    def refuse(self, now: "Train", silent: frozenset[Head]) -> None:
        super().refuse(now, silent)
        _refuse_one(self.factor)


class RescaleHead(OfHead, name="specs.patch.RescaleHead"):
    """What the head writes is multiplied by a factor: its columns of W_O are."""

    title = "Rescale a head"
    words = "rescale head {layer}.{head} by {factor:g}"
    factor: Factor

    def act_on(self, model: Architecture, w: Weights, moments: Weights, past: Past, stream: tuple[int, str]) -> None:
        for name, rest in model.without(w, self.place).items():  # type: ignore[attr-defined]  # refuse asks for it
            if rest is not w[name]:
                w[name].copy_(rest + self.factor * (w[name] - rest))

    def refuse(self, now: "Train", silent: frozenset[Head]) -> None:
        super().refuse(now, silent)
        _refuse_one(self.factor)
        frozen = [] if is_a_record_read() else [n for n in written_by(now, self.place) if n not in now.plan.trained]
        if frozen:
            fix = f"ablate it, or rescale a trained matrix ({', '.join(now.plan.trained)})"
            raise ValueError(f"head: {self.layer}.{self.head} writes through {frozen[0]}, which is not trained; {fix}")


def written_by(spec: "Train", head: Head) -> list[str]:
    """The matrices through which a head writes."""
    shapes = spec.model.init(spec.task.N, spec.task.T, spec.seed)
    ones: Weights = {name: torch.ones_like(value) for name, value in shapes.items()}
    without = spec.model.without(ones, head)  # type: ignore[attr-defined]  # who asks knows that it has heads
    return [name for name in ones if not torch.equal(ones[name], without[name])]


def _own_name(spec: "Train") -> Offer:
    from engram.specs.spec import run_id  # it imports the module of events

    return Offer(run_id(spec))


class Patch(OfMatrix, name="specs.patch.Patch"):
    """The matrix has the values of a stored step of another run, or of this one; the fork keeps a copy of them."""

    title = "Patch from another run or step"
    words = "patch {matrix} from step {of} of {source}"
    source: Annotated[str, Field(max_length=200), Ask("from run", _own_name)]
    of: Annotated[Steps, Ask("at its step", lambda spec: Offer(0))] = 0
    shape: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1, max_length=2), Filled()]
    content: Annotated[str, Field(max_length=12 * MOST_NUMBERS), Filled()]

    @classmethod
    def completed(cls, fields: dict[str, Any], weights_of: WeightsOf) -> dict[str, Any]:
        """With the numbers of the other run."""
        matrix, source, of = (fields.get(name) for name in ("matrix", "source", "of"))
        if not (isinstance(source, str) and isinstance(of, int) and isinstance(matrix, str)):
            return fields  # what is missing or wrong is named when the event is made
        try:
            weights = weights_of(source, of)
        except EngramError as error:
            raise BadValue(str(error) if str(error).startswith("of: ") else f"source: {error}") from None
        if matrix not in weights:
            hint = did_you_mean(matrix, weights)
            raise BadValue(f"matrix: run {source} has no {matrix}; {hint}it has {', '.join(weights)}")
        return fields | carried(weights[matrix])

    @property
    def values(self) -> Tensor:
        """The numbers that it carries."""
        try:
            raw = base64.b64decode(self.content, validate=True)
        except (binascii.Error, ValueError):
            raise ValueError("content: is no base64") from None
        kind = TYPES.get(len(raw) // prod(self.shape))
        if kind is None or len(raw) != int(kind[-1]) * prod(self.shape):
            raise ValueError(f"content: {len(raw)} bytes are no matrix of the shape {self.shape}")
        return torch.from_numpy(np.frombuffer(raw, kind).reshape(self.shape).astype(kind[1:]))

    def act(self, w: Weights, moments: Weights, past: Past, stream: tuple[int, str]) -> None:
        w[self.matrix].copy_(self.values.to(w[self.matrix]))

    def refuse(self, now: "Train", silent: frozenset[Head]) -> None:
        super().refuse(now, silent)
        if not bool(self.values.isfinite().all()):
            place = f"step {self.of} of {self.source}"
            raise ValueError(f"source: {self.matrix} at {place} has entries that are no numbers")
        if is_a_record_read():
            return  # it was not refused when it was made, and a list does not wait for large matrices
        shape = tuple(now.model.init(now.task.N, now.task.T, now.seed)[self.matrix].shape)
        if self.shape != shape:
            theirs, ours = ("×".join(map(str, one)) for one in (self.shape, shape))
            raise ValueError(f"matrix: {self.matrix} is {theirs} in run {self.source}, and {ours} here")


def carried(W: Tensor) -> dict[str, Any]:
    """Shape and numbers of a matrix, exact to the last bit, as fields of a Patch."""
    if W.numel() > MOST_NUMBERS:
        raise BadValue(f"matrix: {W.numel():,} numbers are too many to carry in a Spec; at most {MOST_NUMBERS:,} are")
    kind = TYPES[8] if W.dtype == torch.float64 else TYPES[4]
    raw = W.detach().cpu().numpy().astype(kind).tobytes()
    return {"shape": tuple(W.shape), "content": base64.b64encode(raw).decode()}
