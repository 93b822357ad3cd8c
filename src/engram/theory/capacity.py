"""Capacity laws: how many pairs a memory holds at ≥ 99 % recall, and how its margin spreads. Injective f, M = N."""

import numpy as np
from scipy.special import lambertw


def pairs_with_log(x: float) -> float:
    """The N with N ln N = x: x / W₀(x), W₀ Lambert's function."""
    return float(x / np.real(lambertw(x)))


def hebb_capacity(d: int) -> float:
    """N = 0.027 d² for W = Σ u eᵀ on the sphere; the exponent is theory, the constant measured (d = 16 … 256)."""
    return 0.027 * d**2


def linear_trained_capacity(d: int) -> float:
    """N ln N = d²/1.3, the fit published for a trained d×d matrix (Fig. 1 left of the factual-recall paper)."""
    return pairs_with_log(d**2 / 1.3)


def mlp_capacity(md: int) -> float:
    """N ln N = md/0.35, the fit published for a trained MLP of hidden width m (Fig. 1 right of the same paper)."""
    return pairs_with_log(md / 0.35)


def sharp_capacity(d: int) -> float:
    """N ln N = d²/2: the most pairs that any d×d matrix separates without error, for large d."""
    return pairs_with_log(d**2 / 2)


def margin_variance(N: float, d: int) -> float:
    """Var(γ_{z,f(z)} − γ_{z,y}) = 2/d + (2N − 3)/d², y another stored value: Hebbian W, injective f, sphere, exact."""
    return 2 / d + (2 * N - 3) / d**2


def low_rank_margin_variance(N: float, d: int, m: float) -> float:
    """The same for W = A Bᵀ of rank m, B frozen (rules.low_rank), exact.

    With G = BBᵀ/m and κ = E(e_x·Ge_z)² = 1/d + (1 + 1/d)/m for x ≠ z: the right score varies by 2/m + (N−1)κ/d, a
    wrong one by (1 + 2/m)/d + κ + (N−2)κ/d, and they do not covary. For N ≫ d this is 2N (1/d)(1/m + 1/d).
    """
    kappa = 1 / d + (1 + 1 / d) / m
    return 2 / m + (1 + 2 / m) / d + kappa + (2 * N - 3) * kappa / d
