r"""Single heads that recall facts, small enough for theory: linear on one-hot embeddings, softmax on random ones.

LinearHead     logit_a = Σ_t w(z_t) W(a, z_t)                     w = W_KQ e_EOS, W = W_OV
SoftmaxHead    logits = U W_OV Σ_t a_t e_{z_t},   a = softmax_t( e_{z_t}ᵀ W_KQ e_EOS )
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from engram.embeddings import directions
from engram.models.trace import Weights
from engram.values import Value

Answers = Annotated[int, Field(ge=2, le=2**20)]


@dataclass(frozen=True)
class HeadTrace:
    """What each token of the prompt weighs, and the scores of all answers: the same at every position, read at EOS."""

    attention: Float[Tensor, "B T"]
    logits: Float[Tensor, "B T A"]


class LinearHead(Value):
    """All first values are `alpha`."""

    answers: Answers
    alpha: Annotated[float, Field(gt=0)] = 1e-5

    @property
    def names(self) -> tuple[str, ...]:
        return ("w", "W")

    def init(self, N: int, T: int, seed: int) -> Weights:
        return {"w": torch.full((N,), self.alpha), "W": torch.full((self.answers, N), self.alpha)}

    def limits(self, w: Weights) -> tuple[int, int | None]:
        """How many tokens there are, and how long a prompt may be."""
        return len(w["w"]), None

    def last_store(self, w: Weights, tokens: Int[Tensor, "B T"]) -> tuple[str, Float[Tensor, "B N"]]:
        """W, and what it is applied to: how much of each token is there."""
        weight = w["w"][tokens]
        return "W", torch.zeros(len(tokens), len(w["w"]), dtype=weight.dtype).scatter_add(1, tokens, weight)

    def forward(self, w: Weights, tokens: Int[Tensor, "B T"]) -> HeadTrace:
        weight = w["w"][tokens]
        logits = (weight[..., None] * w["W"].T[tokens]).sum(1)
        return HeadTrace(weight, logits[:, None].expand(*tokens.shape, -1))


class SoftmaxHead(Value):
    """Random embeddings on the sphere, frozen; W_KQ and W_OV begin at zero."""

    answers: Answers
    d: Annotated[int, Field(ge=1, le=2**14)] = 128

    @property
    def names(self) -> tuple[str, ...]:
        return ("E", "U", "W_KQ", "W_OV")

    def init(self, N: int, T: int, seed: int) -> Weights:
        zero = torch.zeros(self.d, self.d)
        E, U = (directions("sphere", n, self.d, seed, name) for name, n in (("E", N), ("U", self.answers)))
        return {"E": E, "U": U, "W_KQ": zero, "W_OV": zero.clone()}

    def limits(self, w: Weights) -> tuple[int, int | None]:
        """How many tokens there are, and how long a prompt may be."""
        return len(w["E"]), None

    def last_store(self, w: Weights, tokens: Int[Tensor, "B T"]) -> tuple[str, Float[Tensor, "B d"]]:
        """W_OV, and what it is applied to: the mean that attention takes."""
        return "W_OV", self._attend(w, tokens)[1]

    def forward(self, w: Weights, tokens: Int[Tensor, "B T"]) -> HeadTrace:
        a, x = self._attend(w, tokens)
        return HeadTrace(a, (x @ w["W_OV"].T @ w["U"].T)[:, None].expand(*tokens.shape, -1))

    def _attend(self, w: Weights, tokens: Int[Tensor, "B T"]) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B d"]]:
        x = w["E"][tokens]
        a = torch.softmax((x @ w["W_KQ"] * x[:, -1:]).sum(-1), dim=1)
        return a, (a[..., None] * x).sum(1)
