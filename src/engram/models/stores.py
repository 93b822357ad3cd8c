"""Networks that only store: what they are, before `Search` asks how much they hold.

Written ones have a formula for their weights; trained ones have initial weights and a forward pass. Inputs X and
targets V are rows (N×d), with a leading axis of independent problems; an answer is decoded by its largest score with U.
"""

from math import sqrt
from typing import Annotated, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from scipy.special import ndtr, ndtri
from torch import Tensor

from engram.embeddings import directions
from engram.memory.rules import hebb, low_rank
from engram.models.trace import Weights
from engram.values import Value, generator

Width = Annotated[int, Field(ge=1)]
Rows = Float[Tensor, "draws N d"]


@runtime_checkable
class Written(Protocol):
    """A memory whose weights are given by a formula: its answers to all inputs after storing all pairs."""

    @property
    def d(self) -> int: ...

    def answers(self, X: Rows, V: Rows, seed: int) -> Rows: ...


class Outer(Value, name="models.stores.Outer"):
    """W = Σ v_z x_zᵀ.

    d    width
    """

    d: Width

    def answers(self, X: Rows, V: Rows, seed: int) -> Rows:
        return X @ hebb(X, V).mT


class OuterLowRank(Value, name="models.stores.OuterLowRank"):
    """W = A Bᵀ of rank m, B frozen Gaussian, A one gradient step on the correlation.

    d    width
    m    rank
    """

    d: Width
    m: Width

    @model_validator(mode="after")
    def _rank_fits(self) -> "OuterLowRank":
        if self.m > self.d:
            raise ValueError(f"m: the rank is at most d={self.d}; got {self.m}")
        return self

    def answers(self, X: Rows, V: Rows, seed: int) -> Rows:
        B = _frozen(X, self.d, self.m, seed, "B")
        return X @ B @ low_rank(X, V, B).mT


def _frozen(X: Rows, rows: int, columns: int, seed: int, name: str) -> Float[Tensor, "draws rows columns"]:
    return directions("gaussian", len(X) * rows, columns, seed, name).view(len(X), rows, columns)


@runtime_checkable
class Learner(Protocol):
    """A network whose every weight is trained: names and initial values of its weights, and its forward pass."""

    @property
    def d(self) -> int: ...

    def init(self, seed: int) -> Weights: ...

    def forward(self, w: Weights, X: Rows) -> Rows: ...


class LinearMap(Value, name="models.stores.LinearMap"):
    """y = W x.

    d    width
    """

    d: Width

    def init(self, seed: int) -> Weights:
        return {"W": lecun(self.d, self.d, seed, "W")}

    def forward(self, w: Weights, X: Rows) -> Rows:
        return X @ w["W"].mT


class TwoLayer(Value, name="models.stores.TwoLayer"):
    """y = W2 ReLU(W1 x + b): m units with bias, no bias after them.

    d    width
    m    hidden units
    """

    d: Width
    m: Width

    def init(self, seed: int) -> Weights:
        W1, W2 = lecun(self.m, self.d, seed, "W1"), lecun(self.d, self.m, seed, "W2")
        return {"W1": W1, "b": torch.zeros(1, self.m), "W2": W2}

    def forward(self, w: Weights, X: Rows) -> Rows:
        return (X @ w["W1"].mT + w["b"]).relu() @ w["W2"].mT


class OneHead(Value, name="models.one_head.OneHead"):
    """One head of attention over marked tokens, learned in three steps (engram.learning.planted_steps).

    Its width is what a Search looks for.

    asked    label: the least width at which labels are right; mark: the least at which the mark is attended to
    """

    asked: Literal["label", "mark"] = "label"


def lecun(n: int, d: int, seed: int, name: str) -> Float[Tensor, "n d"]:
    """Entries of variance 1/d, normal truncated at two standard deviations: the default of the published code."""
    u = generator(seed, f"init.{name}").random((n, d))
    cut = ndtri(ndtr(-2) + u * (ndtr(2) - ndtr(-2)))
    return torch.from_numpy((cut / 0.87962566103423978 / sqrt(d)).astype(np.float32))
