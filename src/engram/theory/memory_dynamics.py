r"""Gradient descent of a memory on weighted pairs: its loss, gradient and Hessian, and how sharp the loss is.

    logits u_k · W e_z,   L(W) = −Σ_z p(z) log p̂(f(z) | z)
    −∇L  = Σ_z p(z) (u_{f(z)} − ū_z) e_zᵀ,                          ū_z = Σ_k p̂(k|z) u_k
    ∇²L  = Σ_z p(z) (Σ_k p̂(k|z) u_k u_kᵀ − ū_z ū_zᵀ) ⊗ e_z e_zᵀ     on the rows of W one after the other

From W = 0 descent stays at W = Σ c(z, k) u_k e_zᵀ: `follow` takes its steps in the N M numbers c, whatever the width.
All tensors may have leading dimensions, for many problems at once.

Cabannes, Simsek and Bietti (2024); Cabannes, Dohmatob and Bietti (2024).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

Matrix = Float[Tensor, "*many d d"]
Logits = Float[Tensor, "*many N M"]
Numbers = Float[Tensor, "*many"]


@dataclass(frozen=True)
class Pairs:
    """Tokens e_z with weights p(z) and answers f(z), which are rows of U."""

    E: Float[Tensor, "*many N d"]
    U: Float[Tensor, "*many M d"]
    p: Float[Tensor, "*same N"]  # one law for all problems, or one for each
    answers: Int[Tensor, " N"]

    @property
    def onehot(self) -> Float[Tensor, "N M"]:
        return torch.nn.functional.one_hot(self.answers, self.U.shape[-2]).to(self.E.dtype)


def scores(pairs: Pairs, W: Matrix) -> Logits:
    """u_k · W e_z."""
    return pairs.E @ W.mT @ pairs.U.mT


def loss(pairs: Pairs, logits: Logits) -> Numbers:
    """−Σ_z p(z) log p̂(f(z) | z)."""
    return -(pairs.p * (torch.log_softmax(logits, -1) * pairs.onehot).sum(-1)).sum(-1)


def error(pairs: Pairs, logits: Logits) -> Numbers:
    """The probability of a wrong answer; among equal scores the first answer is given."""
    return (pairs.p * (logits.argmax(-1) != pairs.answers)).sum(-1)


def mean_of_wrong(pairs: Pairs, logits: Logits) -> Numbers:
    """The mean p(z) of the tokens that are answered wrongly, 0 where none is: not the error, nor the error over N."""
    wrong = logits.argmax(-1) != pairs.answers
    return (pairs.p * wrong).sum(-1) / wrong.sum(-1).clamp(min=1)


def margins(pairs: Pairs, logits: Logits) -> Float[Tensor, "*many N"]:
    """The right score minus the highest wrong one."""
    right = (logits * pairs.onehot).sum(-1)
    return right - logits.masked_fill(pairs.onehot.bool(), -torch.inf).amax(-1)


def surprise(pairs: Pairs, logits: Logits) -> Logits:
    """1{k = f(z)} − p̂(k|z)."""
    return pairs.onehot - torch.softmax(logits, -1)


def gradient(pairs: Pairs, W: Matrix) -> Matrix:
    """∇L = −Σ_z p(z) (u_{f(z)} − ū_z) e_zᵀ."""
    weighted = pairs.p[..., None] * surprise(pairs, scores(pairs, W))
    return -pairs.U.mT @ weighted.mT @ pairs.E


def hessian(pairs: Pairs, W: Matrix) -> Float[Tensor, "*many D D"]:
    """∇²L on the D = d² entries of W, row by row; the paper stacks columns, which exchanges the two factors."""
    chances = torch.softmax(scores(pairs, W), -1)
    mean = chances @ pairs.U
    second = torch.einsum("...nk,...ki,...kj->...nij", chances, pairs.U, pairs.U)
    spread = second - mean[..., :, None] * mean[..., None, :]
    whole = torch.einsum("...n,...nij,...na,...nb->...iajb", pairs.p.expand(mean.shape[:-1]), spread, pairs.E, pairs.E)
    d = W.shape[-1]
    return whole.reshape(*W.shape[:-2], d * d, d * d)


def root(gram: Float[Tensor, "*many n n"]) -> Float[Tensor, "*many n n"]:
    """The positive root of a Gram matrix."""
    values, vectors = torch.linalg.eigh(gram)
    return (vectors * values.clamp(min=0).sqrt()[..., None, :]) @ vectors.mT


def sharpness(pairs: Pairs, logits: Logits) -> Numbers:
    """The top eigenvalue of ∇²L; descent of step η leaves a minimum with η λ/2 > 1.

    ∇²L = JᵀDJ with logits J vec(W) and D the blocks p(z) (diag p̂ − p̂ p̂ᵀ), so its eigenvalues other than 0 are those
    of K^½ D K^½, K = EEᵀ ⊗ UUᵀ: N M numbers instead of d².
    """
    chances, (N, M) = torch.softmax(logits, -1), logits.shape[-2:]
    blocks = pairs.p[..., None, None] * (torch.diag_embed(chances) - chances[..., :, None] * chances[..., None, :])
    e, u = root(pairs.E @ pairs.E.mT), root(pairs.U @ pairs.U.mT)
    small = torch.einsum("...an,...ki,...nij,...jl,...nb->...akbl", e, u, blocks, u, e)
    return torch.linalg.eigvalsh(small.reshape(*small.shape[:-4], N * M, N * M))[..., -1]


def kernels(pairs: Pairs) -> tuple[Float[Tensor, "*many N N"], Float[Tensor, "*many M M"]]:
    """EEᵀ and UUᵀ."""
    return pairs.E @ pairs.E.mT, pairs.U @ pairs.U.mT


def follow(pairs: Pairs, steps: Iterable[tuple[Float[Tensor, "*some N"], float]]) -> Iterator[Logits]:
    """The coefficients c(z, k) of W = Σ c(z, k) u_k e_zᵀ from W = 0 on, before and after each step.

    A step is the share of each token in its batch (p for the whole population) and its rate.
    """
    of_tokens, of_answers = kernels(pairs)
    c = torch.zeros(*pairs.E.shape[:-1], pairs.U.shape[-2], dtype=pairs.E.dtype)
    yield c
    for share, rate in steps:
        c = c + rate * share[..., None] * surprise(pairs, of_tokens @ c @ of_answers)
        yield c


def scores_of(pairs: Pairs, c: Logits) -> Logits:
    """u_k · W e_z from the coefficients of W."""
    of_tokens, of_answers = kernels(pairs)
    return of_tokens @ c @ of_answers


def matrix_of(pairs: Pairs, c: Logits) -> Matrix:
    """W = Σ c(z, k) u_k e_zᵀ."""
    return pairs.U.mT @ c.mT @ pairs.E


def by_sign(g: Matrix) -> Matrix:
    """Every entry moves by the rate."""
    return g.sign()


def by_spread(g: Matrix) -> Matrix:
    """The gradient over the standard deviation of its entries."""
    return g / g.std(dim=(-2, -1), keepdim=True)


def by_gradient(g: Matrix) -> Matrix:
    return g


RULES: dict[str, Callable[[Matrix], Matrix]] = {"gradient": by_gradient, "sign": by_sign, "normalised": by_spread}


def descend(pairs: Pairs, rule: str, rate: float, steps: int) -> Iterator[Logits]:
    """The scores from W = 0 on under a rule of RULES, on the whole population."""
    d = pairs.E.shape[-1]
    W = torch.zeros(*pairs.E.shape[:-2], d, d, dtype=pairs.E.dtype)
    yield scores(pairs, W)
    for _ in range(steps):
        W = W - rate * RULES[rule](gradient(pairs, W))
        yield scores(pairs, W)
