r"""One gradient step on noisy in-context recall: what the feed-forward and the value matrix get from n samples.

The tokens are N ordinary ones, of which the last is the trigger q, and noise. A sequence has T tokens: q and its
successor, T − 3 fillers, and q at the end; fillers and the output ō are uniform on the N − 1 tokens besides q. The
successor is noise with probability α, else ō; so is the label y, by another coin. There is one layer, embeddings are
one-hot, attention is uniform and all matrices are 0, so that p̂ = 1/(N+1) and, with c_j tokens j in a sequence,

    −∂L/∂W_F = Σ_k (1{y=k} − 1/(N+1)) u_k e_qᵀ,      −∂L/∂W_V = Σ_{k,j} (1{y=k} − 1/(N+1)) (c_j/T) u_k e_jᵀ.

In expectation the first has P(y=k) − 1/(N+1), and for tokens j and k besides q and noise the second has

    (1−α)/(N−1) · ((T−3)/(N−1) + (1−α) 1{k=j})/T  −  (T−2−α)/((N−1)(N+1)T).

Uniform attention does not see where in the sequence a token stands: it is a bag.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from engram.errors import EngramError
from engram.memory.check import check_whole_number

Vector = Float[np.ndarray, " tokens"]
Matrix = Float[np.ndarray, "outputs tokens"]  # at [k, j] the coefficient of u_k e_jᵀ


@dataclass(frozen=True)
class Bags:
    """Sequences without their two triggers: the successor of the first, then fillers; and the labels."""

    labels: Int[np.ndarray, " n"]
    tokens: Int[np.ndarray, "n besides"]


def check_sizes(N: int, T: int, alpha: float) -> None:
    """Sizes that leave a choice between two tokens, room for both triggers, and a coin."""
    check_whole_number("N", N, 3)
    check_whole_number("T", T, 3)
    if not 0 < alpha < 1:
        raise EngramError(f"alpha: must lie between 0 and 1, without these; got {alpha!r}")


def draw_bags(rng: np.random.Generator, n: int, N: int, T: int, alpha: float) -> Bags:
    """n samples; short whole numbers are drawn several times as fast as long ones."""
    short = np.int16 if N < 2**15 else np.int32
    outputs, fillers = (rng.integers(N - 1, size=(n, width), dtype=short) for width in (1, T - 3))
    successors, labels = (np.where(rng.random((n, 1)) < alpha, short(N), outputs) for _ in range(2))
    return Bags(labels[:, 0].astype(int), np.concatenate([successors, fillers], axis=1))


def feedforward_gradient(bags: Bags, N: int) -> Vector:
    """The column q of −∂L/∂W_F, a mean over samples; its other columns are 0."""
    return np.bincount(bags.labels, minlength=N + 1) / len(bags.labels) - 1 / (N + 1)


def value_gradient(bags: Bags, N: int) -> Matrix:
    """−∂L/∂W_V, a mean over samples."""
    (n, besides), size = bags.tokens.shape, N + 1
    pairs = bags.labels[:, None] * size + bags.tokens
    counts = np.bincount(pairs.ravel(), minlength=size**2).reshape(size, size)
    counts[:, N - 1] = 2 * np.bincount(bags.labels, minlength=size)
    return (counts - counts.sum(0) / size) / (n * (besides + 2))


def feedforward_moments(N: int, alpha: float) -> tuple[Vector, Vector]:
    """Mean and variance of the column q of −∂L/∂W_F for a single sample; of n samples the variance is 1/n of it."""
    p = _labels(N, alpha)
    return p - 1 / (N + 1), p * (1 - p)


def value_moments(N: int, T: int, alpha: float) -> tuple[Matrix, Matrix]:
    """Mean and variance of −∂L/∂W_V for a single sample, by E (1{y=k} − δ)² c² = (1 − 2δ) E 1{y=k} c² + δ² E c²."""
    check_sizes(N, T, alpha)
    delta, p = 1 / (N + 1), _labels(N, alpha)
    once, twice = (p[:, None] * moments for moments in _counts(N, T, alpha))  # E 1{y=k} c_j and E 1{y=k} c_j²
    mean = (once - delta * once.sum(0)) / T
    square = ((1 - 2 * delta) * twice + delta**2 * twice.sum(0)) / T**2
    return mean, square - mean**2


def _labels(N: int, alpha: float) -> Vector:
    """P(y=k): the trigger is never a label."""
    return np.array([*[(1 - alpha) / (N - 1)] * (N - 1), 0, alpha])


def _counts(N: int, T: int, alpha: float) -> tuple[Matrix, Matrix]:
    """E(c_j | y=k) and E(c_j² | y=k): fillers are binomial, the successor is a coin of its own."""
    f, others = 1 / (N - 1), np.arange(N - 1)
    seen = np.zeros((N + 1, N + 1))  # P(successor = j | y = k)
    seen[others, others] = 1 - alpha
    seen[N, : N - 1] = (1 - alpha) * f  # a noisy label does not tell the output
    seen[:, N] = alpha
    fillers, spread = (T - 3) * f, (T - 3) * f * (1 - f)
    ordinary = np.arange(N + 1) < N - 1
    mean = seen + np.where(ordinary, fillers, 0)
    square = seen * (1 - seen) + np.where(ordinary, spread, 0) + mean**2
    mean[:, N - 1], square[:, N - 1] = 2, 4
    return mean, square
