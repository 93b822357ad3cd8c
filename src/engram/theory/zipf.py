"""Storage schemes under heavy-tailed data, and their laws: W = Σ_z q(z) u_{f(z)} e_zᵀ with p(z) ∝ z^−α.

A scheme is a vector q over tokens. The error is the probability of a token that W answers wrongly.

    scheme                              exponent of the error in the width d
    q = p (counts)                      −(α−1)/(2α)
    q = p^ρ                             −(α−1)/(2ρα)           of d/φ(N)
    q = p^ρ on the P likeliest tokens   −(α−1)/(2ρα+1)         at P ≃ d^{1/(2ρα+1)}
    q = 1 on the P likeliest tokens     −(α−1)                 at P ≃ d: no scheme has a better one

With n samples, what was never seen costs n^{−(α−1)/α} besides, whatever the memory.

Cabannes, Dohmatob and Bietti (2024); Hutter (2021).
"""

from math import floor, inf, log
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtr, zeta

from engram.errors import EngramError
from engram.memory.check import check_finite, check_whole_number, is_real, is_whole, shown
from engram.tasks.zipf import Zipf
from engram.theory.bounds import Law
from engram.theory.prediction import unseen
from engram.values import build, generator

Scheme = Float[np.ndarray, " N"]  # q, over tokens
Counts = Int[np.ndarray, " N"]


def heavy_tail(N: int, M: int, alpha: float) -> Zipf:
    """The task of these sizes; what it cannot have is told in one line."""
    check_whole_number("N", N, 1)
    check_whole_number("M", M, 1)
    check_finite("alpha", alpha, above=0)
    return build(Zipf, {"N": N, "M": M, "alpha": float(alpha)})


def count(tokens: Int[np.ndarray, " n"], N: int) -> Counts:
    """How often each of N tokens was seen."""
    return np.bincount(tokens, minlength=N)


def seen(counts: Counts, times: int = 1) -> Scheme:
    """q(z) = 1 if z was seen at least so many times, else 0."""
    check_whole_number("times", times, 1)
    return (counts >= times).astype(float)


def likeliest(p: Law, P: int) -> Scheme:
    """q(z) = 1 for the P most probable tokens, else 0."""
    return powers(p, 0.0, P)


def most_seen(counts: Counts, P: int, seed: int) -> Scheme:
    """q(z) = 1 for the P tokens that were seen most often, chance deciding ties; what was never seen is not stored."""
    _check_kept(P, len(counts))
    ties = generator(seed, "zipf.ties").random(len(counts))
    order = np.lexsort((ties, -counts))
    q = np.zeros(len(counts))
    q[order[:P]] = 1
    return q * (counts > 0)


def powers(p: Law, rho: float, P: int | None = None) -> Scheme:
    """q(z) = p(z)^ρ, for the P most probable tokens only if P is given."""
    _check_rho(rho)
    q = p**rho
    if P is not None:
        _check_kept(P, len(p))
        q[np.argsort(-p, kind="stable")[P:]] = 0
    return q


def _check_rho(rho: float) -> None:
    if not (is_real(rho) and 0 <= rho < inf):
        raise EngramError(f"rho: the power of p must be a finite number of at least 0; got {shown(rho)}")


def _check_kept(P: int, N: int) -> None:
    if not (is_whole(P) and 0 <= P <= N):
        raise EngramError(f"P: of {N} tokens a whole number from 0 to {N} can be stored; got {shown(P)}")


def scores(task: Zipf, q: Scheme, E: Float[np.ndarray, "N d"], U: Float[np.ndarray, "M d"]) -> Float[Any, "N M"]:
    """u_k · W e_z for all tokens and answers, by the sums S_y = Σ_{f(z)=y} q(z) e_z: W = Σ_y u_y S_yᵀ."""
    S = by_answer(task, q).astype(E.dtype) @ E
    return E @ S.T @ (U @ U.T)


def by_answer(task: Zipf, q: Scheme) -> Float[np.ndarray, "M N"]:
    """q(z) in the row of the answer of z, else 0."""
    return np.where(np.arange(task.M)[:, None] == task.answers, q, 0.0)


def hutter_error(p: Law, n: float, wrong: float | Law = 1.0) -> float:
    """Σ_z p(z) (1 − p(z))^n · wrong(z): the expected error of an infinite memory that has seen n tokens.

    `wrong` is the chance that the answer to an unseen token is wrong: 1 − 1/M if it is guessed.
    """
    return unseen(p, n, wrong)


def hutter_exponent(alpha: float) -> float:
    """−(α−1)/α, of the error in the number n of samples."""
    return -(_tail(alpha)) / alpha


def width_exponent(alpha: float, rho: float, truncated: bool) -> float:
    """Of the error in d: −(α−1)/(2ρα) for q = p^ρ, where d is divided by φ(N), −(α−1)/(2ρα+1) if it is truncated."""
    _check_rho(rho)
    if truncated:
        return -_tail(alpha) / (2 * rho * alpha + 1)
    if rho == 0:
        raise EngramError("rho: q = 1 on all tokens has no exponent in d; give rho above 0, or truncate it")
    return -_tail(alpha) / (2 * rho * alpha)


def _tail(alpha: float) -> float:
    """α − 1, the exponent of the mass of the tail."""
    if not (is_real(alpha) and 1 < alpha < inf):
        raise EngramError(f"alpha: the law holds for a finite alpha above 1; got {shown(alpha)}")
    return alpha - 1


def crowding(N: int, alpha: float, rho: float) -> float:
    """φ(N), by which N tokens make a width smaller for q = p^ρ: 1, log N, N^{1−2ρα} for 2ρα >, =, < 1."""
    _check_rho(rho)
    steep = 2 * rho * alpha
    if abs(steep - 1) < 1e-12:
        return log(N)
    return 1.0 if steep > 1 else N ** (1 - steep)


def kept(d: int, alpha: float, rho: float, factor: float = 1.0) -> int:
    """P = ⌊factor · d^{1/(2ρα+1)}⌋, at least 1: how many of the likeliest tokens q = p^ρ should store."""
    check_whole_number("d", d, 1)
    _check_rho(rho)
    return max(1, floor(factor * d ** (1 / (2 * rho * alpha + 1)) + 1e-9))  # 1000^(1/3) is 9.999…


def lost_mass(task: Zipf, q: Scheme, d: int) -> float:
    """p({z: d q(z)² ≤ Q_∞}), Q_∞ = max_y Σ_{f(z)=y} q(z)²: what the interference of an answer drowns.

    The error of every scheme is of this order, up to logarithms.
    """
    check_whole_number("d", d, 1)
    largest = (by_answer(task, q) ** 2).sum(1).max()
    return float(task.probabilities[d * q**2 <= largest].sum())


def lower_bound(d: int, alpha: float, M: int) -> float:
    """c_α (d+1)^{−(α−1)}, below which no scheme can come on infinitely many tokens; c_α is derived here.

    d q(z)² > Σ_{f(z')=f(z)} q(z')² holds for fewer than d tokens of each answer, and without it z is answered wrongly
    with probability Φ(−1) at least. So c_α = Φ(−1) M^{−(α−1)} / ((α−1) ζ(α)), by the mass of all but Md tokens.
    """
    check_whole_number("d", d, 1)
    check_whole_number("M", M, 2)
    c = float(ndtr(-1)) * M ** (-_tail(alpha)) / (_tail(alpha) * float(zeta(alpha)))
    return c * (d + 1) ** (1 - alpha)
