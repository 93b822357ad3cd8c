r"""How many samples one step needs until W_F predicts noise behind the trigger, and until W_V recalls in context.

**Feed-forward.** Noise leads if it has more labels than any other token. Of n samples c are noise, c ~ Bin(n, α), and
the others fall on N − 1 tokens alike:

    P(n) = Σ_c Bin(c; n, α) P(n − c balls in N − 1 boxes, fewer than c in each),     first n with P(n) ≥ 0.95.

Where no label comes twice (N ≫ n²) two of noise are enough: n ≈ 4.7/α, whatever N.

**Attention.** The column j of W_V is ordered by C_kj, how often the token j stood in sequences with the label k. It
recalls j if C_jj is above every other C_kj with k besides noise. In sequences with label k, of which there are about
μ = n(1−α)/(N−1), fillers add λ = μ(T−3)/(N−1) to each C_kj, and the successor s = μ(1−α) to C_jj alone. Each C_kj has
the generating function ((1 − p) + p g(x))ⁿ, p = (1−α)/(N−1), g(x) = (1 + (x−1)/(N−1))^{T−3} (1 + (1−α)(x−1))^{1{k=j}},
exactly; those of one column are taken for independent (their labels exclude each other, a correlation of −1/N):

    R(n) = Σ_c P(C_jj = c) P(C_kj < c)^{N−2},     first n with R(n) ≥ 0.9.

**Why the exponent in N rises to 1.** Most of λ is noise of the fillers, and λ/s = (T−3)/((1−α)(N−1)).
For N ≪ T it is large and the counts are Gaussian: s must exceed √(2λ log N), so n ≈ 2(T−3) log N/(1−α)³, which hardly
grows with N. For larger N the fillers thin out, and what s must exceed is the largest of N Poisson counts with a small
mean: m if N λ^m/m! ≥ 1. It falls to 1 only where N λ²/2 < 1. At s = 3.89, which makes two hits likely enough
((1 + s)e^−s = 0.1), this says N > ((T−3) s/(1−α))²/2: the crossover is at N ∝ T². Beyond it n = 3.89 N/(1−α)².
"""

from functools import lru_cache
from math import ceil, e, sqrt

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln, lambertw, xlogy

from engram.errors import EngramError
from engram.memory.check import check_whole_number
from engram.theory.context_gradients import check_sizes

Law = Float[np.ndarray, " counts"]
LEARNED, RECALLED = 0.95, 0.9  # probability that noise leads; share of tokens that are recalled
LONGEST = 512  # labels for which the law of the largest count is computed
LAST_COUNT = float(-lambertw((RECALLED - 1) / e, -1).real - 1)  # s with P(Poisson(s) ≥ 2) = 0.9


def feedforward_samples(N: int, alpha: float) -> int:
    """The smallest number of samples after which noise leads with probability 0.95."""
    return ceil(feedforward_crossing(N, alpha))


@lru_cache
def feedforward_crossing(N: int, alpha: float) -> float:
    """Where P crosses 0.95 for the first time, on the line between two whole numbers."""
    most = 64
    while most <= LONGEST:
        found = crossing(noise_learned(N, alpha, most))
        if found is not None:
            return found
        most *= 2
    raise EngramError(f"alpha: {alpha} needs more than {LONGEST} samples at N={N}; take a larger alpha")


def crossing(shares: Law) -> float | None:
    """Where shares at n = 0, 1, … first reach 0.95, on the line from the last one below; None if they do not."""
    enough = np.flatnonzero(shares >= LEARNED)
    if not len(enough):
        return None
    n = int(enough[0])
    return n - float((shares[n] - LEARNED) / (shares[n] - shares[n - 1]))


def noise_learned(N: int, alpha: float, most: int) -> Law:
    """P(n) for n = 0 … most: noise has more labels than any other token."""
    check_sizes(N, 3, alpha)
    check_whole_number("most", most, 1, LONGEST)
    n, found = np.arange(most + 1), np.zeros(most + 1)
    for c in range(1, most + 1):
        others = n[c:] - c
        log_binomial = gammaln(n[c:] + 1) - gammaln(c + 1) - gammaln(others + 1)
        binomial = np.exp(log_binomial + xlogy(c, alpha) + xlogy(others, 1 - alpha))
        found[c:] += binomial * fewer_in_each(c, N - 1, most)[others]
    return found


def fewer_in_each(c: int, boxes: int, most: int) -> Law:
    """P(m balls in so many boxes, fewer than c in each) for m = 0 … most.

    With a Poisson number of balls the boxes are independent; the law given their number follows.
    """
    mean = most / boxes
    one = np.zeros(most + 1)
    one[: min(c, most + 1)] = _poisson(mean, most)[:c]
    return np.minimum(1, _power(one, boxes) / _poisson(most, most))


def _poisson(mean: float, most: int) -> Law:
    counts = np.arange(most + 1)
    return np.exp(xlogy(counts, mean) - mean - gammaln(counts + 1))


def _power(series: Law, exponent: int) -> Law:
    """A power series to a power, up to the same degree."""
    found = np.zeros_like(series)
    found[0] = 1
    for digit in f"{exponent:b}":
        found = np.convolve(found, found)[: len(series)]
        found = np.convolve(found, series)[: len(series)] if digit == "1" else found
    return found


@lru_cache
def attention_samples(N: int, T: int, alpha: float) -> int:
    """The smallest number of samples after which a share of 0.9 of all tokens is recalled, in expectation."""
    low, high = 0, 1
    while recalled_share(high, N, T, alpha) < RECALLED:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if recalled_share(middle, N, T, alpha) >= RECALLED else (middle, high)
    return high


def recalled_share(n: int, N: int, T: int, alpha: float) -> float:
    """R(n), the expected share of tokens j with C_jj above every other C_kj."""
    check_sizes(N, T, alpha)
    own, other = (entry_law(n, N, T, alpha, is_own) for is_own in (True, False))
    below = np.concatenate([[0.0], np.cumsum(other)[:-1]])
    return float(own @ below ** (N - 2))


def entry_law(n: int, N: int, T: int, alpha: float, own: bool) -> Law:
    """P(C_kj = c) for k = j (`own`) or k ≠ j, from its generating function on the unit circle."""
    p, fillers = (1 - alpha) / (N - 1), T - 3
    mean = 1 + fillers / (N - 1)  # of what one sequence adds, at most
    size = ceil(n * p * mean + 12 * sqrt(n * p * mean * (1 + mean)) + 12 * mean + 20)
    x = np.exp(-2j * np.pi * np.arange(size) / size)
    g = (1 + (x - 1) / (N - 1)) ** fillers * (1 + own * (1 - alpha) * (x - 1))
    return np.fft.ifft((1 - p + p * g) ** n).real.clip(0, 1)


def attention_limit(N: int, alpha: float) -> float:
    """3.89 (N−1)/(1−α)², what is needed for N ≫ T²: two hits of every token."""
    return LAST_COUNT * (N - 1) / (1 - alpha) ** 2


def crossover(T: int, alpha: float) -> float:
    """((T−3) s/(1−α))²/2: the N beyond which hardly any wrong pair of a column comes twice."""
    return ((T - 3) * LAST_COUNT / (1 - alpha)) ** 2 / 2
