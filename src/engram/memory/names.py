"""Names and their vectors: any hashable name gets a random direction when it is first used."""

from collections.abc import Hashable, Iterable, Iterator
from itertools import islice

import torch
from jaxtyping import Float
from torch import Tensor

from engram.embeddings import Law, directions
from engram.errors import EngramError, did_you_mean
from engram.memory.check import check_names, check_room


class Names:
    """A growing table of names; row i of `vectors` is the embedding of the i-th name.

    Vectors are drawn from (law, d, seed, stream), so the same names in the same order have the same vectors; or they
    are given, one row per name, and then no name can be added.
    """

    def __init__(self, d: int, law: Law, seed: int, stream: str):
        check_room(f"a row of {stream}", d)
        self.d, self.seed, self.stream = d, seed, stream
        self.law: Law = law
        self._rows: dict[Hashable, int] = {}
        self._drawn = directions(law, 0, d, seed, stream, torch.float64)  # no rows yet; refuses an unknown law
        self._fixed = False

    @property
    def vectors(self) -> Float[Tensor, "n d"]:
        return self._drawn[: len(self._rows)]

    def give(self, vectors: Tensor, names: Iterable[Hashable] | None = None) -> None:
        """Take these vectors, as float64; names default to 0, 1, …."""
        listed = list(range(vectors.shape[0] if vectors.ndim else 0) if names is None else names)
        check_names(*listed)
        rows = {name: i for i, name in enumerate(listed)}
        if len(rows) < len(listed):
            raise EngramError(f"embeddings: names of {self.stream} repeat; each row needs a name of its own")
        if vectors.shape != (len(rows), self.d):
            needed = f"must have shape ({len(rows)}, {self.d}), one row per name"
            raise EngramError(f"embeddings: {self.stream} {needed}; got shape {tuple(vectors.shape)}")
        if not torch.isfinite(vectors).all():
            raise EngramError(f"embeddings: {self.stream} contains NaN or infinite entries; every entry must be finite")
        self._rows, self._drawn, self._fixed = rows, vectors.detach().to(torch.float64, copy=True), True

    def add(self, names: Iterable[Hashable]) -> None:
        listed = list(names)
        check_names(*listed)
        fresh = [name for name in dict.fromkeys(listed) if name not in self._rows]
        if fresh and self._fixed:
            raise EngramError(f"embeddings: {fresh[0]!r} has no vector in the given {self.stream}; give it a row")
        n = len(self) + len(fresh)
        if n > len(self._drawn):
            self._drawn = self._draw(n)
        self._rows |= {name: len(self._rows) + i for i, name in enumerate(fresh)}

    def _draw(self, n: int) -> Float[Tensor, "rows d"]:
        """At least n rows; twice as many as before, so that names added one by one do not redraw every time."""
        rows = max(n, 2 * len(self._drawn))
        if self.law == "orthonormal":
            rows = max(n, min(rows, self.d))
        check_room(f"vectors {self.stream}", rows, self.d)
        return directions(self.law, rows, self.d, self.seed, self.stream, torch.float64)

    def rows(self, names: Iterable[Hashable]) -> list[int]:
        return [self.row(name) for name in names]

    def row(self, name: Hashable) -> int:
        check_names(name)
        if name in self._rows:
            return self._rows[name]
        hint = did_you_mean(str(name), [str(known) for known in islice(self._rows, 1000)])
        raise EngramError(f"recall: nothing is stored under {name!r}; {hint}{len(self)} names are known")

    def copy(self) -> "Names":
        """A table of its own: names added here later are unknown there."""
        other = Names(self.d, self.law, self.seed, self.stream)
        other._rows, other._drawn, other._fixed = dict(self._rows), self._drawn, self._fixed
        return other

    def __contains__(self, name: Hashable) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, names: Iterable[Hashable]) -> Float[Tensor, "n d"]:
        return self.vectors[self.rows(names)]
