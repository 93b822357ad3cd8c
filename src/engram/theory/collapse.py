"""Accuracies that depend on one ratio of sizes only: many-to-one memories on N/d, MLP constructions on N/(md)."""

import torch
from jaxtyping import Float
from scipy.stats import norm
from torch import Tensor

from engram.embeddings import directions
from engram.memory.rules import hebb, ntk_answers, ntk_directions, recalled, targets
from engram.values import Rows, law


def two_valued_accuracy(N: float, d: float) -> float:
    """Φ(√(d/(N−1))): y = z mod 2 is the sign of (s_0 − s_1) · e_z = ±1 + N(0, (N−1)/d), s_c the sum of class c."""
    return float(norm.cdf((d / (N - 1)) ** 0.5))


def two_valued_capacity(d: float, target: float) -> float:
    """The N at which this accuracy is the target: 1 + d/Φ⁻¹(target)²."""
    return 1 + d / float(norm.ppf(target)) ** 2


@law("collapse.many_to_one")
def many_to_one(draws: int, seed: int, d: int, M: int = 2) -> Rows:
    """Recall of W = Σ u_{z mod M} e_zᵀ at N = d/10 … 4d, over `draws` codebooks."""
    for percent in (10, 25, 50, 100, 200, 400):
        N = max(2, percent * d // 100)
        f = (torch.arange(N) % M).expand(draws, N)
        E, U = _codebooks(draws, N, d, seed, "E"), _codebooks(draws, M, d, seed, "U")
        answers = E @ hebb(E, targets(U, f)).mT
        yield {"N": N, "accuracy": recalled(answers, U, f), "law": two_valued_accuracy(N, d)}


@law("collapse.tangent")
def tangent(draws: int, seed: int, d: int, m: int, degree: int, load: float) -> Rows:
    """Recall of the linearised MLP (rules.ntk_directions) that stores N = md · load pairs, M = N."""
    N = max(2, round(m * d * load))
    f, right = torch.arange(N)[None], 0.0
    for draw in range(draws):
        E, U = _codebooks(1, N, d, seed, f"E.{draw}"), _codebooks(1, N, d, seed, f"U.{draw}")
        W, out = (directions("gaussian", m, d, seed, f"{name}.{draw}")[None] for name in ("W", "out"))
        right += recalled(ntk_answers(E, W, out, ntk_directions(E, U, W, out, degree), degree), U, f)
    yield {"N": N, "accuracy": right / draws}


def _codebooks(draws: int, n: int, d: int, seed: int, name: str) -> Float[Tensor, "draws n d"]:
    return directions("sphere", draws * n, d, seed, name).view(draws, n, d)
