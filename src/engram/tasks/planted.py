r"""A planted token (Vural, Bietti, Soltanolkotabi, Wu): one of T random tokens is marked, and its image is the label.

    tokens    z_1 … z_ℓ … z_T  uniform on N          x_t = e_{z_t} + 1{t = ℓ} e_trig,  ℓ uniform
    label     y = Π(z_ℓ), Π a permutation            the query is e_EOS

Attention must find the mark, and the value matrix must store Π. Which position is marked does not matter.
"""

from dataclasses import dataclass
from math import log
from typing import Annotated

import numpy as np
from jaxtyping import Int
from pydantic import Field

from engram.values import Value, generator

SEEN_MARGIN = 5.1  # N (ln N + 5.1) samples show every token with probability exp(−e^{−5.1}) = 0.994
LARGEST = 16384  # tables of N × N numbers are kept


@dataclass(frozen=True)
class Sample:
    """Sequences with the marked token first, and their labels."""

    tokens: Int[np.ndarray, "n T"]
    labels: Int[np.ndarray, " n"]


class PlantedToken(Value, name="tasks.planted.PlantedToken"):
    """Sequences whose first token is marked, and how many of them are learned from.

    N           number of tokens
    T           length of a sequence
    n           sequences that are learned from; 0: N (ln N + 5.1)
    balanced    they mark all tokens equally often: n is rounded up to make it so
    """

    N: Annotated[int, Field(ge=2, le=LARGEST)] = 64
    T: Annotated[int, Field(ge=2, le=65536)] = 8
    n: Annotated[int, Field(ge=0)] = 0
    balanced: bool = False

    @property
    def samples(self) -> int:
        """How many sequences are learned from."""
        n = self.n or round(self.N * (log(self.N) + SEEN_MARGIN))
        return -(-n // self.N) * self.N if self.balanced else n

    def permutation(self, seed: int) -> Int[np.ndarray, " N"]:
        """Π."""
        return generator(seed, "planted.permutation").permutation(self.N)

    def sample(self, seed: int, step: int, n: int) -> Sample:
        """A pure function of (task, seed, step, n). The permutation is that of the seed."""
        tokens = generator(seed, "planted", step).integers(self.N, size=(n, self.T))
        return Sample(tokens, self.permutation(seed)[tokens[:, 0]])

    def training_sample(self, seed: int) -> Sample:
        """The sequences that the steps learn from."""
        drawn = self.sample(seed, 0, self.samples)
        if not self.balanced:
            return drawn
        marked = np.arange(self.samples) % self.N
        return Sample(np.column_stack([marked, drawn.tokens[:, 1:]]), self.permutation(seed)[marked])
