r"""The data of Theorem 3 (Birth of a Transformer, Appendix B.3): one trigger, predicted at its second visit.

    tokens   . . q o . . . q        everything uniform; the free tokens . are never the trigger
    label                    o

With `pairs="distinct"` o ≠ q, and the trigger stands at t_q uniform on 1 … T−2. `"natural"` is what uniform bigrams do
to a sequence that is cut at the second visit: t_q is uniform on 1 … T−1, and o = q exactly if t_q = T−1. So o = q has
probability 1/(T−1), where the paper counts it as 1/N.

Nothing but the equalities between tokens matters, so all sequences are enumerated up to relabelling.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import perm
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from pydantic import Field

from engram.errors import EngramError
from engram.tasks.batch import Batch
from engram.values import Value, generator

LONGEST = 12  # sequences of this length have 116 000 patterns for each place of the trigger


@dataclass(frozen=True)
class Law:
    """A finite law of sequences and labels."""

    tokens: Int[np.ndarray, "A T"]
    labels: Int[np.ndarray, " A"]
    p: Float[np.ndarray, " A"]

    def where(self, chosen: Bool[np.ndarray, " A"]) -> "Law":
        """The law conditioned on the chosen sequences."""
        return Law(self.tokens[chosen], self.labels[chosen], self.p[chosen] / self.p[chosen].sum())


class SecondVisit(Value, name="tasks.second_visit.SecondVisit"):
    """Sequences of T tokens out of N whose last is the second visit of their trigger.

    N        number of tokens
    T        length of a sequence
    pairs    distinct: the output is never the trigger; natural: what uniform bigrams do to a sequence cut there
    """

    N: Annotated[int, Field(ge=2)] = 1000
    T: Annotated[int, Field(ge=4, le=65536)] = 8
    pairs: Literal["distinct", "natural"] = "distinct"

    @property
    def groups(self) -> tuple[str, ...]:
        return ("in_context", "other")

    @property
    def places(self) -> int:
        """Where the trigger may stand first: t_q is uniform on 1 … places."""
        return self.T - 2 if self.pairs == "distinct" else self.T - 1

    def sample(self, seed: int, step: int, batch: int) -> Batch:
        """Only the last position is `in_context`."""
        rng = generator(seed, "second-visit", step)
        q, t_q = rng.integers(self.N, size=batch), rng.integers(self.places, size=batch)
        others = rng.integers(self.N - 1, size=(batch, self.T + 1))
        others += others >= q[:, None]  # uniform on all tokens but q
        tokens, rows, t_o = others[:, :-1], np.arange(batch), t_q + 1
        o = np.where(t_o == self.T - 1, q, others[:, -1])
        tokens[rows, t_q], tokens[rows, t_o], tokens[:, -1] = q, o, q
        asked = np.zeros((batch, self.T), dtype=bool)
        asked[:, -1] = True
        return Batch(tokens, np.column_stack([tokens[:, 1:], o]), {"in_context": asked, "other": ~asked})

    def patterns(self) -> Law:
        """Every sequence up to relabelling, with the probability of all its relabellings together; q is token 0."""
        if self.T > LONGEST:
            raise EngramError(f"T: sequences of {self.T} tokens have too many patterns to enumerate; use T ≤ {LONGEST}")
        parts = [self._with_trigger_at(t_q) for t_q in range(self.places)]
        tokens, labels, p = (np.concatenate(part) for part in zip(*parts, strict=True))
        possible = p > 0  # a pattern may have more tokens than the vocabulary
        return Law(tokens[possible], labels[possible], p[possible])

    def _with_trigger_at(
        self, t_q: int
    ) -> tuple[Int[np.ndarray, "A T"], Int[np.ndarray, " A"], Float[np.ndarray, " A"]]:
        """Tokens, labels and probabilities of the patterns whose trigger stands first at t_q, counted from 0."""
        t_o, last = t_q + 1, self.T - 1
        same = t_o == last  # then o = q
        free = [t for t in range(last) if t not in (t_q, t_o)]
        strings, new = growth_strings(len(free), 0 if same else 1)
        ways = np.array([perm(self.N - (1 if same else 2), int(n)) for n in new], dtype=float)
        tokens = np.zeros((len(strings), self.T), dtype=np.int64)
        tokens[:, free] = strings + 1
        tokens[:, t_o] = 0 if same else 1
        return tokens, tokens[:, t_o].copy(), ways / float(self.N - 1) ** len(free) / self.places


def growth_strings(length: int, known: int) -> tuple[Int[np.ndarray, "A n"], Int[np.ndarray, " A"]]:
    """All strings of labels in which new labels come in order, after `known` labels; and how many are new in each.

    >>> growth_strings(2, 1)[0].tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]]
    """
    strings, labels = np.zeros((1, 0), dtype=np.int64), np.array([known])
    for _ in range(length):
        rows, added = (np.array(part) for part in zip(*_choices(labels), strict=True))
        strings = np.column_stack([strings[rows], added])
        labels = np.maximum(labels[rows], added + 1)
    return strings, labels - known


def _choices(labels: Int[np.ndarray, " A"]) -> Iterator[tuple[int, int]]:
    """A row and its next label: one of those it has, or a new one."""
    return ((row, label) for row, count in enumerate(labels) for label in range(count + 1))
