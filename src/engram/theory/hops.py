r"""hop_k by pointer doubling, how deep it must be, and what one layer cannot do.

A layer of hard attention gives every position i one position j ≤ i to look at, and what is written there. Layer 1 looks
at i − 1. From then on i holds the pointer find^c(i) and the letter X there, and round after round

    attend to    j = find^(c+b)(i): the pointer itself (b = 0), or the last j ≤ find^c(i) that follows the letter there
    read         find^c(j), so that c becomes 2c + b

The bits b of k, the highest first, lead from c = 0 to c = k: ⌊log₂k⌋ + 1 rounds, and ⌊log₂k⌋ + 2 layers in all
(Sanford, Hsu and Telgarsky 2024, "Transformers, parallel computation, and logarithmic depth", Theorem 4.2).

Position 0 is a sink: an undefined hop points there, and stays there. Letters stand at the positions 1, 2, …
"""

from collections.abc import Sequence
from itertools import permutations, product
from math import ceil, log2

import numpy as np
from jaxtyping import Int

from engram.values import Rows, law

Permutation = tuple[int, ...]


def hop_depth(k: int) -> int:
    """⌊log₂k⌋ + 2, the number of layers that compute hop_k (Theorem 4.2); 1 for k = 0, which only copies."""
    return k.bit_length() + 1


def most_hops(depth: int) -> int:
    """2^(L−1) − 1: the most hops that L layers compute by pointer doubling."""
    return 2 ** (depth - 1) - 1


def bits_of(k: int) -> tuple[int, ...]:
    """The bits of k, the highest first; none for k = 0."""
    return tuple(int(bit) for bit in f"{k:b}") if k else ()


def pointer_doubling(letters: Int[np.ndarray, "B n"], bits: tuple[int, ...]) -> Int[np.ndarray, "B n"]:
    """find^k(i) by one round of hard attention for each bit of k, counted from 0; −1 where it is undefined."""
    B, T = len(letters), letters.shape[1] + 1
    X = np.concatenate([np.full((B, 1), -1), letters], axis=1)  # the sink has no letter
    before = X[:, np.maximum(np.arange(T) - 1, 0)]  # layer 1
    pointer = np.broadcast_to(np.arange(T), (B, T))
    for bit in bits:
        attended = _follows(pointer, np.take_along_axis(X, pointer, axis=1), before) if bit else pointer
        pointer = np.take_along_axis(pointer, attended, axis=1)
    return pointer[:, 1:] - 1


def _follows(
    pointer: Int[np.ndarray, "B T"], letter: Int[np.ndarray, "B T"], before: Int[np.ndarray, "B T"]
) -> Int[np.ndarray, "B T"]:
    """The last position up to the pointer that comes after the letter there; the sink if there is none."""
    place = np.arange(pointer.shape[1])
    match = (letter[:, :, None] == before[:, None, :]) & (before >= 0)[:, None, :]
    return np.where(match & (place <= pointer[:, :, None]), place, 0).max(axis=2)


def index_bits(length: int) -> int:
    """How many bits x_1 … x_m a string of letters hides from one layer that is asked for hop_1 at its end: ⌊(n−1)/2⌋.

    In "_x_1 ?x_2 _x_3 ?" (here i = 2) the hop from the last ? is x_i. The x are all that one side knows, i all that the
    other knows: the problem INDEX, for which m bits must be said.
    """
    return (length - 1) // 2


def one_layer_width(length: int, heads: int, bits: int) -> int:
    """The least width d_h with H(d_h + 1)p ≥ m, m = `index_bits`: what one layer needs for hop_1 at this length.

    The side that knows the x needs to say, for each of H heads, d_h sums and one normaliser, here of p bits each; the
    theorem says H d_h p = Ω(n) (Sanford, Hsu and Telgarsky 2024, "One-layer transformers fail to solve the induction
    heads task"). Two layers need O(log n).
    """
    return max(0, ceil(index_bits(length) / (heads * bits)) - 1)


def one_layer_error(n: int, heads: int, d: int, bits: int) -> float:
    """(n log₂n − H(d+1)p) / (3n log₂n), at least 0: how often one layer must err on the composition of two functions.

    Functions on n values in context, heads of width d, numbers of p bits (Peng, Narayanan and Papadimitriou 2024, "On
    limitations of the transformer architecture", Theorem 1).
    """
    whole = n * log2(n)
    return max(0.0, (whole - heads * (d + 1) * bits) / (3 * whole))


def composed(sigma: Sequence[Permutation], pi: Sequence[Permutation], x: int) -> int:
    """f_π(σ, x) = (σ_k ∘ π_k ∘ … ∘ σ_1 ∘ π_1)(x)."""
    for sigma_a, pi_a in zip(sigma, pi, strict=True):
        x = sigma_a[pi_a[x]]
    return x


def averaged_over(n: int) -> list[Permutation]:
    """The permutations σ_a over which an answer is averaged: all of S_n."""
    return list(permutations(range(n)))


@law("hops.no_correlation")
def no_correlation(draws: int, seed: int, n: int, k: int) -> Rows:
    """Exact, by enumeration: how far the law of the answer is from uniform, given all σ but those that are averaged.

    A row for each set of permutations in context that is averaged over: how many they are, whether σ_1 is one of them,
    `off`, the largest |P(f(σ, x) = y) − 1/n| over all hidden π, all other σ, x and y, and how far that is from 1 − 1/n,
    which it is where an answer is certain.
    """
    for averaged in product((0, 1), repeat=k):
        off = _furthest(n, averaged)
        yield {"averaged": float(sum(averaged)), "first": float(averaged[0]), "off": off, "uncertain": 1 - 1 / n - off}


def _furthest(n: int, averaged: tuple[int, ...]) -> float:
    """max |P(y) − 1/n|, where the σ_a with averaged_a = 1 are averaged over, and all else is given."""
    every = list(permutations(range(n)))
    worlds = product(product(every, repeat=len(averaged)), product(*([None] if a else every for a in averaged)))
    asked = product(worlds, range(n), range(n))
    return max(abs(_chance(n, pi, given, x, y) - 1 / n) for (pi, given), x, y in asked)


def _chance(n: int, pi: Sequence[Permutation], given: Sequence[Permutation | None], x: int, y: int) -> float:
    """P(f_π(σ, x) = y) over the σ_a that are not given."""
    sigmas = product(*(averaged_over(n) if one is None else [one] for one in given))
    hits = [composed(sigma, pi, x) == y for sigma in sigmas]
    return sum(hits) / len(hits)
