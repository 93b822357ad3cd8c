"""±1 patterns as minima of E(x) = −Σ_μ F(ξ_μ · x): Hopfield's memory, dense memories, the exponential memory.

F(t) = tⁿ, plain and not rectified (n = 2: Hopfield; n > 2: Krotov and Hopfield), or F(t) = exp(t) (Demircigil et al.).
A bit takes the sign of drive_i = Σ_μ F(ξ_μ · x | x_i = +1) − F(ξ_μ · x | x_i = −1), and stays where that is 0. With
o_μ = ξ_μ · x all bits are driven by two sums, and for n = 2 this is 4 (Σ_μ ξ_μi o_μ − N x_i): a zero diagonal.

    drive_i = Σ_μ ξ_μi A(o_μ) + x_i Σ_μ B(o_μ),   A(o) = (F(o+2) − F(o−2))/2,   B(o) = F(o) − (F(o+2) + F(o−2))/2
"""

from collections.abc import Hashable, Iterable, Mapping, Sized
from math import cosh, log, sinh
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from engram.embeddings import directions
from engram.errors import EngramError, did_you_mean

Degree = int | Literal["exp"]
Cue = Hashable | Tensor | np.ndarray
MOST_ENTRIES = 2**27  # one gigabyte of patterns


def _halves(o: Tensor, degree: Degree) -> tuple[Tensor, Tensor]:
    """A(o) and B(o); those of exp in units of exp(max o), which changes no sign and cannot overflow."""
    if degree == "exp":
        w = (o - o.amax(-1, keepdim=True)).exp()
        return sinh(2) * w, (1 - cosh(2)) * w
    if degree == 2:  # twice as fast as the general line, which gives the same
        return 4 * o, torch.full_like(o, -4)
    up, down = (o + 2) ** degree, (o - 2) ** degree
    return (up - down) / 2, o**degree - (up + down) / 2


def drive(xi: Float[Tensor, "N d"], x: Float[Tensor, "*batch d"], degree: Degree = 2) -> Float[Tensor, "*batch d"]:
    """What pushes each bit of x, were it updated alone; a sum over patterns for F = tⁿ."""
    A, B = _halves(x @ xi.mT, degree)
    return A @ xi + x * B.sum(-1, keepdim=True)


def synchronous(
    xi: Float[Tensor, "N d"], x: Float[Tensor, "*batch d"], degree: Degree = 2
) -> Float[Tensor, "*batch d"]:
    """All bits at once; can end in a cycle of two states."""
    h = drive(xi, x, degree)
    return torch.where(h == 0, x, h.sign())


def asynchronous(
    xi: Float[Tensor, "N d"], x: Float[Tensor, "n d"], degree: Degree = 2, bits: Iterable[int] | None = None
) -> Float[Tensor, "n d"]:
    """One bit after the other, from the first to the last by default: the energy never rises."""
    x = x.clone()
    o = x @ xi.mT
    for i in range(xi.shape[1]) if bits is None else bits:
        A, B = _halves(o, degree)
        h = A @ xi[:, i] + x[:, i] * B.sum(-1)
        flipped = h * x[:, i] < 0
        if flipped.any():
            o[flipped] -= 2 * x[flipped, i, None] * xi[:, i]
            x[flipped, i] *= -1
    return x


def settle(
    xi: Float[Tensor, "N d"], x: Float[Tensor, "n d"], degree: Degree = 2, sweeps: int = 1000
) -> Float[Tensor, "n d"]:
    """Asynchronous sweeps until nothing moves; a row that stands still is not swept again."""
    x, moving = x.clone(), torch.arange(len(x))
    for _ in range(sweeps):
        after = asynchronous(xi, x[moving], degree)
        moved = (after != x[moving]).any(1)
        x[moving] = after
        moving = moving[moved]
        if not len(moving):
            break
    return x


def energy(xi: Float[Tensor, "N d"], x: Float[Tensor, "*batch d"], degree: Degree = 2) -> Float[Tensor, "*batch"]:
    """E(x) = −Σ_μ (ξ_μ · x)ⁿ; for exp, −log Σ_μ exp(ξ_μ · x), which falls where E falls and does not overflow."""
    o = x @ xi.mT
    return -o.logsumexp(-1) if degree == "exp" else -(o**degree).sum(-1)


class Hopfield:
    """Patterns that a noisy cue falls back to; plain names get random patterns.

    >>> m = Hopfield(d=200, seed=0)
    >>> m.store(["France", "Japan", "Peru"])
    >>> m.recall(m.noisy("Peru", flips=60))
    'Peru'
    """

    def __init__(self, d: int, seed: int = 0, degree: Degree = 2):
        if d < 2:
            raise EngramError(f"d: patterns need at least two bits; got {d}")
        if degree != "exp" and not (isinstance(degree, int) and degree >= 2 and degree * log(d + 2) < 600):
            most = int(600 / log(d + 2))  # (d + 2)ⁿ must stay a finite number
            raise EngramError(f"degree: {degree!r} is not allowed; write 2 … {most} (for d={d}), or 'exp'")
        self.d, self.seed = d, seed
        self.degree: Degree = degree
        self.xi: Float[Tensor, "N d"] = torch.empty(0, d, dtype=torch.float64)
        self._rows: dict[Hashable, int] = {}

    def store(self, patterns: Mapping[Hashable, Tensor | np.ndarray] | Iterable[Hashable]) -> None:
        """Names, which get random patterns; or {name: pattern} with patterns of ±1."""
        given = self._accepted(patterns)
        vectors = {name: self._pattern(p) for name, p in given.items() if p is not None}
        for name, vector in vectors.items():
            if name in self._rows and not torch.equal(self.xi[self._rows[name]], vector):
                raise EngramError(f"store: {name!r} already has another pattern; store this one under another name")
        fresh, N = [name for name in given if name not in self._rows], len(self._rows)
        drawn = directions("signs", N + len(fresh), self.d, self.seed, "xi", torch.float64)
        self.xi = torch.stack([*self.xi, *(vectors.get(name, drawn[N + i]) for i, name in enumerate(fresh))])
        self._rows |= {name: N + i for i, name in enumerate(fresh)}

    def _accepted(self, patterns: Mapping[Hashable, Any] | Iterable[Hashable]) -> dict[Hashable, Any]:
        """Names with their patterns, None where it is to be drawn."""
        how = "write store([name, …]) or store({name: pattern, …})"
        if isinstance(patterns, str | Tensor | np.ndarray):
            raise EngramError(f"store: a {type(patterns).__name__} came; {how}")
        listed, most = patterns if isinstance(patterns, Sized) else list(patterns), MOST_ENTRIES // self.d
        if not len(listed):
            raise EngramError(f"store: no patterns were given; {how}")
        if len(self._rows) + len(listed) > most:
            raise EngramError(
                f"store: {len(listed)} more patterns do not fit; the most for d={self.d} is {most} in all"
            )
        return dict(listed) if isinstance(listed, Mapping) else dict.fromkeys(listed)

    def __getitem__(self, name: Hashable) -> Float[Tensor, " d"]:
        """The pattern stored under a name."""
        if name in self._rows:
            return self.xi[self._rows[name]]
        hint = did_you_mean(str(name), [str(known) for known in self._rows])
        raise EngramError(f"recall: nothing is stored under {name!r}; {hint}{len(self._rows)} names are known")

    def noisy(self, name: Hashable, flips: int, draw: int = 0) -> Float[Tensor, " d"]:
        """The pattern with some of its bits flipped, chosen at random."""
        if not 0 <= flips <= self.d:
            raise EngramError(f"flips: {flips} bits cannot be flipped; allowed are 0 … {self.d}")
        x = self[name].clone()
        x[flipped_bits(1, self.d, flips, self.seed, f"flips{draw}")[0]] *= -1
        return x

    def scores(self, cue: Cue) -> Float[Tensor, " N"]:
        """Overlap ξ_μ · x / d with every stored pattern, in the order they came."""
        return self.xi @ self._vector(cue) / self.d

    def update(self, cue: Cue) -> Float[Tensor, " d"]:
        """One synchronous step."""
        return synchronous(self.xi, self._vector(cue), self.degree)

    def sweep(self, cue: Cue) -> Float[Tensor, " d"]:
        """One asynchronous step of every bit, from the first to the last."""
        return asynchronous(self.xi, self._vector(cue)[None], self.degree)[0]

    def settle(self, cue: Cue) -> Float[Tensor, " d"]:
        """The fixed point that asynchronous sweeps lead to."""
        return settle(self.xi, self._vector(cue)[None], self.degree)[0]

    def recall(self, cue: Cue) -> Hashable:
        """The name whose pattern is nearest to where the cue settles."""
        return list(self._rows)[int(self.scores(self.settle(cue)).argmax())]

    def margin(self, name: Hashable | None = None) -> float:
        """The least ξ_i · drive_i over bits, without a name over all patterns; 1 for a pattern alone, stable if > 0."""
        xi = self._stored if name is None else self[name][None]
        alone = drive(xi[:1], xi[0], self.degree)[0].abs()  # F(d) − F(d−2), in the same units
        return float((xi * drive(self.xi, xi, self.degree)).min() / alone)

    def accuracy(self) -> float:
        """The share of stored patterns that one update leaves as they are."""
        xi = self._stored
        return float((synchronous(xi, xi, self.degree) == xi).all(1).double().mean())

    def energy(self, cue: Cue) -> float:
        return float(energy(self.xi, self._vector(cue), self.degree))

    @property
    def _stored(self) -> Float[Tensor, "N d"]:
        if not len(self.xi):
            raise EngramError("recall: nothing is stored yet; write store([name, …]) first")
        return self.xi

    def _vector(self, cue: Cue) -> Float[Tensor, " d"]:
        self._stored  # noqa: B018 (explains an empty memory)
        return self._pattern(cue) if isinstance(cue, Tensor | np.ndarray) else self[cue]

    def _pattern(self, given: object) -> Float[Tensor, " d"]:
        try:
            x = torch.as_tensor(given)
        except (TypeError, ValueError, RuntimeError):
            raise EngramError(f"pattern: {given!r:.60} is no vector; {self.d} entries of ±1 are wanted") from None
        if x.shape != (self.d,):
            raise EngramError(f"pattern: shape {tuple(x.shape)} came; ({self.d},) is wanted, d={self.d} entries of ±1")
        x = x.to(torch.float64)
        if not (x.abs() == 1).all():
            wrong = float(x[x.abs() != 1][0])
            raise EngramError(f"pattern: entry {wrong:g} came; every entry must be +1 or −1")
        return x

    def __repr__(self) -> str:
        return f"Hopfield(d={self.d}, degree={self.degree!r}, {len(self._rows)} patterns)"


def flipped_bits(n: int, d: int, flips: int, seed: int, name: str) -> Tensor:
    """Row by row the indices of `flips` different bits, chosen at random."""
    return directions("gaussian", n, d, seed, name).argsort(1)[:, :flips]
