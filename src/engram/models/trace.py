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

    B sequences, T positions, d width, N tokens, H heads, each layer its own number; axis `k` runs over keys (positions
    attended to). `written` says by name and in order what each part adds to the residual stream: "embedding" is
    e_{z_t} + p_t, "head1" what the attention of layer 1 adds, "W_F…" what a feed-forward layer adds.
    """

    written: dict[str, Float[Tensor, "B T d"]]
    scores: tuple[Float[Tensor, "B _H T k"], ...]  # of each layer, before softmax; −∞ above the diagonal
    attention: tuple[Float[Tensor, "B _H T k"], ...]  # of each layer
    x: Float[Tensor, "B T d"]  # the residual stream at its end: the sum of all that was written
    logits: Float[Tensor, "B T N"]

    @property
    def attention1(self) -> Float[Tensor, "B T k"]:
        """Attention of layer 1, the mean over its heads."""
        return self.attention[0].mean(dim=1)

    @property
    def attention2(self) -> Float[Tensor, "B T k"]:
        """Attention of layer 2, the mean over its heads."""
        return self.attention[1].mean(dim=1)


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
