"""Memories of other shapes: two factors, thresholds, sets, updates of the right size."""

from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from engram.embeddings import directions
from engram.memory.rules import factors, hebb, recalled, thresholded
from engram.theory.margins import chunks, doublings, problems
from engram.values import Rows, law


def factorised_std(n: int, d: int, m: float) -> float:
    """√(v + ((1 + (n−1)/2d)² + v)/m), v = 2/d + (n−2)/d²: the spread of y_k · W x_l, k ≠ l, for n pairs on the sphere.

    W is that of engram.memory.Factorised with d' = m (Birth of a Transformer, App. D). Given g = (y_i·y_j) and
    h = (x_i·x_j), y_k · W x_l is ½ a_k · b_l with Gaussian a_k, b_l in R^m: its mean (gh)_kl has variance v as for
    Hebb, its variance is ((1 + (ghg)_kk)(1 + (hgh)_ll) + 4(gh)_kl²)/4m, and (ghg)_kk has mean 1 + (n−1)/d.
    """
    v = 2 / d + (n - 2) / d**2
    return sqrt(v + ((1 + (n - 1) / (2 * d)) ** 2 + v) / m)


@law("architectures.factorised_scores")
def factorised_scores(draws: int, seed: int, d: int = 256, m: int = 64, n: int = 20) -> Rows:
    """Mean of y_k · W x_k and standard deviation of y_k · W x_l, k ≠ l, over `draws` memories."""
    portions = [_factorised_scores(c, d, m, n, seed, f"factorised.{i}") for i, c in enumerate(chunks(draws, d * d))]
    scores = torch.cat(portions)
    off = scores[:, ~torch.eye(n, dtype=torch.bool)]
    yield {"right.mean": float(scores.diagonal(dim1=1, dim2=2).mean()), "wrong.std": float(off.std())}


def _factorised_scores(count: int, d: int, m: int, n: int, seed: int, name: str) -> Float[Tensor, "count n n"]:
    x, y = (problems("sphere", count, n, d, seed, f"{name}.{letter}") for letter in "xy")
    V0 = problems("gaussian/d", count, m, d, seed, f"{name}.V0")
    U0 = problems("gaussian/d", count, m, d, seed, f"{name}.U0").mT
    U, V = factors(x, y, U0, V0)
    return y @ (d / (2 * m) * U @ V) @ x.mT


def threshold_bias(X: Float[Tensor, "n d"]) -> float:
    """b = max_{i≠j} x_i · x_j, the largest overlap of two stored inputs (Birth of a Transformer, App. D)."""
    return float((X @ X.T).fill_diagonal_(-torch.inf).max())


def share_nearest(answers: Float[Tensor, "n d"], V: Float[Tensor, "n d"]) -> float:
    """The share of answers whose largest inner product with a row of V is with their own."""
    return recalled(answers, V, torch.arange(len(V)))


@law("architectures.threshold")
def threshold(draws: int, seed: int, d: int = 64, N: int = 2048) -> Rows:
    """Accuracy of the threshold MLP and of the Hebbian matrix on the same N pairs; one row per draw."""
    for i in range(draws):
        E, U = (directions("sphere", N, d, seed, f"threshold.{name}.{i}", torch.float64) for name in "EU")
        b = threshold_bias(E)
        yield {
            "threshold": share_nearest(thresholded(E @ E.T, U, b), U),
            "hebb": share_nearest(E @ hebb(E, U).T, U),
            "bias": b,
        }


@law("architectures.sets")
def sets(draws: int, seed: int, d: int = 256, names: int = 64) -> Rows:
    """All pairs {i, j} of names, x = (e_i + e_j)/‖e_i + e_j‖, each with its own random answer: three memories.

    `residual` is Σ ‖W x − v‖² / Σ ‖v‖² of least squares, 1 − names/N in expectation (N = number of sets).
    """
    for i in range(draws):
        E = directions("sphere", names, d, seed, f"sets.E.{i}", torch.float64)
        first, second = torch.triu_indices(names, names, offset=1)
        X = torch.nn.functional.normalize(E[first] + E[second], dim=1)
        V = directions("sphere", len(X), d, seed, f"sets.V.{i}", torch.float64)
        fitted, b = X @ (torch.linalg.pinv(X) @ V), threshold_bias(X)  # Σ_i ‖W x_i − v_i‖² is least
        yield {
            "threshold": share_nearest(thresholded(X @ X.T, V, b), V),
            "hebb": share_nearest(X @ hebb(X, V).T, V),
            "least squares": share_nearest(fitted, V),
            "residual": float((fitted - V).square().sum() / len(V)),
            "bias": b,
        }


@law("architectures.maximal_updates")
def maximal_updates(draws: int, seed: int, smallest: int = 32, largest: int = 1024, n: int = 8) -> Rows:
    """For d = smallest, 2·smallest, …: root mean squares of ‖W0 u_j‖ and ‖ΔW u_j‖, ΔW = Σ_{j≤n} α_j v_j u_jᵀ, α_j = ±1.

    `relative` is ‖ΔW‖/‖W0‖ in Frobenius norm: the update is small as a matrix, not in what it does to u_j.
    """
    for d in doublings(smallest, largest):
        found = torch.tensor([_update(d, n, seed, f"updates.{d}.{i}") for i in range(draws)], dtype=torch.float64)
        norms = found.mean(0).sqrt().tolist()
        yield {"d": float(d)} | dict(zip(("W0 u", "ΔW u", "relative"), norms, strict=True))


def _update(d: int, n: int, seed: int, name: str) -> list[float]:
    """Mean squares of one draw."""
    W0 = directions("gaussian/d", d, d, seed, f"{name}.W0", torch.float64)
    u, v = (directions("gaussian/d", n, d, seed, f"{name}.{letter}", torch.float64) for letter in "uv")
    alpha = directions("signs", n, 1, seed, f"{name}.alpha", torch.float64)
    delta = hebb(u, alpha * v)
    moved = [float((u @ W.T).square().sum() / n) for W in (W0, delta)]
    return [*moved, float((delta.norm() / W0.norm()) ** 2)]
