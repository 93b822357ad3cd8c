"""What every memory can do: store pairs, give scores, recall, tell its margin."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from engram.embeddings import Law
from engram.errors import EngramError
from engram.memory.names import Names

Name = Hashable
Pairs = Mapping[Name, Name] | Iterable[tuple[Name, Name]]


class Memory(ABC):
    """Pairs z → y of names, embedded as e_z and u_y; asked about e_z, it scores every known y.

    A memory of one's own says how it writes pairs (`_write`) and how it answers vectors (`respond`).
    """

    def __init__(self, d: int, seed: int = 0, law: Law = "sphere"):
        if d < 1:
            raise EngramError(f"d: a memory needs at least one dimension; got {d}")
        self.d, self.seed = d, seed
        self.keys, self.values = Names(d, law, seed, "E"), Names(d, law, seed, "U")
        self.pairs: dict[Name, Name] = {}

    def store(self, pairs: Pairs) -> None:
        """Write z → y for every pair; a key can stand for one value only."""
        fresh = self._accepted(pairs)
        self.keys.add(fresh)
        self.values.add(fresh.values())
        self.pairs |= fresh
        self._write(fresh)

    def _accepted(self, pairs: Pairs) -> dict[Name, Name]:
        listed = list(pairs.items() if isinstance(pairs, Mapping) else pairs)
        if not listed:
            raise EngramError("store: no pairs were given; write store({key: value, …})")
        fresh: dict[Name, Name] = {}
        for key, value in listed:
            known = fresh.get(key, self.pairs.get(key, value))
            if known != value:
                raise EngramError(f"store: {key!r} → {value!r} conflicts with {key!r} → {known!r}; edit(key, value) rewrites a pair")
            fresh[key] = value
        return {key: value for key, value in fresh.items() if key not in self.pairs}

    @abstractmethod
    def _write(self, pairs: dict[Name, Name]) -> None:
        """Add these pairs, whose names are known already, to what is stored."""

    @abstractmethod
    def respond(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n M"]:
        """A score of every known value for each input vector."""

    def scores(self, keys: Iterable[Name] | None = None) -> Float[Tensor, "n M"]:
        """Rows: the keys (all stored ones by default). Columns: the values, in the order they came."""
        return self.respond(self.keys[self.pairs if keys is None else keys])

    def recall(self, key: Name) -> Name:
        """The value with the largest score."""
        return list(self.values)[int(self.scores([key])[0].argmax())]

    def margin(self, key: Name | None = None) -> float:
        """Score of the right value minus the best wrong one; without a key the least over all stored pairs."""
        asked = list(self.pairs) if key is None else [key]
        right = torch.tensor(self.values.rows(self._right(k) for k in asked))[:, None]
        scores = self.scores(asked)
        best_wrong = scores.scatter(1, right, -torch.inf).amax(1)
        return float((scores.gather(1, right)[:, 0] - best_wrong).min())

    def accuracy(self) -> float:
        """The share of stored pairs that are recalled."""
        right = torch.tensor(self.values.rows(self.pairs.values()))
        return float((self.scores().argmax(1) == right).double().mean())

    def _right(self, key: Name) -> Name:
        self.keys.row(key)  # explains an unknown key
        return self.pairs[key]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(d={self.d}, {len(self.pairs)} pairs)"
