r"""The bigram task of "Birth of a Transformer" (section 3): a text's bigrams, interrupted by triggers.

    z_1 ~ π_u;   z_{t+1} = o_k if z_t = q_k, else z_{t+1} ~ π_b(· | z_t)

    tokens       T h e _ q z _ … t h _ q z …      q a trigger, z its output in this sequence
    occurrence   0 0 0 0 1 0 0 … 0 0 0 2 0 …      m at the m-th visit of a trigger
    group        g g g g f g g … g g g c g …      global, first, in_context

The outputs are new in every sequence, so `in_context` positions can be predicted only by looking back.
"""

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float, Int, UInt32
from pydantic import Field, model_validator

from engram.errors import EngramError
from engram.native import call, kernel
from engram.tasks.batch import Batch
from engram.tasks.corpus import Corpus, Sampler, Text, conditional, corpus_of, random_bits, unread, visible
from engram.values import Value, generator

Walk = tuple[Int[np.ndarray, "B T1"], Int[np.ndarray, "B T"]]
Pairs = tuple[Int[np.ndarray, "B K"], Int[np.ndarray, "B K"]]
Forced = Callable[[int, np.ndarray], np.ndarray]  # by t and z_t, for all sequences: the token that comes next, or −1


class OverText(Value):
    """A task over the letters of a text, whose positions are told apart by the visits of triggers."""

    @property
    @abstractmethod
    def table(self) -> Corpus:
        """π_u and π_b, and the alphabet."""

    @property
    def N(self) -> int:
        """How many tokens there are; none, as long as the text of a record need not be read."""
        return 0 if unread(self) else len(self.table.alphabet)

    @property
    def groups(self) -> tuple[str, ...]:
        return ("in_context", "first", "global")

    @property
    def alphabet(self) -> str:
        """The letter of every token."""
        return self.table.alphabet

    def marks(self, seed: int) -> list[str]:
        return [visible(letter) for letter in self.alphabet]


class Bigram(OverText, name="tasks.bigram.Bigram"):
    """z_{t+1} = o_k if z_t = q_k, else z_{t+1} ~ π_b(· | z_t), with K triggers q_k in sequences of T tokens.

    corpus       the text that gives π_u and π_b: shakespeare, or the path of a text file
    K            number of triggers in a sequence
    T            length of a sequence
    triggers     random: K distinct draws from π_u in every sequence;
                 fixed: the tokens of frequency rank offset+1 … offset+K, the same in all sequences
    offset       how many of the most frequent tokens are left out as fixed triggers
    outputs      uniform: o_k uniform on the vocabulary; bigram: o_k ~ π_b(· | q_k)
    no_repeat    forbids o_k = q_k

    Birth of a Transformer, section 3.
    """

    corpus: Text = "shakespeare"
    K: Annotated[int, Field(ge=1)] = 5
    T: Annotated[int, Field(ge=2, le=65536)] = 256
    triggers: Literal["random", "fixed"] = "random"
    offset: Annotated[int, Field(ge=0)] = 0
    outputs: Literal["uniform", "bigram"] = "uniform"
    no_repeat: bool = False

    @model_validator(mode="after")
    def _triggers_fit(self) -> "Bigram":
        if self.offset and self.triggers == "random":
            raise ValueError("offset: random triggers have no rank offset; set triggers='fixed', or offset=0")
        wrong = None if unread(self) else self._too_many(corpus_of(self.corpus))
        if wrong is not None:
            raise ValueError(f"K: {wrong}")
        return self

    def _too_many(self, table: Corpus) -> str | None:
        """What is wrong if there are more triggers than letters."""
        if self.offset + self.K <= len(table.alphabet):
            return None
        given = f"K={self.K}" + (f" with offset={self.offset}" if self.offset else "")
        return f"{given} needs more than the {len(table.alphabet)} tokens of the vocabulary; lower it"

    @property
    def table(self) -> Corpus:
        """π_u and π_b of the corpus, and its alphabet."""
        table = corpus_of(self.corpus)
        wrong = self._too_many(table)  # a task that a record holds is made before its text is read
        if wrong is not None:
            raise EngramError(f"task.K: {wrong}")
        return table

    @property
    def fixed_triggers(self) -> Int[np.ndarray, " K"] | None:
        """The triggers when they are the same in all sequences."""
        return self.table.ranks[self.offset : self.offset + self.K] if self.triggers == "fixed" else None

    @cached_property
    def output_law(self) -> Float[np.ndarray, "N N"]:
        """Row q: the law of the output of trigger q."""
        pi_u, itself = self.table.unigram, np.eye(self.N, dtype=bool)
        law = self.table.bigram if self.outputs == "bigram" else np.full((self.N, self.N), 1 / self.N)
        # A token that is followed by itself only has no other output in the bigram: it falls back on π_u.
        return conditional(np.where(itself, 0.0, law), np.where(itself, 0.0, pi_u)) if self.no_repeat else law

    @cached_property
    def _samplers(self) -> dict[str, Sampler]:
        return text_samplers(self.table) | {"output": Sampler.of(self.output_law)}

    def draw_triggers(self, rng: np.random.Generator, batch: int) -> Int[np.ndarray, "B K"]:
        """Distinct draws from π_u are the K first of an exponential race with rates π_u."""
        if self.fixed_triggers is not None:
            return np.broadcast_to(self.fixed_triggers, (batch, self.K))
        arrival = rng.exponential(size=(batch, self.N)) / self.table.unigram
        return np.argpartition(arrival, self.K - 1, axis=1)[:, : self.K]

    def draw_pairs(self, rng: np.random.Generator, batch: int) -> Pairs:
        """The triggers q_k of each sequence and their outputs o_k."""
        triggers = self.draw_triggers(rng, batch)
        return triggers, self._samplers["output"].draw(triggers, random_bits(rng, triggers.shape))

    def sample(self, seed: int, step: int, batch: int) -> Batch:
        """A batch with the groups in_context (second and later visits of triggers), first (first visits), global."""
        rng = generator(seed, "data", step)
        triggers, outputs = self.draw_pairs(rng, batch)
        jumps = np.full((batch, self.N), -1)  # what a token forces next: o_k at q_k, −1 elsewhere
        np.put_along_axis(jumps, triggers, outputs, axis=1)
        bits = random_bits(rng, (self.T + 1, batch))
        z, occurrence = self._walk(jumps, bits) if kernel() is None else self._native_walk(jumps, bits)
        return batch_of(z, occurrence)

    def _native_walk(self, jumps: Int[np.ndarray, "B N"], bits: UInt32[np.ndarray, "T1 B"]) -> Walk:
        """The same, compiled: sequence by sequence."""
        (B, N), T = jumps.shape, len(bits) - 1
        z, occurrence = np.empty((B, T + 1), dtype=np.int64), np.empty((B, T), dtype=np.int64)
        arrays = (self._samplers["start"].cuts, self._samplers["next"].cuts, jumps, bits, z, occurrence)
        call("walk", (B, T, N, *arrays))
        return z, occurrence

    def _walk(self, jumps: Int[np.ndarray, "B N"], bits: UInt32[np.ndarray, "T1 B"]) -> Walk:
        """Tokens, and m at the m-th visit of a trigger: all sequences side by side, one position at a time."""
        sequence = np.arange(len(jumps))
        z = walk(self._samplers, bits, lambda t, now: jumps[sequence, now])
        tokens = z[:, :-1]
        forces = np.take_along_axis(jumps, tokens, axis=1) >= 0
        return z, occurrences(tokens, self.N) * forces


def text_samplers(table: Corpus) -> dict[str, Sampler]:
    """start: π_u; next: π_b(· | i) in row i."""
    return {"start": Sampler.of(table.unigram[None, :]), "next": Sampler.of(table.bigram)}


def walk(samplers: dict[str, Sampler], bits: UInt32[np.ndarray, "T1 B"], forced: Forced) -> Int[np.ndarray, "B T1"]:
    """z_1 ~ π_u; z_{t+1} is what z_t forces at t where that is ≥ 0, else z_{t+1} ~ π_b(· | z_t)."""
    z = np.empty(bits.shape, dtype=np.int64)
    z[0] = samplers["start"].draw(np.zeros_like(z[0]), bits[0])
    for t in range(len(bits) - 1):
        jump = forced(t, z[t])
        z[t + 1] = np.where(jump >= 0, jump, samplers["next"].draw(z[t], bits[t + 1]))
    return np.ascontiguousarray(z.T)


def batch_of(z: Int[np.ndarray, "B T1"], occurrence: Int[np.ndarray, "B T"]) -> Batch:
    """Inputs and targets, grouped by visits of triggers."""
    groups = {"in_context": occurrence >= 2, "first": occurrence == 1, "global": occurrence == 0}
    return Batch(z[:, :-1], z[:, 1:], groups)


def occurrences(tokens: Int[np.ndarray, "B T"], N: int) -> Int[np.ndarray, "B T"]:
    """How often the token at t has been visited up to and including t.

    A stable sort brings equal tokens of a sequence together in order of position: the count is the place in the run.
    """
    B, T = tokens.shape
    keys = (tokens + N * np.arange(B)[:, None]).ravel()
    order = np.argsort(keys, kind="stable")
    place, begins = np.arange(B * T), np.r_[True, np.diff(keys[order]) > 0]
    counts = np.empty(B * T, dtype=np.int64)
    counts[order] = place - np.maximum.accumulate(np.where(begins, place, 0)) + 1
    return counts.reshape(B, T)
