r"""Byte-pair encoding: pieces of text as tokens, learned in one deterministic way.

    tokens 0 … 255     the bytes
    token 256 + i      the two tokens of merge i, one after the other

Merge i joins the pair of neighbours that is most frequent once the merges before it are done; of equally frequent pairs
the one whose ids come first. Pieces never reach across words: a run of letters, of digits, of other signs, each with
the space before it, or of white space.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise

import numpy as np
from jaxtyping import UInt16

BYTES = 256
WORD = re.compile(rb" ?[A-Za-z_]+| ?[0-9]+| ?[^\sA-Za-z0-9_]+|\s+(?!\S)|\s+")
Pair = tuple[int, int]


def words(text: bytes) -> list[bytes]:
    """The text cut into words; together they are the text."""
    return WORD.findall(text)


def learn(counts: Counter[bytes], merges: int) -> tuple[Pair, ...]:
    """The merges of words that occur so often; fewer, if the words are joined before."""
    spelled, number = [list(word) for word in counts], list(counts.values())
    pairs, where = Counter[Pair](), defaultdict[Pair, set[int]](set)
    for i, word in enumerate(spelled):
        _count(word, i, number[i], pairs, where)
    found: list[Pair] = []
    while pairs and len(found) < merges:
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        for i in sorted(where[best]):
            _count(spelled[i], i, -number[i], pairs, where)
            spelled[i] = _merged(spelled[i], best, BYTES + len(found))
            _count(spelled[i], i, number[i], pairs, where)
        found.append(best)
    return tuple(found)


def _count(word: list[int], i: int, number: int, pairs: Counter[Pair], where: defaultdict[Pair, set[int]]) -> None:
    """Adds the pairs of word i to the counts, or with a negative number takes them away."""
    for pair in pairwise(word):
        pairs[pair] += number
        (where[pair].add if number > 0 else where[pair].discard)(i)
        if not pairs[pair]:
            del pairs[pair]


def _merged(word: Sequence[int], pair: Pair, new: int) -> list[int]:
    """The word with every such pair, from the left, replaced by the new token."""
    joined: list[int] = []
    for token in word:
        if joined and (joined[-1], token) == pair:
            joined[-1] = new
        else:
            joined.append(token)
    return joined


@dataclass(frozen=True)
class Vocabulary:
    """Tokens that merges make, and texts as them."""

    merges: tuple[Pair, ...]

    @cached_property
    def pieces(self) -> tuple[bytes, ...]:
        """What each token stands for."""
        made = [bytes([i]) for i in range(BYTES)]
        for first, second in self.merges:
            made.append(made[first] + made[second])
        return tuple(made)

    @cached_property
    def _rank(self) -> dict[Pair, int]:
        return {pair: i for i, pair in enumerate(self.merges)}

    def spell(self, word: bytes) -> list[int]:
        """The tokens of one word: merges are done in their order."""
        spelled = list(word)
        while True:
            first = min((self._rank.get(pair, len(self.merges)) for pair in pairwise(spelled)), default=None)
            if first is None or first == len(self.merges):
                return spelled
            spelled = _merged(spelled, self.merges[first], BYTES + first)

    def encode(self, texts: Iterable[bytes]) -> UInt16[np.ndarray, " n"]:
        """All texts, one after the other."""
        cut = [words(text) for text in texts]
        known = {word: self.spell(word) for word in set(chain.from_iterable(cut))}
        return np.fromiter(chain.from_iterable(known[word] for one in cut for word in one), dtype=np.uint16)
