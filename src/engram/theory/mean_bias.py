r"""How wide a head must be to find a planted mark after one step on its attention.

Derived in docs/log/2026-11-16-planted-token.md.

In w the mark has the coefficient 1/(NT²), and e_z · w has noise with standard deviation σ over tokens, because labels
are unequally frequent and all inputs have a common part:

    σ = √(λ³ + 3λ² + λ) / (n N²),   λ = N/d                  for d ≪ N: 1/(n √N d^{3/2})
"""

from math import exp, sqrt

from scipy.optimize import brentq

KAPPA = 4.0  # how far the mark must rise above the noise; chosen by eye


def noise(N: int, n: int, d: float) -> float:
    """σ = √(λ³ + 3λ² + λ) / (n N²), λ = N/d."""
    x = N / d
    return sqrt(x**3 + 3 * x**2 + x) / (n * N**2)


def critical_width(N: int, T: int, n: int) -> float:
    """The d at which (NT²σ)² + 1/d falls to 1/κ²; 1/d is for tokens that resemble the mark by chance."""

    def excess(log_d: float) -> float:
        d = exp(log_d)
        return (N * T**2 * noise(N, n, d)) ** 2 + 1 / d - 1 / KAPPA**2

    return exp(brentq(excess, 0, 40))  # type: ignore[arg-type]
