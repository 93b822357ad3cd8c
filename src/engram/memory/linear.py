"""Memories that are one matrix: u_y · W e_z."""

import torch
from jaxtyping import Float
from torch import Tensor

from engram.embeddings import Law
from engram.memory.memory import Memory, Name
from engram.memory.rules import hebb


class Linear(Memory):
    """W = Σ u_y e_zᵀ, one outer product a pair (Hebb's rule).

    >>> m = Linear(d=64, seed=0)
    >>> m.store({"France": "Paris", "Japan": "Tokyo", "Peru": "Lima"})
    >>> m.recall("France")
    'Paris'
    """

    def __init__(self, d: int, seed: int = 0, law: Law = "sphere"):
        super().__init__(d, seed, law)
        self.W: Float[Tensor, "d d"] = torch.zeros(d, d, dtype=torch.float64)

    def _write(self, pairs: dict[Name, Name]) -> None:
        self.W = self.W + hebb(self.keys[pairs], self.values[pairs.values()])

    def respond(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n M"]:
        return x @ self.W.T @ self.values.vectors.T
