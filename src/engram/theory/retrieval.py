"""Attention as one step of retrieval from a dense memory: what such a memory holds, and how well it denoises.

Ramsauer et al. (2021); Smart, Bietti and Sengupta (2025): in-context denoising, and the least error it can reach.
"""

from math import exp, log, sqrt

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import lambertw
from torch import Tensor

from engram.embeddings import directions
from engram.errors import EngramError, did_you_mean
from engram.tasks.denoising import CASES, Denoising, Subspace
from engram.theory.margins import doublings
from engram.values import Rows, law

SHARE = 0.001  # p: the bound may fail with this probability
F64 = torch.float64
Matrix = Float[Tensor, "n n"]
Queries = Float[Tensor, "B n"]


def linear_attention(S: Float[Tensor, "B n n"], query: Queries, W_PV: Matrix, W_KQ: Matrix) -> Queries:
    """W_PV S W_KQ x̃, where S = (1/L) Σ_t x_t x_tᵀ."""
    return (S @ (query @ W_KQ.T)[:, :, None])[:, :, 0] @ W_PV.T


def softmax_attention(X: Float[Tensor, "B L n"], query: Queries, W_PV: Matrix, W_KQ: Matrix) -> Queries:
    """W_PV X softmax(Xᵀ W_KQ x̃), points as the rows of X: no 1/√n, no residual, the query is not a key."""
    p = torch.softmax(X @ (query @ W_KQ.T)[:, :, None], dim=1)
    return (p.mT @ X)[:, 0] @ W_PV.T


def dam_energy(s: Queries, X: Float[Tensor, "B L n"], alpha: float, beta: float) -> Float[Tensor, " B"]:
    """E(s) = ‖s‖²/(2α) − (1/β) log Σ_t exp(β x_t · s)."""
    scores = beta * (X @ s[:, :, None])[:, :, 0]
    return s.square().sum(1) / (2 * alpha) - scores.logsumexp(1) / beta


def gradient_step(s: Queries, X: Float[Tensor, "B L n"], alpha: float, beta: float) -> Tensor:
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
    M = K * sqrt(d - 1)
    for N in doublings(int(bound), most):
        enough = 2 / (beta * N) + log(2 * (N - 1) * N * beta * M * M) / beta
        gaps = [_least_gap(M * directions("sphere", N, d, seed, f"sphere.{k}", F64)) for k in range(draws)]
        yield {"N": float(N), "separated": sum(gap >= enough for gap in gaps) / draws}


def _least_gap(xi: Float[Tensor, "N d"]) -> float:
    overlaps = xi @ xi.T
    own = overlaps.diagonal().clone()
    return float((own - overlaps.fill_diagonal_(-torch.inf).amax(1)).min())


def case_of(case: str, n: int, L: int) -> Denoising:
    """Case 1 (subspace), 2 (sphere) or 3 (clusters) of the paper, with its parameters."""
    if case not in CASES:
        raise EngramError(f"case: unknown {case!r}; {did_you_mean(case, CASES)}allowed: {', '.join(CASES)}")
    return CASES[case].model_validate({"n": n, "L": L})


@law("denoising.floors")
def floors(draws: int, seed: int, *, case: str, n: int = 16) -> Rows:
    """Squared error per coordinate of Bayes' predictor, of scaled copies of it, and of zero, over fresh prompts."""
    task = case_of(case, n, L=1)
    prompts = task.sample(seed, 0, draws)
    bayes = task.bayes(prompts.query, prompts.geometry)
    scaled = {"bayes": 1.0, "bayes × 0.9": 0.9, "bayes × 1.1": 1.1, "zero": 0.0}
    yield {name: float(np.mean((scale * bayes - prompts.clean) ** 2)) for name, scale in scaled.items()}


def subspace_floor(task: Subspace) -> float:
    """(d/n) σ_0² σ_Z² / (σ_0² + σ_Z²): Bayes' error per coordinate in case 1."""
    return task.d / task.n * task.variance * task.noise / (task.variance + task.noise)
