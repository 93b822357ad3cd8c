"""How often letters and pairs of letters occur in a text: all that a task needs of it, so a record can carry it."""

import json
from collections import Counter
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

LARGEST_ALPHABET = 4096  # N×N tables: 128 MB each at this size
MOST = 2**53  # a count that a float holds exactly
MOST_TABLE = 256 << 20  # bytes of a table


class NoTable(ValueError):
    """What should be a table of counts is none; says in a few words why."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Occurrences of each letter of the alphabet (sorted by code point), and of each pair of neighbours."""

    alphabet: str
    letters: Int[np.ndarray, " N"]
    pairs: Int[np.ndarray, "N N"]

    @classmethod
    def of(cls, text: str, alphabet: str) -> "Counts":
        index = {character: i for i, character in enumerate(alphabet)}
        ids = np.array([index[character] for character in text])
        pairs = np.zeros((len(alphabet), len(alphabet)), dtype=np.int64)
        np.add.at(pairs, (ids[:-1], ids[1:]), 1)
        occurrences = Counter(text)
        return cls(alphabet, np.array([occurrences[character] for character in alphabet]), pairs)

    def to_bytes(self) -> bytes:
        """As JSON: the alphabet, how often each letter occurs, and first, second and number for each pair there is."""
        first, second = np.nonzero(self.pairs)
        columns = (first.tolist(), second.tolist(), self.pairs[first, second].tolist())
        table = {"alphabet": self.alphabet, "letters": self.letters.tolist(), "pairs": columns}
        return (json.dumps(table, ensure_ascii=True) + "\n").encode()

    @classmethod
    def of_bytes(cls, content: bytes) -> "Counts":
        """What `to_bytes` wrote; anything else is refused."""
        if len(content) > MOST_TABLE:
            raise NoTable(f"it is larger than {MOST_TABLE >> 20} MB")
        try:
            table = json.loads(content)
            alphabet, letters, columns = table["alphabet"], _whole(table["letters"]), table["pairs"]
            first, second, number = (_whole(column) for column in columns)
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
            raise NoTable("it is no table of a text") from None
        _refuse_odd(alphabet, letters)
        N = len(alphabet)
        if len({len(first), len(second), len(number)}) > 1 or (np.concatenate([first, second]) >= N).any():
            raise NoTable("its pairs are not of its letters")
        pairs = np.zeros((N, N), dtype=np.int64)
        pairs[first, second] = number
        return cls(alphabet, letters, pairs)._refuse_disagreement(len(number))

    def _refuse_disagreement(self, n: int) -> "Counts":
        """Every letter but the last one has a successor, and every one but the first a predecessor."""
        missing = (self.letters - self.pairs.sum(1), self.letters - self.pairs.sum(0))
        ends = all(part.min() >= 0 and part.sum() == 1 for part in missing)
        if not ends or np.count_nonzero(self.pairs) != n:
            raise NoTable("its letters and its pairs do not agree")
        return self


def _whole(numbers: object) -> Int[np.ndarray, " n"]:
    """A list of whole numbers, none of them negative or too large to be exact."""
    if not isinstance(numbers, list) or not all(type(number) is int and 0 <= number < MOST for number in numbers):
        raise ValueError
    return np.array(numbers, dtype=np.int64)


def _refuse_odd(alphabet: object, letters: Int[np.ndarray, " n"]) -> None:
    if not isinstance(alphabet, str) or not 2 <= len(alphabet) <= LARGEST_ALPHABET:
        raise NoTable(f"its alphabet has not 2 to {LARGEST_ALPHABET} letters")
    if list(alphabet) != sorted(set(alphabet)) or len(letters) != len(alphabet) or not letters.all():
        raise NoTable("its alphabet and its letters do not agree")
