r"""What is expected before anything is trained: sizes from capacity laws, Hebbian errors, heavy-tailed data.

Heavy tails (Cabannes, Dohmatob and Bietti 2024): token z of N comes with probability p(z) ∝ z^−α and has one of M
answers. n samples are seen, and a matrix of width d keeps q(z) u eᵀ for each token.

    unseen by n samples         Σ_z p(z) (1 − p(z))^n                     falls like n^{−(α−1)/α}, whatever the memory
    threshold, q = 1{z ≤ d/8}   Σ p(z) beyond the tokens that are kept    falls like d^{−(α−1)}
    counts, q = p               p{z : d p(z)² < Q}, Q = max_y Σ_{f(z)=y} p(z)²        falls like d^{−(α−1)/(2α)}

The first is exact. The second counts every token that is kept as right; the third is an order of magnitude.
"""

from collections.abc import Callable
from math import sqrt

import numpy as np
from scipy.special import ndtr

from engram.theory.bounds import Law

KEPT = 8  # widths for each token that a matrix keeps: ⌊d/8⌋, as published
NODES = np.polynomial.hermite_e.hermegauss(64)
MOST = 2**60


def least_size(law: Callable[[int], float], wanted: float) -> int:
    """The least whole size whose law is at least what is wanted; laws grow with the size."""
    high = 1
    while law(high) < wanted and high < MOST:
        high *= 2
    low = high // 2  # holds too little, or is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if law(middle) >= wanted else (middle, high)
    return high


def hebb_error(N: int, d: int) -> float:
    """1 − E Φ((1 + σ g)/s)^{N−1}: how often one of N − 1 wrong scores beats the right one, W = Σ u eᵀ on the sphere.

    The right score is 1 + σ g with σ² = (N−1)/d². A wrong one varies by s² = (2 + 2σg)/d + (N−2)/d², since W e is
    shorter where the right score is low; on average both add up to the exact variance of a margin
    (engram.theory.capacity.margin_variance). Wrong scores are taken as independent and normal, of which they have less
    than the tails: what comes out is too large by up to a half.
    """
    g, weights = NODES
    right = 1 + sqrt(max(0, N - 1)) / d * g
    wrong = np.sqrt(np.maximum(2 * right / d + max(0, N - 2) / d**2, 1e-12))
    all_below = ndtr(right / wrong) ** (N - 1)
    return max(0.0, 1 - float(weights @ all_below) / sqrt(2 * np.pi))


def unseen(p: Law, n: float, wrong: float | Law = 1.0) -> float:
    """Σ p (1 − p)^n · wrong: tokens that were not among n samples, of which a share `wrong` is answered wrongly."""
    return float((p * np.exp(n * np.log1p(-np.minimum(p, 1 - 1e-16))) * wrong).sum())


def threshold_error(p: Law, d: int, n: int | None = None) -> float:
    """Tokens beyond the ⌊d/8⌋ likeliest, and those of them that n samples have not shown; None: all were seen."""
    kept = p[: d // KEPT]
    return float(p[d // KEPT :].sum()) + (0.0 if n is None else unseen(kept, n))


def counts_error(p: Law, d: int, M: int) -> float:
    """p{z : d p(z)² < Q}, where Q is the largest Σ p² of tokens that share an answer; z has the answer z mod M."""
    crowd = max(float((p[y::M] ** 2).sum()) for y in range(min(M, len(p))))
    return float(p[d * p**2 < crowd].sum())


def exponents(alpha: float) -> dict[str, float] | None:
    """How errors fall with samples n and width d; None for α ≤ 1, where they do not as N → ∞."""
    if alpha <= 1:
        return None
    gap = alpha - 1
    return {"samples": -gap / alpha, "counts": -gap / (2 * alpha), "threshold": -gap}
