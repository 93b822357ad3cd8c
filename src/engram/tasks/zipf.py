"""Heavy-tailed data: token z comes with probability p(z) ∝ (z + 1)^−α, and has one of M answers, z mod M.

Errors are exact: the tokens that are answered wrongly, summed by their probabilities. Nothing is sampled to test.

    Zipf(N=100, M=5, alpha=2).probabilities[:3]        0.612, 0.153, 0.068

Cabannes, Dohmatob and Bietti (2024).
"""

from functools import cached_property
from typing import Annotated

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field, model_validator

from engram.values import Value, generator


class Zipf(Value, name="tasks.zipf.Zipf"):
    """Token z has probability ∝ z^−α.

    N        number of tokens
    M        number of answers
    alpha    exponent α
    """

    N: Annotated[int, Field(ge=1)] = 100
    M: Annotated[int, Field(ge=1)] = 5
    alpha: Annotated[float, Field(gt=0)] = 2.0

    @model_validator(mode="after")
    def _answers_fit(self) -> "Zipf":
        if self.M > self.N:
            raise ValueError(f"M: {self.N} tokens have at most {self.N} answers; got M={self.M}")
        return self

    @cached_property
    def probabilities(self) -> Float[np.ndarray, " N"]:
        weights = np.arange(1, self.N + 1, dtype=float) ** -self.alpha
        return weights / weights.sum()

    @cached_property
    def answers(self) -> Int[np.ndarray, " N"]:
        """z mod M: every answer has common tokens and rare ones."""
        return np.arange(self.N) % self.M

    def sample(self, n: int, seed: int) -> Int[np.ndarray, " n"]:
        """n tokens; the first ones do not depend on n."""
        edges = np.cumsum(self.probabilities)
        draws = generator(seed, "zipf.tokens").random(n)
        return np.minimum(np.searchsorted(edges, draws, side="right"), self.N - 1)

    def error(self, scores: Float[np.ndarray, "... N M"]) -> Float[np.ndarray, "..."]:
        """The probability of a wrong answer; equal scores, and scores that are no numbers, answer 0."""
        given = np.where(np.isnan(scores).any(-1), 0, np.nan_to_num(scores, nan=-np.inf).argmax(-1))
        return np.asarray(np.where(given != self.answers, self.probabilities, 0.0).sum(-1))
