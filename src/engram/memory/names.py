"""Names and their vectors: any hashable name gets a random direction the first time it is heard."""

from collections.abc import Hashable, Iterable

import torch
from jaxtyping import Float
from torch import Tensor

from engram.embeddings import Law, directions
from engram.errors import EngramError, did_you_mean


class Names:
    """A growing table of names; row i of `vectors` is the embedding of the i-th name.

    Vectors are drawn from (law, d, seed, stream), so the same names in the same order have the same vectors; or they
    are given, one row a name, and then no name can be added.
    """

    def __init__(self, d: int, law: Law, seed: int, stream: str):
        self.d, self.law, self.seed, self.stream = d, law, seed, stream
        self._rows: dict[Hashable, int] = {}
        self.vectors = torch.empty(0, d, dtype=torch.float64)
        self._fixed = False

    def give(self, vectors: Float[Tensor, "n d"], names: Iterable[Hashable]) -> None:
        """Vectors of one's own, in float64 from here on."""
        rows = {name: i for i, name in enumerate(names)}
        if vectors.shape != (len(rows), self.d):
            wanted = f"({len(rows)}, {self.d})"
            raise EngramError(f"embeddings: {self.stream} has shape {tuple(vectors.shape)}; {wanted} is wanted, one row a name")
        if not torch.isfinite(vectors).all():
            raise EngramError(f"embeddings: {self.stream} holds NaN or infinite entries; every entry must be finite")
        self._rows, self.vectors, self._fixed = rows, vectors.to(torch.float64), True

    def add(self, names: Iterable[Hashable]) -> None:
        fresh = [name for name in dict.fromkeys(names) if name not in self._rows]
        if not fresh:
            return
        if self._fixed:
            raise EngramError(f"embeddings: {fresh[0]!r} has no vector in the given {self.stream}; give one row a name")
        self._rows |= {name: len(self._rows) + i for i, name in enumerate(fresh)}
        self.vectors = directions(self.law, len(self._rows), self.d, self.seed, self.stream, torch.float64)

    def rows(self, names: Iterable[Hashable]) -> list[int]:
        return [self.row(name) for name in names]

    def row(self, name: Hashable) -> int:
        if name in self._rows:
            return self._rows[name]
        hint = did_you_mean(str(name), [str(known) for known in self._rows])
        raise EngramError(f"recall: nothing is stored under {name!r}; {hint}{len(self)} names are known")

    def __contains__(self, name: Hashable) -> bool:
        return name in self._rows

    def __iter__(self):
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, names: Iterable[Hashable]) -> Float[Tensor, "n d"]:
        return self.vectors[self.rows(names)]
