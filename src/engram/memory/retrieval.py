"""Memories that keep every pair and compare: powers, exponentials, attention, the nearest key."""

from math import inf

import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.embeddings import Law
from engram.memory.check import check_finite, check_room, check_whole_number
from engram.memory.memory import Memory, Name


class Kept(Memory):
    """All keys as rows of `E` (N×d) and their values as `f` (N): nothing is superposed, so nothing interferes."""

    E: Float[Tensor, "N d"]
    f: Int[Tensor, " N"]

    def _write(self, pairs: dict[Name, Name]) -> None:
        self.E, self.f = self.inputs(self.pairs), self._right(self.pairs)

    def overlaps(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n N"]:
        """⟨e_z, x⟩ with every stored key."""
        check_room("overlaps", 2, len(x), len(self.E))
        return x @ self.E.T

    def summed(self, weights: Float[Tensor, "n N"]) -> Float[Tensor, "n M"]:
        """Σ_{z: f(z)=y} of the weights, for every y."""
        return weights.new_zeros(len(weights), len(self.values)).index_add(1, self.f, weights)

    def largest(self, weights: Float[Tensor, "n N"]) -> Float[Tensor, "n M"]:
        """max_{z: f(z)=y} of the weights, for every y; −∞ for a value without a key."""
        bottom = weights.new_full((len(weights), len(self.values)), -inf)
        return bottom.scatter_reduce(1, self.f.expand_as(weights), weights, "amax")


class Dense(Kept):
    """score_y = Σ_{z: f(z)=y} ⟨e_z, x⟩^n with n = degree (Krotov and Hopfield 2016)."""

    def __init__(self, d: int, degree: int = 3, *, seed: int = 0, law: Law = "sphere"):
        super().__init__(d, seed=seed, law=law)
        check_whole_number("degree", degree, 1)
        self.degree = degree

    def respond(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n M"]:
        return self.summed(self.overlaps(x) ** self.degree)


class Tempered(Kept):
    """β, how sharply a memory prefers nearer keys: d by default, as if unit keys were ±1 patterns."""

    def __init__(self, d: int, beta: float | None = None, *, seed: int = 0, law: Law = "sphere"):
        super().__init__(d, seed=seed, law=law)
        check_finite("beta", d if beta is None else beta, above=0)
        self.beta = float(d if beta is None else beta)


class Exponential(Tempered):
    """score_y = log Σ_{z: f(z)=y} exp(β⟨e_z, x⟩) (Demircigil et al. 2017); −∞ for a value without a key."""

    def respond(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n M"]:
        exponents = self.beta * self.overlaps(x)
        top = self.largest(exponents)
        return self.summed((exponents - top[:, self.f]).exp()).log() + top


class Softmax(Tempered):
    """score_y = u_y · Σ_z softmax_z(β⟨e_z, x⟩) u_{f(z)}: one head of attention (Ramsauer et al. 2021)."""

    def respond(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n M"]:
        attention = (self.beta * self.overlaps(x)).softmax(1)
        U = self.values.vectors
        return attention @ U[self.f] @ U.T


class NearestNeighbour(Kept):
    """score_y = −min_{z: f(z)=y} ‖x − e_z‖²: the value of the nearest key wins; −∞ for a value without a key."""

    def respond(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n M"]:
        check_room("distances", 2, len(x), len(self.E))
        apart = torch.cdist(x, self.E, compute_mode="donot_use_mm_for_euclid_dist")
        return self.largest(-apart.square())
