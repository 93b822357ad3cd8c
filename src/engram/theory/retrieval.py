"""Softmax attention as one step of retrieval from a dense memory, and what such a memory holds with certainty.

Ramsauer et al. (2021); Smart, Bietti and Sengupta (2025).
"""

from math import exp, log, sqrt

import torch
from jaxtyping import Float
from scipy.special import lambertw
from torch import Tensor

from engram.embeddings import directions
from engram.theory.denoising import softmax_attention
from engram.values import Rows, law

SHARE = 0.001  # p: the bound may fail with this probability
F64 = torch.float64


def dam_energy(s: Float[Tensor, "B n"], X: Float[Tensor, "B L n"], alpha: float, beta: float) -> Float[Tensor, " B"]:
    """E(s) = ‖s‖²/(2α) − (1/β) log Σ_t exp(β x_t · s)."""
    scores = beta * (X @ s[:, :, None])[:, :, 0]
    return s.square().sum(1) / (2 * alpha) - scores.logsumexp(1) / beta


def gradient_step(s: Float[Tensor, "B n"], X: Float[Tensor, "B L n"], alpha: float, beta: float) -> Tensor:
    """s − α ∇E(s), by autograd."""
    s = s.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(dam_energy(s, X, alpha, beta).sum(), s)
    return (s - alpha * gradient).detach()


@law("retrieval.attention_step")
def attention_step(draws: int, seed: int, *, n: int = 16, L: int = 64) -> Rows:
    """Attention with W_PV = αI, W_KQ = βI beside a gradient step, random α and β; α = 1 is Ramsauer's update."""
    scales = directions("gaussian", draws, 2, seed, "scales", F64).exp().tolist()
    for draw, (alpha, beta) in enumerate(scales):
        X = directions("gaussian", L, n, seed, f"X.{draw}", F64)[None]
        query = directions("gaussian", 1, n, seed, f"query.{draw}", F64)
        W_PV, W_KQ = alpha * torch.eye(n, dtype=F64), beta * torch.eye(n, dtype=F64)
        attention = softmax_attention(X, query, W_PV, W_KQ)
        update = torch.softmax(beta * query @ X[0].T, 1) @ X[0]  # X softmax(β Xᵀx), points as rows
        yield {
            "alpha": alpha,
            "beta": beta,
            "error.step": float((attention - gradient_step(query, X, alpha, beta)).abs().max()),
            "error.ramsauer": float((update - gradient_step(query, X, 1.0, beta)).abs().max()),
        }


def ramsauer_constant(d: int, K: float, beta: float, p: float) -> float:
    """c = b / W₀(e^{a + ln b}), a = 2/(d−1) (1 + ln(2βK²p(d−1))), b = 2K²β/5 (Ramsauer et al. 2021, Theorem 3)."""
    a = 2 / (d - 1) * (1 + log(2 * beta * K**2 * p * (d - 1)))
    b = 2 * K**2 * beta / 5
    return b / float(lambertw(exp(a + log(b))).real)


@law("retrieval.ramsauer_bound")
def ramsauer_bound(draws: int, seed: int, *, d: int = 20, K: float = 3.0, beta: float = 1.0) -> Rows:
    """c, and N = √p c^{(d−1)/4}, the number of patterns that are well separated with probability 1 − p."""
    c = ramsauer_constant(d, K, beta, SHARE)
    yield {"c": c, "N": sqrt(SHARE) * c ** ((d - 1) / 4)}


@law("retrieval.separation")
def separation(draws: int, seed: int, *, d: int = 20, K: float = 3.0, beta: float = 1.0, most: int = 4096) -> Rows:
    """The share of draws in which N patterns on the sphere of radius M = K√(d−1) are well separated, from the bound on.

    Well separated: ‖ξ_i‖² − max_j ξ_i · ξ_j ≥ 2/(βN) + (1/β) ln(2(N−1)NβM²) for all i.
    """
    bound = next(ramsauer_bound(1, seed, d=d, K=K, beta=beta))["N"]
    M, N = K * sqrt(d - 1), int(bound)
    while most >= N:
        enough = 2 / (beta * N) + log(2 * (N - 1) * N * beta * M * M) / beta
        gaps = [_least_gap(M * directions("sphere", N, d, seed, f"sphere.{k}", F64)) for k in range(draws)]
        yield {"N": float(N), "separated": sum(gap >= enough for gap in gaps) / draws}
        N *= 2


def _least_gap(xi: Float[Tensor, "N d"]) -> float:
    overlaps = xi @ xi.T
    own = overlaps.diagonal().clone()
    return float((own - overlaps.fill_diagonal_(-torch.inf).amax(1)).min())
