"""What every memory can do: store pairs, score, recall, and measure its margin."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.embeddings import Law
from engram.errors import EngramError
from engram.memory.check import check_names, check_room, check_size, several
from engram.memory.names import Names

Name = Hashable
Pairs = Mapping[Any, Name] | Iterable[tuple[Name, Name]]
Same = TypeVar("Same", bound="Memory")


class Memory(ABC):
    """Pairs z → y = f(z) of names with embeddings e_z and u_y; asked about e_z, it scores every known y.

    Embeddings are drawn from `law` (engram.embeddings.directions) when a name is first used, or given by `give`.
    A subclass says how pairs are written (`_write`) and how input vectors are answered (`respond`).
    """

    def __init__(self, d: int, *, seed: int = 0, law: Law = "sphere"):
        check_size(d, seed)
        self.d, self.seed = d, seed
        self.keys, self.values = Names(d, law, seed, "E"), Names(d, law, seed, "U")
        self.pairs: dict[Name, Name] = {}

    def give(
        self: Same, E: Tensor, U: Tensor, keys: Iterable[Name] | None = None, values: Iterable[Name] | None = None
    ) -> Same:
        """Take E (N×d) and U (M×d) as embeddings, before anything is stored; keys and values default to 0, 1, …."""
        if self.pairs:
            raise EngramError(f"embeddings: {len(self.pairs)} pairs are already stored; give vectors to a new memory")
        with self._whole_or_not():
            self.keys.give(E, keys)
            self.values.give(U, values)
        return self

    def store(self, pairs: Pairs) -> None:
        """Write z → y for every pair; a key has one value only."""
        fresh = self._accepted(pairs)
        if not fresh:
            return
        with self._whole_or_not():
            self._hear(fresh)
            self.values.add(fresh.values())
            self.pairs = self.pairs | fresh
            self._write(fresh)

    @contextmanager
    def _whole_or_not(self) -> Iterator[None]:
        """A change that fails, or is interrupted by Ctrl-C in a long training, leaves the memory as it was."""
        before = {field: x.copy() if isinstance(x, Names) else x for field, x in vars(self).items()}
        try:
            yield
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    def _accepted(self, pairs: Pairs) -> dict[Name, Name]:
        """The pairs that are not stored yet; no pairs at all, or a key with two values, are refused."""
        fresh: dict[Name, Name] = {}
        for key, value in list_pairs(pairs):
            known = fresh.get(key, self.pairs.get(key, value))
            if known != value:
                conflict = f"{key!r} → {value!r} conflicts with {key!r} → {known!r}"
                raise EngramError(f"store: {conflict}; use edit(key, value) of a linear memory, or a new memory")
            fresh[key] = known
        return {key: value for key, value in fresh.items() if key not in self.pairs}

    def _hear(self, keys: Iterable[Name]) -> None:
        """Give the names in these keys their vectors."""
        self.keys.add(keys)

    def inputs(self, keys: Iterable[Name]) -> Float[Tensor, "n d"]:
        """e_z, the vector with which each key asks."""
        return self.keys[keys]

    @abstractmethod
    def _write(self, pairs: dict[Name, Name]) -> None:
        """Add these pairs to what is stored; their names are known and they stand in `self.pairs` already.

        New tensors take the place of old ones, which are not changed: so a write that fails can be taken back.
        """

    @abstractmethod
    def respond(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n M"]:
        """The score of every known value for each input vector."""

    def scores(self, keys: Iterable[Name] | None = None) -> Float[Tensor, "n M"]:
        """One row for each key (all stored ones by default), one column for each value in the order of storing."""
        stored = self.stored()
        asked = stored if keys is None else several("scores", keys)
        check_room("scores", 2, len(asked), len(self.values))
        return self.respond(self.inputs(asked))

    def recall(self, key: Name) -> Name:
        """argmax_y score_y: the value with the largest score."""
        return list(self.values)[int(self.scores([key])[0].argmax())]

    def margin(self, *keys: Name) -> float:
        """min_z (score_{f(z)} − max_{y ≠ f(z)} score_y) over the keys (all stored ones by default).

        Infinite if there is no wrong value.
        """
        asked = list(keys) or self.stored()
        scores, right = self.scores(asked), self._right(asked)[:, None]
        best_wrong = scores.scatter(1, right, -torch.inf).amax(1)
        return float((scores.gather(1, right)[:, 0] - best_wrong).min())

    def accuracy(self) -> float:
        """The share of stored pairs that are recalled."""
        return float((self.scores().argmax(1) == self._right(self.pairs)).double().mean())

    def stored(self) -> list[Name]:
        """The keys of all pairs; an empty memory is refused."""
        if not self.pairs:
            raise EngramError("recall: nothing is stored yet; call store({key: value, …}) first")
        return list(self.pairs)

    def _right(self, keys: Iterable[Name]) -> Int[Tensor, " n"]:
        """f(z): the column of the right value for each key."""
        asked = list(keys)
        for key in asked:
            if key not in self.pairs:
                raise EngramError(f"margin: no pair is stored for {key!r}; store({{key: value}}) adds one")
        return torch.tensor(self.values.rows(self.pairs[key] for key in asked))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(d={self.d}, {len(self.pairs)} pairs)"


def list_pairs(pairs: object) -> list[tuple[Name, Name]]:
    """The pairs one by one; what is not a pair is refused."""
    if not isinstance(pairs, Iterable):
        raise EngramError(f"store: got {pairs!r}, not pairs; write store({{key: value, …}}) or [(key, value), …]")
    given = list(pairs.items() if isinstance(pairs, Mapping) else pairs)
    if not given:
        raise EngramError("store: no pairs were given; write store({key: value, …})")
    for pair in given:
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise EngramError(f"store: {pair!r} is not a pair; write store({{key: value, …}}) or [(key, value), …]")
        check_names(*pair)
    return given
