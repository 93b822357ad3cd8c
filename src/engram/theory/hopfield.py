"""How many ±1 patterns a memory with energy −Σ_μ F(ξ_μ · x) holds: Hopfield's, dense ones, the exponential one."""

from collections.abc import Sequence
from math import erf, exp, log, log2, pi, prod, sqrt

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.stats import norm
from torch import Tensor

from engram.embeddings import directions
from engram.memory.hopfield import asynchronous, drive, energy, flipped_bits, settle, synchronous
from engram.values import Rows, law

CRITICAL_LOAD = 0.138  # Amit, Gutfreund and Sompolinsky (1985): beyond it no state near a pattern survives
CHUNK = 2**23  # overlaps held at once


def patterns(N: int, d: int, seed: int, draw: int) -> Float[Tensor, "N d"]:
    """The draw-th system of random patterns; its first rows do not depend on N."""
    return directions("signs", N, d, seed, f"xi.{draw}", torch.float64)


@law("hopfield.retrieval")
def retrieval(draws: int, seed: int, *, d: int, N: int, starts: int = 48) -> Rows:
    """The overlap with a stored pattern after asynchronous sweeps from it to a fixed point: n = 2, zero diagonal."""
    for draw in range(draws):
        xi = patterns(N, d, seed, draw)
        x = xi[:starts]
        overlap = (settle(xi, x) * x).mean(1)
        yield {"load": N / d, "overlap": float(overlap.mean()), "overlap.least": float(overlap.min())}


def retrieval_overlap(load: float) -> float:
    """m = erf(y) = y (√(2 load) + 2/√π e^{−y²}): the overlap near a pattern, d → ∞; NaN beyond the critical load.

    Amit, Gutfreund and Sompolinsky (1985).
    """

    def gap(y: float) -> float:
        return erf(y) - y * (sqrt(2 * load) + 2 / sqrt(pi) * exp(-y * y))

    ys = np.linspace(0.5, 8, 2000)
    above = [y for y in ys if gap(y) > 0]
    return erf(brentq(gap, above[-1], above[-1] + 8)) if above else float("nan")  # type: ignore[arg-type]


@law("hopfield.stability")
def stability(draws: int, seed: int, *, d: int, N: int) -> Rows:
    """The share of patterns that one step leaves without error, beside (1 − P(wrong bit))^d."""
    for draw in range(draws):
        xi = patterns(N, d, seed, draw)
        stable = (synchronous(xi, xi) == xi).all(1).double().mean()
        yield {"stable": float(stable), "law": (1 - bit_error(N, d)) ** d}


def bit_error(N: float, d: int, n: int = 2) -> float:
    """P(noise > signal) of one bit: the signal is d^{n−1}, the noise has variance (N − 1) (2n−3)!! d^{n−1}.

    For n = 2 both are exact with d − 1 in place of d, because the diagonal is zero. Krotov and Hopfield (2016).
    """
    signal = (d - 1) ** (n - 1)
    return float(norm.sf(sqrt(signal / (double_factorial(2 * n - 3) * max(N - 1, 1e-9)))))


def double_factorial(k: int) -> int:
    """k!! = k (k−2) (k−4) …."""
    return prod(range(k, 0, -2))


@law("hopfield.descent")
def descent(draws: int, seed: int, *, d: int, N: int, n: int = 2) -> Rows:
    """The largest rise of the energy in one asynchronous update, from random states; energies are recomputed."""
    for draw in range(draws):
        xi, x = patterns(N, d, seed, draw), directions("signs", 1, d, seed, f"x.{draw}", torch.float64)
        levels = [float(energy(xi, x, n))]
        for i in range(d):
            x = asynchronous(xi, x, n, bits=(i,))
            levels.append(float(energy(xi, x, n)))
        yield {"rise": float(np.diff(levels).max()), "fall": levels[0] - levels[-1]}


@law("hopfield.error_free")
def error_free(draws: int, seed: int, *, n: int, d: int, probes: int = 256) -> Rows:
    """The share of patterns that one step leaves without error, for several N around the law; F(t) = tⁿ.

    The drive of a bit is a sum over patterns, so one pass over them serves all N.
    """
    sizes = sorted({round(dense_law(d, n) * 2 ** (k / 4)) for k in range(-5, 5)})
    asked = min(probes, sizes[0])
    stable = np.zeros(len(sizes))
    for draw in range(draws):
        xi = patterns(sizes[-1], d, seed, draw)
        x, h = xi[:asked], torch.zeros(asked, d, dtype=torch.float64)
        for k, (before, N) in enumerate(zip([0, *sizes], sizes, strict=False)):
            h += drive(xi[before:N], x, n)
            stable[k] += float((h * x >= 0).all(1).double().mean()) / draws
    for N, share in zip(sizes, stable, strict=True):
        yield {"N": float(N), "stable": float(share), "law": (1 - bit_error(N, d, n)) ** d}


def dense_law(d: int, n: int) -> float:
    """N = d^{n−1} / (2 (2n−3)!! ln d), up to which a given pattern is without error (Krotov and Hopfield 2016)."""
    return d ** (n - 1) / (2 * double_factorial(2 * n - 3) * log(d))


@law("hopfield.all_stable")
def all_stable(draws: int, seed: int, *, d: int, flips: int = 0, most: int = 2**14) -> Rows:
    """The share of draws in which one step brings all of N patterns back, each with `flips` wrong bits; F = exp.

    N grows by √2 over the same draws; a draw that has failed is not tried again.
    """
    alive, k = list(range(draws)), 2
    while alive and 2 ** (k / 2) <= most:
        N = round(2 ** (k / 2))
        alive = [draw for draw in alive if _all_return(N, d, flips, seed, draw)]
        yield {"N": float(N), "stable": len(alive) / draws}
        k += 1


def _all_return(N: int, d: int, flips: int, seed: int, draw: int) -> bool:
    xi = patterns(N, d, seed, draw)
    x = xi.clone()
    if flips:
        wrong = flipped_bits(N, d, flips, seed, f"flips.{draw}")
        x.scatter_(1, wrong, -x.gather(1, wrong))
    rows = max(1, CHUNK // N)
    return all(torch.equal(synchronous(xi, x[a : a + rows], "exp"), xi[a : a + rows]) for a in range(0, N, rows))


def exponential_law(d: int) -> float:
    """N = √(2 ln 2 · 2^d / d), at which half of the draws keep all patterns: what fails is two at distance 1.

    The drive of the bit in which they differ is the same for both, so one of them fails; the expected number of such
    pairs, N²/2 · d 2^{−d}, is ln 2.
    """
    return sqrt(2 * log(2) * 2**d / d)


def exponential_rate(share: float) -> float:
    """log2(N)/d = I(1 − 2ρ) / (2 ln 2) = (1 − H₂(ρ)) / 2 if a share ρ of the bits is wrong (Demircigil et al. 2017)."""
    wrong = (share, 1 - share)
    return (1 + sum(p * log2(p) for p in wrong if p > 0)) / 2


def crossing(N: Sequence[float], stable: Sequence[float], level: float) -> float:
    """The N at which `stable` first falls below the level, linear in ln N between neighbours; NaN if it does not."""
    for a, b, above, below in zip(N, N[1:], stable, stable[1:], strict=False):
        if above >= level > below:
            return exp(log(a) + (log(b) - log(a)) * (above - level) / (above - below))
    return float("nan")
