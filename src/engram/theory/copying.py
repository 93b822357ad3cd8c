r"""What looking back pays on a text: the gain of mixing its bigrams with "what followed last time".

    o_t      the token after the last visit of z_t in its window; none at a first visit
    b(j|i)   = (c_ij + κ π_u(j)) / (c_i + κ)          bigrams of the text, smoothed
    payoff   = max_λ  mean log[ ((1−λ) b(z_{t+1}|z_t) + λ 1[z_{t+1} = o_t]) / b(z_{t+1}|z_t) ]

The mean is over late positions, where a first visit counts as no gain. Below about 0.2 nats, as in prose cut into
pieces and windows of 256 tokens, an induction head has little to win.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

KAPPA = 10.0  # what a row of bigrams is smoothed with
NONE = -1
SHARES = np.linspace(0.01, 0.99, 99)  # of λ
LITTLE = 0.2  # nats: less is not worth an induction head


def followed(tokens: Int[np.ndarray, "B T"]) -> Int[np.ndarray, "B T"]:
    """o_t: what followed the last visit of z_t before t; −1 where there was none."""
    B, T = tokens.shape
    rows, last = np.arange(B), np.full((B, int(tokens.max()) + 1), NONE)
    found = np.full((B, T), NONE)
    for t in range(T):
        before = last[rows, tokens[:, t]]
        found[:, t] = np.where(before >= 0, tokens[rows, before + 1], NONE)
        last[rows, tokens[:, t]] = t
    return found


@dataclass(frozen=True, eq=False)
class Bigrams:
    """The bigrams of a text, smoothed."""

    law: Float[np.ndarray, "N N"]

    @classmethod
    def of(cls, ids: Int[np.ndarray, " n"], N: int) -> "Bigrams":
        counts = np.bincount(ids[:-1] * N + ids[1:], minlength=N * N).reshape(N, N).astype(float)
        unigram = np.bincount(ids, minlength=N) + 1.0
        unigram /= unigram.sum()
        return cls((counts + KAPPA * unigram) / (counts.sum(axis=1, keepdims=True) + KAPPA))

    @property
    def likeliest(self) -> Int[np.ndarray, " N"]:
        """Of every token its most frequent successor."""
        return self.law.argmax(axis=1)


def payoff(
    bigrams: Bigrams,
    tokens: Int[np.ndarray, "B T"],
    targets: Int[np.ndarray, "B T"],
    late: Bool[np.ndarray, "B T"],
) -> float:
    """Nats a token that copying adds to the bigram at late positions, with the best share of it."""
    b = bigrams.law[tokens, targets][late]
    seen, right = (followed(tokens) != NONE)[late], (followed(tokens) == targets)[late]
    gains = [np.where(seen, np.log((1 - share) + share * right / b), 0.0).mean() for share in SHARES]
    return float(max(0.0, *gains))
