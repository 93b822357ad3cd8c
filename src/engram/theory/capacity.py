"""Capacity laws: how many pairs a memory holds at ≥ 99 % recall, and how its margin spreads. Injective f, M = N."""

from math import log

import numpy as np
from scipy.special import lambertw

FACTS_PER_PARAMETER = 0.15  # published (Nichani, Lee and Bietti 2025, Fig. 4 left)


def with_log(N: float) -> float:
    """N ln N."""
    return N * log(N)


def pairs_with_log(x: float) -> float:
    """N = x / W₀(x), the solution of N ln N = x; W₀ is Lambert's function."""
    return float(x / np.real(lambertw(x)))


def hebb_capacity(d: int) -> float:
    """N = 0.027 d² for W = Σ u eᵀ on the sphere; the exponent is theory, the constant measured (d = 16 … 256)."""
    return 0.027 * d**2


def linear_trained_capacity(d: int) -> float:
    """N ln N = d²/1.3, the published fit for a trained d×d matrix (Nichani, Lee and Bietti 2025, Fig. 1 left)."""
    return pairs_with_log(d**2 / 1.3)


def mlp_capacity(md: int) -> float:
    """N ln N = md/0.35, the published fit for a trained MLP of hidden width m (the same paper, Fig. 1 right)."""
    return pairs_with_log(md / 0.35)


def facts_capacity(parameters: int) -> float:
    """Facts that a one-layer transformer keeps, 0.15 for each parameter (the same paper, Fig. 4 left)."""
    return FACTS_PER_PARAMETER * parameters


def sharp_capacity(d: int) -> float:
    """N ln N = d²/2: the most pairs that a d×d matrix separates, d → ∞ (Giorlandino, Goldt and Maillard 2026)."""
    return pairs_with_log(d**2 / 2)


def margin_variance(N: float, d: int) -> float:
    """Var(γ_{z,f(z)} − γ_{z,y}) = 2/d + (2N − 3)/d² for y ≠ f(z), exactly: Hebbian W, injective f, sphere."""
    return 2 / d + (2 * N - 3) / d**2


def low_rank_margin_variance(N: float, d: int, m: float) -> float:
    """The same, exactly, for W = A Bᵀ of rank m with B frozen (engram.memory.LowRank).

    With G = BBᵀ/m and κ = E(e_x·Ge_z)² = 1/d + (1 + 1/d)/m for x ≠ z: the right score varies by 2/m + (N−1)κ/d, a
    wrong one by (1 + 2/m)/d + κ + (N−2)κ/d, and they do not covary. For N ≫ d this is 2N (1/d)(1/m + 1/d).
    """
    kappa = 1 / d + (1 + 1 / d) / m
    return 2 / m + (1 + 2 / m) / d + kappa + (2 * N - 3) * kappa / d
