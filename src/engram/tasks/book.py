r"""A book of facts, and prompts that ask for them (factual recall; Nichani, Lee, Bietti).

    tokens   . . s . . . r . . EOS        (s, r) ~ p, at two distinct places; all others uniform noise
    answer   a*(s, r)

Token ids: subjects 0 … S−1, relations, noise, EOS last. Answers have ids of their own. The order of tokens carries
nothing, so a prompt is a bag: `bags` draws the same facts and the same noise as `sample` does, without places.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
from jaxtyping import Float, Int

from engram.tasks.batch import Batch
from engram.values import generator

DRAWN_AT_ONCE = 64  # noise tokens of a prompt: memory does not grow with T
MISSING = -1
Ids = Int[np.ndarray, " B"]


@dataclass(frozen=True)
class Bags:
    """Prompts as bags: all their tokens, or (for long ones) how often each token of the vocabulary occurs."""

    tokens: Int[np.ndarray, "B T"] | None
    counts: Float[np.ndarray, "B V"] | None
    answers: Int[np.ndarray, " B"]


def _place(parts: Iterable[Int[np.ndarray, "B n"]], tokens: Int[np.ndarray, "B T"]) -> None:
    """Tokens side by side."""
    at = 0
    for part in parts:
        tokens[:, at : at + part.shape[1]] = part
        at += part.shape[1]


def _count(parts: Iterable[Int[np.ndarray, "B n"]], counts: Float[np.ndarray, "B V"]) -> None:
    """How often each token occurs in a prompt."""
    B, V = counts.shape
    for part in parts:
        counts += np.bincount((np.arange(B)[:, None] * V + part).ravel(), minlength=B * V).reshape(B, V)


@dataclass(frozen=True, eq=False)
class Book:
    """a*(s, r), or MISSING where there is no such fact; p(s, r), zero there; how many answers and noise tokens; T.

    wire    the token that a model sees for each id, where that is not the id itself
    """

    table: Int[np.ndarray, "S R"]
    p: Float[np.ndarray, "S R"]
    answers: int
    noise: int
    T: int
    wire: Int[np.ndarray, " N"] | None = None

    @property
    def S(self) -> int:
        return self.table.shape[0]

    @property
    def R(self) -> int:
        return self.table.shape[1]

    @property
    def N(self) -> int:
        return self.S + self.R + self.noise + 1

    @property
    def EOS(self) -> int:
        return self.N - 1

    @cached_property
    def known(self) -> Int[np.ndarray, "n 3"]:
        """Every fact as (s, r, a)."""
        s, r = np.nonzero(self.table != MISSING)
        return np.column_stack([s, r, self.table[s, r]])

    @cached_property
    def said(self) -> Float[np.ndarray, "N A"]:
        """What each token alone says of the answer: p(a | s), p(a | r); zero for noise and EOS."""
        s, r, a = self.known.T
        joint = np.zeros((self.N, self.answers))
        np.add.at(joint, (s, a), self.p[s, r])
        np.add.at(joint, (self.S + r, a), self.p[s, r])
        return joint / np.maximum(joint.sum(1, keepdims=True), 1e-300)

    @cached_property
    def said_by_token(self) -> Float[np.ndarray, "N A"]:
        """The same by the token that a model sees."""
        found = np.empty_like(self.said)
        found[self.wired(np.arange(self.N))] = self.said
        return found

    def wired(self, ids: Int[np.ndarray, "..."]) -> Int[np.ndarray, "..."]:
        """The tokens that a model sees for these ids."""
        return ids if self.wire is None else self.wire[ids]

    @cached_property
    def ends(self) -> Float[np.ndarray, " n"]:
        """The cumulative probabilities of the known facts, without the last one."""
        p = self.p[self.known[:, 0], self.known[:, 1]]
        return np.cumsum(p / p.sum())[:-1]

    def sample(self, seed: int, step: int, batch: int) -> Batch:
        """A pure function of (book, seed, step, batch). Only what follows EOS is to be predicted."""
        s, r, answers = self.asked(seed, step, batch)
        tokens = self._prompts(s, r, seed, step)
        targets, last = np.zeros_like(tokens), np.zeros(tokens.shape, dtype=bool)
        targets[:, -1], last[:, -1] = answers, True
        return Batch(tokens, targets, {"answer": last, "other": ~last})

    def every(self, seed: int, step: int) -> Int[np.ndarray, "n T"]:
        """One prompt for each known fact, in their order."""
        s, r, _ = self.known.T
        return self._prompts(s, r, seed, step)

    def about(self, s: int, r: int, seed: int, step: int, batch: int) -> Int[np.ndarray, "B T"]:
        """Prompts that all ask for one fact, each with its own noise."""
        return self._prompts(np.full(batch, s), np.full(batch, r), seed, step)

    def _prompts(self, s: Ids, r: Ids, seed: int, step: int) -> Int[np.ndarray, "B T"]:
        """Subject, relation and noise at random places, then EOS."""
        places = generator(seed, "facts.places", step).random((len(s), self.T - 1)).argsort(axis=1)
        tokens = np.full((len(s), self.T), self.EOS)
        np.put_along_axis(tokens, places, np.column_stack([s, r + self.S, *self._noise(seed, step, len(s))]), axis=1)
        return self.wired(tokens)

    def about_each(self, facts: Int[np.ndarray, "n 3"], seed: int, step: int, batch: int) -> Int[np.ndarray, "n B T"]:
        """What `about` gives for each of these facts: noise and places are the same for all."""
        s, r, _ = facts.T[:, :, None, None]
        ids = replace(self, wire=None).about(0, 0, seed, step, batch)[None]
        return self.wired(np.where(ids == 0, s, np.where(ids == self.S, r + self.S, ids)))

    def bags(self, seed: int, steps: Sequence[int], batch: int) -> Bags:
        """The facts and the noise of `sample` at each of these steps, one step after the other."""
        whole, prompts = self.T <= self.N, len(steps) * batch
        tokens = np.empty((prompts, self.T), np.int32) if whole else None
        counts = None if whole else np.zeros((prompts, self.N))
        answers = np.empty(prompts, np.int32)
        for i, step in enumerate(steps):
            now = slice(i * batch, (i + 1) * batch)
            s, r, answers[now] = self.asked(seed, step, batch)
            parts = chain([np.column_stack([s, r + self.S, np.full(batch, self.EOS)])], self._noise(seed, step, batch))
            if tokens is not None:
                _place(parts, tokens[now])
            elif counts is not None:
                _count(parts, counts[now])
        return self._wired_bags(Bags(tokens, counts, answers))

    def _wired_bags(self, bags: Bags) -> Bags:
        if self.wire is None:
            return bags
        if bags.tokens is not None:
            return replace(bags, tokens=self.wire[bags.tokens].astype(np.int32))
        assert bags.counts is not None
        return replace(bags, counts=bags.counts[:, np.argsort(self.wire)])

    def asked(self, seed: int, step: int, batch: int) -> tuple[Ids, Ids, Ids]:
        """Subjects, relations and answers of a batch."""
        chosen = np.searchsorted(self.ends, generator(seed, "facts", step).random(batch), side="right")
        s, r, answers = self.known[chosen].T
        return s, r, answers

    def _noise(self, seed: int, step: int, batch: int) -> Iterator[Int[np.ndarray, "B n"]]:
        """The noise of all prompts, a few tokens of each at a time."""
        rng = generator(seed, "facts.noise", step)
        for first in range(0, self.T - 3, DRAWN_AT_ONCE):
            n = min(DRAWN_AT_ONCE, self.T - 3 - first)
            yield self.S + self.R + rng.integers(self.noise, size=(batch, n))
