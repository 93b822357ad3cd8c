"""Matrix memories with a shape or a norm imposed: low rank, two factors, layer-norm."""

from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from engram.embeddings import Law, directions
from engram.memory.check import check_rank, check_room
from engram.memory.linear import Linear
from engram.memory.memory import Memory, Name
from engram.memory.rules import factors, low_rank


class LowRank(Memory):
    """W = A Bᵀ with B ∈ R^{d×m} frozen, entries N(0, 1), and A = Σ_z u_{f(z)} (Bᵀ e_z)ᵀ / m.

    Nichani, Lee and Bietti (2025), Theorem 1, with rank m ≤ d.
    """

    def __init__(self, d: int, m: int, *, seed: int = 0, law: Law = "sphere"):
        super().__init__(d, seed=seed, law=law)
        check_rank("m", m, d)
        check_room("A and B", 2, d, m)
        self.m = m
        self.A: Float[Tensor, "d m"] = torch.zeros(d, m, dtype=torch.float64)
        self.B: Float[Tensor, "d m"] = directions("gaussian", d, m, seed, "B", torch.float64)

    def _write(self, pairs: dict[Name, Name]) -> None:
        self.A = self.A + low_rank(self.inputs(pairs), self.values[pairs.values()], self.B)

    def respond(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n M"]:
        return x @ self.B @ self.A.T @ self.values.vectors.T


class Factorised(Memory):
    """W = (d/2d') U V with d' = d_inner, where U = U₀ + Σ_i y_i (V₀ x_i)ᵀ and V = V₀ + Σ_i (U₀ᵀ y_i) x_iᵀ.

    "Birth of a Transformer", App. D: U₀ ∈ R^{d×d'} and V₀ ∈ R^{d'×d} have entries N(0, 1/d); x_i is e_z, y_i is
    u_{f(z)}. One gradient step on each factor looks like this. The second and third terms of U V each give half of
    y_k · W x_l ≈ 1{k=l}; the third is Σ_i U₀ (U₀ᵀ y_i) x_iᵀ, whose left factor U₀ is missing in the paper's expansion.
    """

    def __init__(self, d: int, d_inner: int, *, seed: int = 0, law: Law = "sphere"):
        super().__init__(d, seed=seed, law=law)
        check_rank("d_inner", d_inner, d)
        check_room("U and V", 4, d, d_inner)
        self.d_inner = d_inner
        self.U_0: Float[Tensor, "d k"] = directions("gaussian", d, d_inner, seed, "U_0", torch.float64) / sqrt(d)
        self.V_0: Float[Tensor, "k d"] = directions("gaussian/d", d_inner, d, seed, "V_0", torch.float64)
        self.U, self.V = self.U_0, self.V_0

    def _write(self, pairs: dict[Name, Name]) -> None:
        self.U, self.V = factors(self.inputs(self.pairs), self.values[self.pairs.values()], self.U_0, self.V_0)

    def respond(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n M"]:
        return self.d / (2 * self.d_inner) * (x @ self.V.T @ self.U.T @ self.values.vectors.T)


class LayerNormed(Linear):
    """score_y = u_y · W e_z / ‖W e_z‖, with W written as in Linear ("Birth of a Transformer", App. D, Eq. 37)."""

    def respond(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n M"]:
        answers = x @ self.W.T
        length = answers.norm(dim=1, keepdim=True)
        return answers / length.where(length > 0, 1.0) @ self.values.vectors.T
