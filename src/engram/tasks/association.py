"""Associations to be stored: which output belongs to which input, with random directions for both."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from engram.embeddings import directions
from engram.values import Value, generator


@dataclass(frozen=True)
class Problem:
    """Independent draws of one association: inputs X, output directions U, and the right output f of each input."""

    X: Float[Tensor, "draws N d"]
    U: Float[Tensor, "draws M d"]
    f: Int[Tensor, "draws N"]


class Association(Value, name="tasks.association.Association"):
    """f: [n] → [M], or with inputs=2, f: [n]² → [M] on inputs e_{z1} + ẽ_{z2}.

    kind    identity: f(i) = i · permutation: a random one · modulo: i mod M · floor: ⌊i M/N⌋ · random: uniform on [M]
    M       number of outputs; None: as many as there are inputs
    inputs  how many tokens a pair asks with: 1, or 2

    Nichani, Lee and Bietti (2025), Theorems 1 and 2 and Fig. 1.
    """

    kind: Literal["identity", "permutation", "modulo", "floor", "random"] = "identity"
    M: Annotated[int, Field(ge=1)] | None = None
    inputs: Literal[1, 2] = 1

    @model_validator(mode="after")
    def _kind_fits_M(self) -> "Association":
        if self.kind in ("identity", "permutation") and self.M is not None:
            raise ValueError(
                f"M: {self.kind} has as many outputs as inputs; leave M out, or choose modulo, floor or random"
            )
        if self.kind == "modulo" and self.M is None:
            raise ValueError("M: modulo needs the number of outputs, as in M=2")
        return self

    def pairs(self, n: int) -> int:
        """N = n^inputs, the number of pairs at size n."""
        return n**self.inputs

    def answers(self, n: int, seed: int, draw: int = 0) -> Int[np.ndarray, " N"]:
        """f(i) for every input i."""
        N = self.pairs(n)
        M, i, rng = self.M or N, np.arange(N), generator(seed, f"answers.{draw}", n)
        if self.kind in ("permutation", "random"):
            return rng.permutation(N) if self.kind == "permutation" else rng.integers(M, size=N)
        return {"identity": i, "modulo": i % M, "floor": i * M // N}[self.kind]

    def problem(self, n: int, d: int, seed: int, draws: int = 1) -> Problem:
        """`draws` problems of size n with sphere embeddings; a seed has the same first directions at every size."""
        f = np.stack([self.answers(n, seed, draw) for draw in range(draws)])
        U = _codebooks(self.M or self.pairs(n), d, seed, "U", draws)
        X = _codebooks(n, d, seed, "E", draws)
        if self.inputs == 2:
            second = _codebooks(n, d, seed, "E2", draws)
            X = (X[:, :, None] + second[:, None]).flatten(1, 2)
        return Problem(X, U, torch.from_numpy(f))


def _codebooks(n: int, d: int, seed: int, name: str, draws: int) -> Float[Tensor, "draws n d"]:
    """Rows are drawn name by name, so a larger n only adds rows."""
    return directions("sphere", n * draws, d, seed, name).view(n, draws, d).transpose(0, 1).contiguous()
