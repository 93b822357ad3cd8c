"""What a forward pass returns, and a model together with its weights."""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.errors import EngramError

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Trace:
    """Every named intermediate of a forward pass; nothing is hooked.

    B sequences, T positions, d width, N tokens; axis `k` runs over keys (positions attended to).
    """

    x0: Float[Tensor, "B T d"]  # e_{z_t} + p_t
    scores1: Float[Tensor, "B T k"]  # before softmax; −∞ above the diagonal
    attention1: Float[Tensor, "B T k"]
    x1: Float[Tensor, "B T d"]  # after layer 1
    scores2: Float[Tensor, "B T k"]
    attention2: Float[Tensor, "B T k"]
    x2: Float[Tensor, "B T d"]  # after layer 2, before W_F
    feed_forward: Float[Tensor, "B T d"] | None  # W_F x2
    logits: Float[Tensor, "B T N"]


@runtime_checkable
class Architecture(Protocol):
    """A frozen description of a network: its matrices by name, their first values, and the forward pass."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def init(self, N: int, T: int, seed: int) -> Weights: ...

    def forward(self, w: Weights, tokens: Int[Tensor, "B T"]) -> Any: ...  # learning reads its .logits


@dataclass(frozen=True)
class Model:
    """An architecture with weights: call it on a sequence (T) or a batch (B×T) of token ids to get a Trace."""

    architecture: Architecture
    weights: Weights

    @torch.no_grad()
    def __call__(self, tokens: Int[Tensor, "*B T"] | Int[np.ndarray, "*B T"] | list[int]) -> Trace:
        z = torch.atleast_2d(torch.as_tensor(tokens))
        N, T = len(self.weights["E"]), len(self.weights["P"])
        if z.shape[1] > T or (z.numel() and not 0 <= int(z.min()) <= int(z.max()) < N):
            raise EngramError(f"a sequence of this model has at most {T} tokens, each in 0 … {N - 1}")
        return self.architecture.forward(self.weights, z)
