r"""The simplified two-layer transformer of "Birth of a Transformer", section 4.2.

    x_t  = e_{z_t} + p_t
    x¹_t = x_t  + W_O1 Σ_{s≤t} a¹_ts W_V1 x_s,      a¹_t· = softmax_s( x_t  · W_K1 x_s  / √d )
    x²_t = x¹_t + W_O2 Σ_{s≤t} a²_ts W_V2 x¹_s,     a²_t· = softmax_s( x¹_t · W_K2 x¹_s / √d )
    logits = U (x²_t + W_F x²_t)                    the W_F term only with the block "linear"

One head per layer, W_Q = I, no biases, no layer norm. E, P, U are never trained in the paper.
"""

from math import sqrt
from typing import Annotated, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from engram.errors import EngramError
from engram.memory.stored import Stored
from engram.models.memories import bigram_memory, induction_memories
from engram.models.trace import Head, Trace, Weights, draw_weights
from engram.tasks import Task
from engram.values import Value

Attention = Literal["attention"]


class Simplified(Value, name="models.simplified.Simplified"):
    """logits = U (x² + W_F x²) after two attention layers of one head each; the module has the formulas.

    d         width
    blocks    the two attention layers, with or without "linear": W_F
    scale     one of two conventions (NOTATION.md):

    scale        E, P          U, layers                 scores
    standard     N(0, 1)       uniform on ±1/√d          divided by √d
    unit         N(0, 1/d)     N(0, 1/d)                 as they are

    Birth of a Transformer, section 4.2.
    """

    d: Annotated[int, Field(ge=1, le=16384)] = 128
    scale: Literal["standard", "unit"] = "standard"
    blocks: tuple[Attention, Attention] | tuple[Attention, Attention, Literal["linear"]] = ("attention", "attention")

    @property
    def names(self) -> tuple[str, ...]:
        layers = ("W_K1", "W_V1", "W_O1", "W_K2", "W_V2", "W_O2")
        return ("E", "P", "U", *layers, *(("W_F",) if "linear" in self.blocks else ()))

    def init(self, N: int, T: int, seed: int) -> Weights:
        """Initial weights for N tokens and T positions; each matrix has its own random stream, with W_F or without."""
        rows = {"E": N, "P": T, "U": N}
        return draw_weights(self.scale, {name: (rows.get(name, self.d), self.d) for name in self.names}, seed)

    def forward(self, w: Weights, tokens: Int[Tensor, "B T"]) -> Trace:
        """The forward pass with every intermediate."""
        x0 = w["E"][tokens] + w["P"][: tokens.shape[1]]
        scores1, attention1, head1 = self._head(x0, w["W_K1"], w["W_V1"], w["W_O1"])
        x1 = x0 + head1
        scores2, attention2, head2 = self._head(x1, w["W_K2"], w["W_V2"], w["W_O2"])
        x2, written = x1 + head2, {"embedding": x0, "head1": head1, "head2": head2}
        if "W_F" in w:
            written["W_F"] = x2 @ w["W_F"].T
            x2 = x2 + written["W_F"]
        scores, attention = (scores1[:, None], scores2[:, None]), (attention1[:, None], attention2[:, None])
        return Trace(written, scores, attention, x2, x2 @ w["U"].T)

    def memories(self, w: Weights, task: Task, seed: int = 0) -> list[Stored]:
        """The three memories of the induction head, and W_F where there is one."""
        found = induction_memories(w, task, seed)
        return [*found, bigram_memory(w["E"], w["W_F"], w["U"], task, seed)] if "W_F" in w else found

    def heads(self) -> tuple[Head, ...]:
        return (1, 1), (2, 1)

    def without(self, w: Weights, head: Head) -> Weights:
        """Weights in which the head (layer, 1) writes nothing: its W_O is zero."""
        if head not in self.heads():
            raise EngramError(f"head: no head {head}; allowed: (1, 1), (2, 1)")
        name = f"W_O{head[0]}"
        return w | {name: torch.zeros_like(w[name])} if name in w else w

    def _head(
        self, x: Float[Tensor, "B T d"], W_K: Tensor, W_V: Tensor, W_O: Tensor
    ) -> tuple[Float[Tensor, "B T k"], Float[Tensor, "B T k"], Float[Tensor, "B T d"]]:
        """Scores, attention and output of one causal head."""
        temperature = sqrt(self.d) if self.scale == "standard" else 1.0
        T = x.shape[1]
        future = torch.full((T, T), -torch.inf, dtype=x.dtype, device=x.device).triu(1)
        scores = x @ (x @ W_K.T).mT / temperature + future  # scores[t, s] = x_t · W_K x_s
        attention = scores.softmax(dim=-1)
        return scores, attention, attention @ (x @ W_V.T) @ W_O.T
