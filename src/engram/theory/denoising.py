"""What in-context denoising can reach (Smart, Bietti and Sengupta 2025): Bayes' error, the best linear attention."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from engram.errors import EngramError, did_you_mean
from engram.tasks.denoising import CASES, Denoising, Subspace
from engram.values import Rows, law

Matrix = Float[Tensor, "n n"]


def case_of(case: str, n: int, L: int) -> Denoising:
    """Case 1 (subspace), 2 (sphere) or 3 (clusters) of the paper, with its parameters."""
    if case not in CASES:
        raise EngramError(f"case: unknown {case!r}; {did_you_mean(case, CASES)}allowed: {', '.join(CASES)}")
    return CASES[case].model_validate({"n": n, "L": L})


def linear_attention(
    S: Float[Tensor, "B n n"], query: Float[Tensor, "B n"], W_PV: Matrix, W_KQ: Matrix
) -> Float[Tensor, "B n"]:
    """W_PV S W_KQ x̃, where S = (1/L) Σ_t x_t x_tᵀ."""
    return (S @ (query @ W_KQ.T)[:, :, None])[:, :, 0] @ W_PV.T


def softmax_attention(
    X: Float[Tensor, "B L n"], query: Float[Tensor, "B n"], W_PV: Matrix, W_KQ: Matrix
) -> Float[Tensor, "B n"]:
    """W_PV X softmax(Xᵀ W_KQ x̃), points as the rows of X: no 1/√n, no residual, the query is not a key."""
    p = torch.softmax(X @ (query @ W_KQ.T)[:, :, None], dim=1)
    return (p.mT @ X)[:, 0] @ W_PV.T


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
