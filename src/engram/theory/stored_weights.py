r"""Which q(z) an algorithm stores in effect: read off a learned matrix, and approximated by a recursion for q alone.

A matrix W = Σ c(z, k) u_k e_zᵀ is taken apart by least squares, C = (E⁺)ᵀ Wᵀ U⁺, which is exact when the rows of E and
those of U are independent (d ≥ N). With fewer dimensions than tokens it is E E⁺ C: no matrix tells which of two
dependent tokens was stored, and then only the coefficients kept while learning (`follow`) say what was written.
Token z has the weight

    q(z) = c(z, f(z)) − mean over k ≠ f(z) of c(z, k)

which is q for Σ q(z) u_{f(z)} e_zᵀ, and also for Σ q(z) (u_{f(z)} − ū) e_zᵀ, as gradients from 0 write it.

Cabannes, Dohmatob and Bietti (2024).
"""

from collections.abc import Iterable, Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.theory.memory_dynamics import Logits, Matrix, Pairs, kernels

Weights = Float[Tensor, "*many N"]


def stored_in(W: Matrix, pairs: Pairs) -> Logits:
    """The coefficients of W on u_k e_zᵀ, by least squares; those of least norm where they are not unique."""
    return torch.linalg.pinv(pairs.E).mT @ W.mT @ torch.linalg.pinv(pairs.U)


def weights_of(c: Logits, answers: Int[Tensor, " N"]) -> Weights:
    """q(z) = c(z, f(z)) − mean over k ≠ f(z) of c(z, k)."""
    M = c.shape[-1]
    right = c.gather(-1, answers.expand(c.shape[:-1])[..., None])[..., 0]
    return right - (c.sum(-1) - right) / (M - 1)


def recursion(pairs: Pairs, steps: Iterable[tuple[Weights, float]]) -> Iterator[Weights]:
    """The scalar approximation: q(z) += γ share(z) / (1 + e^{q(z)}/(M − 1)), as if tokens did not overlap."""
    q = torch.zeros(pairs.E.shape[:-1], dtype=pairs.E.dtype)
    yield q
    for share, rate in steps:
        q = q + rate * share / (1 + q.exp() / (pairs.U.shape[-2] - 1))
        yield q


def scores_with(pairs: Pairs, q: Weights) -> Logits:
    """The scores of W = Σ q(z) u_{f(z)} e_zᵀ."""
    of_tokens, of_answers = kernels(pairs)
    return (of_tokens * q[..., None, :]) @ of_answers[..., pairs.answers, :]
