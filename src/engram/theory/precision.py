"""How few bits a weight needs: memories rounded to a grid, and bits stored per bit used. Sphere, f(z) = z, M = N."""

from math import ceil, log2

import torch
from jaxtyping import Float
from torch import Tensor

from engram.errors import EngramError
from engram.memory.rules import hebb, rounded
from engram.theory.bounds import permutation_bits
from engram.theory.capacity import linear_trained_capacity
from engram.theory.margins import ENTRIES_AT_ONCE, doublings, problems
from engram.values import Rows, law

Embeddings = Float[Tensor, "problems N d"]
Matrices = Float[Tensor, "problems d d"]
KEPT = 0.99
LEVELS = (2, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256)


def share_recalled(E: Embeddings, U: Embeddings, W: Matrices) -> float:
    """The share of pairs, over all problems, whose right score is the largest."""
    at_once = max(1, ENTRIES_AT_ONCE // E.shape[-2] ** 2)
    parts = zip(*(tensor.split(at_once) for tensor in (E, U, W)), strict=True)
    found = torch.cat([(e @ w.mT @ u.mT).argmax(-1) for e, u, w in parts])
    return float((found == torch.arange(E.shape[-2])).double().mean())


def certified_levels(E: Embeddings, U: Embeddings, W: Matrices) -> float:
    """1 + 2 max|W| max ‖u_y − u_y'‖₁ ‖e_z‖₁: levels L at which rounding moves no margin by more than 1/2.

    It moves an entry by at most Δ/2 = max|W|/(L − 1), hence a margin by at most Δ/2 · ‖u_y − u_y'‖₁ ‖e_z‖₁.
    """
    outputs = torch.stack([torch.cdist(u, u, p=1).amax() for u in U])
    worst = W.abs().amax((-2, -1)) * outputs * E.abs().sum(-1).amax(-1)
    return float((1 + 2 * worst).mean())


def fewest_levels(E: Embeddings, U: Embeddings, W: Matrices) -> tuple[int, float]:
    """The first of LEVELS that keeps recall at 0.99, and its recall."""
    for levels in LEVELS:
        share = share_recalled(E, U, rounded(W, levels))
        if share >= KEPT:
            return levels, share
    raise EngramError(
        f"N: {E.shape[-2]} pairs are too many for d={E.shape[-1]}; recall without rounding must be above {KEPT}"
    )


@law("precision.bits")
def bits_needed(draws: int, seed: int, smallest: int = 16, largest: int = 256, load: float = 0.015) -> Rows:
    """For d = smallest, 2·smallest, …: recall of Hebbian matrices at 1, 2, 3, … bits, N = load · d² pairs.

    At least `draws` pairs are tested at each d. `sufficient` is log2 of the fewest levels that keep recall at 0.99,
    `certified` log2 of those that move no margin by more than 1/2, mean over problems.
    """
    for d in doublings(smallest, largest):
        N = round(load * d**2)
        E, U = _embeddings(ceil(draws / N), N, d, seed, f"precision.{d}")
        W = hebb(E, U)
        found = {
            "d": d,
            "N": N,
            "sufficient": log2(fewest_levels(E, U, W)[0]),
            "certified": log2(certified_levels(E, U, W)),
        }
        yield found | {f"recall.{b}": share_recalled(E, U, rounded(W, 2**b)) for b in range(1, 7)}


@law("precision.hebb_efficiency")
def hebb_efficiency(draws: int, seed: int, d: int = 64) -> Rows:
    """Per number of levels: the most pairs a rounded Hebbian matrix recalls to 0.99, and bits stored per bit used."""
    for levels in (2, 4, 8, 16, 32):
        N, share = _most_pairs(draws, seed, d, levels)
        yield _efficiency(N, d, levels, share)


def _most_pairs(draws: int, seed: int, d: int, levels: int) -> tuple[int, float]:
    """Bisection between 1 and d²/10 pairs."""
    low, high, best = 1, d**2 // 10, 1.0
    while high - low > 1:
        N = (low + high) // 2
        E, U = _embeddings(ceil(draws / N), N, d, seed, f"efficiency.{d}.{N}")
        share = share_recalled(E, U, rounded(hebb(E, U), levels))
        low, high, best = (N, high, share) if share >= KEPT else (low, N, best)
    return low, best


@law("precision.trained_efficiency")
def trained_efficiency(draws: int, seed: int, d: int = 32, steps: int = 600) -> Rows:
    """Per load: `draws` matrices, trained, then rounded to the fewest levels that keep recall at 0.99."""
    for percent in (40, 70, 100):
        N = round(percent / 100 * linear_trained_capacity(d))
        E, U = _embeddings(draws, N, d, seed, f"trained.{d}.{N}")
        levels, share = fewest_levels(E, U, train_matrices(E, U, steps))
        yield _efficiency(N, d, levels, share)


def train_matrices(E: Embeddings, U: Embeddings, steps: int, rate: float = 0.3) -> Matrices:
    """Adam on the cross-entropy of all pairs from W = 0; the learning rate falls to zero."""
    W, first, second = (torch.zeros_like(E.mT @ E) for _ in range(3))
    right = torch.eye(E.shape[-2], dtype=E.dtype)
    for t in range(1, steps + 1):
        G = U.mT @ (torch.softmax(E @ W.mT @ U.mT, -1) - right).mT @ E / E.shape[-2]  # Lemma 1
        first, second = 0.9 * first + 0.1 * G, 0.999 * second + 0.001 * G * G
        move = (first / (1 - 0.9**t)) / ((second / (1 - 0.999**t)).sqrt() + 1e-12)
        W = W - rate * (1 - (t - 1) / steps) * move
    return W


def _embeddings(count: int, N: int, d: int, seed: int, name: str) -> tuple[Embeddings, Embeddings]:
    E, U = (problems("sphere", count, N, d, seed, f"{name}.{letter}") for letter in "EU")
    return E, U


def _efficiency(N: int, d: int, levels: int, share: float) -> dict[str, float]:
    stored, used = permutation_bits(N, 1 - share), d**2 * log2(levels)
    found = {"levels": levels, "N": N, "recall": share, "stored": stored, "used": used, "ratio": stored / used}
    return {name: float(value) for name, value in found.items()}
