r"""hop_k: look where the current letter stood last, go to what came after it, and do this k times.

    find(i) = 1 + the last j < i with X_j = X_i;      hop_k(X)_i = X at find^k(i), undefined where a step finds nothing

    tokens     2 a b c a d b c b          two hops are asked for; the letters are X
    find       . . . . 1 . 2 3 6          counted from 0
    find²      . . . . . . . 1 3
    targets    _ ~ ~ ~ ~ ~ ~ b a          _ at the hop token, ~ where hop_k is undefined

k = 0 copies the current letter, k = 1 is the induction head. No two neighbours are equal.
"""

from typing import Annotated

import numpy as np
from jaxtyping import Int
from pydantic import Field, model_validator

from engram.tasks.batch import Batch, letter_marks
from engram.values import Value, generator


class Hops(Value, name="tasks.hops.Hops"):
    """A hop token k, then letters; the target at every letter is hop_k.

    letters    size of the alphabet
    length     letters in a string; T is one more
    most       the largest number of hops that has a token
    hops       the numbers of hops that are asked for, equally often; empty: all of 0 … most

    Ids are in the order hop tokens 0 … most, letters, ~ (undefined), _ (blank). Strings are uniform among those without
    equal neighbours, and the same for every `hops`.

    Sanford, Hsu and Telgarsky (2024), "Transformers, parallel computation, and logarithmic depth", section 4.
    """

    letters: Annotated[int, Field(ge=2, le=4096)] = 4
    length: Annotated[int, Field(ge=1, le=65535)] = 98
    most: Annotated[int, Field(ge=0, le=1024)] = 16
    hops: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _hops_have_tokens(self) -> "Hops":
        if any(not 0 <= k <= self.most for k in self.hops) or list(self.hops) != sorted(set(self.hops)):
            raise ValueError(f"hops: must be increasing numbers within 0 … most = {self.most}; got {list(self.hops)}")
        return self

    @property
    def T(self) -> int:
        return self.length + 1

    @property
    def N(self) -> int:
        return self.most + 1 + self.letters + 2

    @property
    def first_letter(self) -> int:
        """The id of the first letter; those below are hop tokens."""
        return self.most + 1

    @property
    def undefined(self) -> int:
        """~, the target where hop_k finds nothing."""
        return self.N - 2

    @property
    def blank(self) -> int:
        """_, the target at the hop token."""
        return self.N - 1

    @property
    def asked(self) -> tuple[int, ...]:
        """The numbers of hops that are asked for."""
        return self.hops or tuple(range(self.most + 1))

    @property
    def groups(self) -> tuple[str, ...]:
        """The same for every `hops`."""
        return ("blank", "undefined", *(f"hop{k}" for k in range(self.most + 1)))

    def marks(self, seed: int) -> list[str]:
        return [*map(str, range(self.most + 1)), *letter_marks(self.letters), "~", "_"]

    def sample(self, seed: int, step: int, batch: int) -> Batch:
        """A batch with the groups blank, undefined and hop0, hop1, …: a defined target in a string that asks for k.

        Hops are drawn last: the same seed and step give the same strings whatever is asked for.
        """
        rng = generator(seed, "data", step)
        letters = strings(rng, batch, self.length, self.letters)
        k = np.array(self.asked)[rng.integers(len(self.asked), size=batch)]
        return self.ask(letters, k)

    def ask(self, letters: Int[np.ndarray, "B n"], k: Int[np.ndarray, " B"]) -> Batch:
        """The batch in which string b, of letters from 0, is asked for k_b hops."""
        tokens = np.concatenate([k[:, None], letters + self.first_letter], axis=1)
        targets = self.oracle(tokens)
        kind = np.where(targets == self.undefined, -1, k[:, None])
        groups = {"blank": targets == self.blank, "undefined": targets == self.undefined}
        groups |= {f"hop{j}": (kind == j) & (targets != self.blank) for j in range(self.most + 1)}
        return Batch(tokens, targets, groups)

    def has_answers(self, tokens: Int[np.ndarray, " t"]) -> bool:
        """Whether a sequence of any length asks for hops: a hop token, then letters."""
        letters = tokens[1:] - self.first_letter
        return bool(0 <= tokens[0] <= self.most and ((letters >= 0) & (letters < self.letters)).all())

    def oracle(self, tokens: Int[np.ndarray, "B T"]) -> Int[np.ndarray, "B T"]:
        """What is to be predicted, from the tokens alone."""
        letters, k = tokens[:, 1:], tokens[:, 0]
        at = found(letters, k)
        hopped = np.where(at >= 0, np.take_along_axis(letters, np.maximum(at, 0), axis=1), self.undefined)
        return np.concatenate([np.full((len(tokens), 1), self.blank), hopped], axis=1)


def strings(rng: np.random.Generator, batch: int, length: int, letters: int) -> Int[np.ndarray, "B n"]:
    """Letters from 0, uniform among all strings without equal neighbours: every letter is the last one plus a shift."""
    shifts = rng.integers(1, letters, size=(batch, length))
    shifts[:, 0] = rng.integers(letters, size=batch)
    return np.cumsum(shifts, axis=1) % letters


def found(letters: Int[np.ndarray, "B n"], k: int | Int[np.ndarray, " B"]) -> Int[np.ndarray, "B n"]:
    """find^k(i) for every i, counted from 0; −1 where it is undefined. k is one number, or one for every string."""
    step = _found_once(letters)
    at = np.broadcast_to(np.arange(letters.shape[1]), letters.shape)
    hops = np.broadcast_to(np.asarray(k), len(letters))[:, None]
    for done in range(int(hops.max(initial=0))):
        further = np.where(at >= 0, np.take_along_axis(step, np.maximum(at, 0), axis=1), -1)
        at = np.where(done < hops, further, at)
    return at


def _found_once(letters: Int[np.ndarray, "B n"]) -> Int[np.ndarray, "B n"]:
    """find(i): one after the last earlier visit of the same letter, or −1.

    A stable sort brings equal letters of a string together in order of position: the last visit is the one before.
    """
    B, n = letters.shape
    keys = (letters + (letters.max(initial=0) + 1) * np.arange(B)[:, None]).ravel()
    order = np.argsort(keys, kind="stable")
    same = keys[order[1:]] == keys[order[:-1]]
    after = np.full(B * n, -1)
    after[order[1:][same]] = order[:-1][same] % n + 1
    return after.reshape(B, n)
