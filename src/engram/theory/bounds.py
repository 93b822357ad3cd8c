"""What no memory can beat: bits, and the loss that B bits must leave (Nichani, Lee and Bietti 2025, lower bounds).

f(x) is uniform on M values, independently for each of N inputs x; the learner sees f, keeps B bits, then predicts.
"""

from itertools import product
from math import lgamma, log, log2

import numpy as np
from jaxtyping import Float, Int

from engram.values import Rows, generator, law

Law = Float[np.ndarray, " N"]
Function = Int[np.ndarray, " N"]


def permutation_bits(N: int, error: float = 0.0) -> float:
    """log2 N! − N (h₂(ε) + ε log2(N − 1)), ε = error: the fewest bits in a memory of a random permutation.

    The second term is what errors can hide, by Fano's inequality.
    """
    hidden = error * log2(max(1, N - 1)) - sum(q * log2(q) for q in (error, 1 - error) if q > 0)
    return lgamma(N + 1) / log(2) - N * hidden


def loss_lower_bound(p: Law, M: int, bits: float) -> float:
    """E CE ≥ log M · Σ_x p(x) (1 − s_x): x takes s_x ≤ 1 of its log2 M bits, the likeliest first, until B are spent.

    For B a multiple of log2 M this is log M · Σ_{x > B/log2 M} p(x), p decreasing.
    """
    shares = np.clip(bits / log2(M) - np.arange(len(p)), 0, 1)
    return log(M) * float(np.sort(p)[::-1] @ (1 - shares))


def top_k_loss(p: Law, M: int, k: int) -> float:
    """log M · Σ_{x > k} p(x), p decreasing: the loss of the encoder that keeps f of the k likeliest inputs."""
    return log(M) * float(p[k:].sum())


def top_k_predictions(f: Function, M: int, k: int) -> Float[np.ndarray, "N M"]:
    """f̂(·|x): certain for the first k inputs, uniform for the others."""
    predictions = np.full((len(f), M), 1 / M)
    predictions[:k] = np.eye(M)[f[:k]]
    return predictions


def power_law(N: int, alpha: float) -> Law:
    """p(x) ∝ x^−α on x = 1 … N."""
    p = np.arange(1, N + 1, dtype=float) ** -alpha
    return p / p.sum()


@law("bounds.top_k")
def top_k(draws: int, seed: int, N: int = 8, M: int = 4) -> Rows:
    """For each k: mean cross-entropy of the encoder that keeps k inputs over `draws` random f, and the bound."""
    p = decreasing_law(N, seed)
    functions = generator(seed, "bounds.f").integers(M, size=(draws, N))
    for k in range(N + 1):
        losses = [-(p * np.log(top_k_predictions(f, M, k)[np.arange(N), f])).sum() for f in functions]
        loss, bound = float(np.mean(losses)), loss_lower_bound(p, M, k * log2(M))
        yield {"k": float(k), "loss": loss, "bound": bound, "gap": loss - bound}


def decreasing_law(N: int, seed: int) -> Law:
    """A random p, uniform on the simplex, sorted to decrease."""
    return np.sort(generator(seed, "bounds.p").dirichlet(np.ones(N)))[::-1]


@law("bounds.best_codebook")
def best_codebook(draws: int, seed: int, N: int = 4, M: int = 2, B: int = 1) -> Rows:
    """The least loss over all ways to give the M^N functions 2^B codes, each with its best decoder, and the bound."""
    p = decreasing_law(N, seed)
    functions = np.array(list(product(range(M), repeat=N)))
    values = np.eye(M)[functions].reshape(len(functions), N * M)
    total = (2**B) ** len(functions)
    least = min(_code_losses(p, values, B, np.arange(i, min(i + 2**14, total))).min() for i in range(0, total, 2**14))
    bound = loss_lower_bound(p, M, B)
    yield {"least": float(least), "bound": bound, "gap": float(least) - bound, "codebooks": float(total)}


def _code_losses(
    p: Law, values: Float[np.ndarray, "F NM"], B: int, books: Int[np.ndarray, " books"]
) -> Float[np.ndarray, " books"]:
    """Σ_x p(x) H(f(x) | code): the digits of a book in base 2^B are the codes of the functions."""
    F, N = len(values), len(p)
    codes = books[:, None] // (2**B) ** np.arange(F) % 2**B
    counts = np.stack([(codes == c).astype(float) @ values for c in range(2**B)], axis=1)
    counts = counts.reshape(len(books), 2**B, N, -1)
    return ((_xlogx(counts.sum(-1)) - _xlogx(counts).sum(-1)).sum(1) / F) @ p


def _xlogx(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    return x * np.log(np.maximum(x, 1))


@law("bounds.power_law_bounds")
def power_law_bounds(draws: int, seed: int, alpha: float = 1.5, N: int = 1_000_000) -> Rows:
    """p ∝ x^−α: the bound and the top-k loss for `draws` numbers of bits at M = 1024, then over M.

    The bits keep between 10 and N/1000 inputs.
    """
    p = power_law(N, alpha)
    kept = np.unique(np.geomspace(10, N // 1000, draws).astype(int))
    for k in kept:
        yield _at(p, 1024, int(k) * 10)
    for exponent in range(2, 11):  # 2520 is a multiple of every log2 M
        yield _at(p, 2**exponent, 2520)


def _at(p: Law, M: int, bits: int) -> dict[str, float]:
    bound, reached = loss_lower_bound(p, M, bits), top_k_loss(p, M, bits // int(log2(M)))
    return {"bits": float(bits), "log M": log(M), "bound": bound, "top-k": reached, "gap": reached / bound - 1}
