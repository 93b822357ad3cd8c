"""±1 patterns as minima of E(x) = −Σ_μ F(ξ_μ · x): Hopfield's memory, dense memories, the exponential memory.

F(t) = tⁿ, plain and not rectified (n = 2: Hopfield; n > 2: Krotov and Hopfield), or F(t) = exp(t) (Demircigil et al.).
A bit takes the sign of drive_i = Σ_μ F(ξ_μ · x | x_i = +1) − F(ξ_μ · x | x_i = −1), and stays where that is 0. With
o_μ = ξ_μ · x all bits are driven by two sums, and for n = 2 this is 4 (Σ_μ ξ_μi o_μ − N x_i): a zero diagonal.

    drive_i = Σ_μ ξ_μi A(o_μ) + x_i Σ_μ B(o_μ),   A(o) = (F(o+2) − F(o−2))/2,   B(o) = F(o) − (F(o+2) + F(o−2))/2
"""

from collections.abc import Hashable, Iterable, Mapping, Sized
from functools import cached_property
from math import cosh, log, sinh
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from engram.embeddings import directions
from engram.errors import EngramError
from engram.memory.check import check_room, check_size, check_whole_number, is_whole, several, shown
from engram.memory.names import Names

Degree = int | Literal["exp"]
Pattern = Tensor | np.ndarray | list[int] | list[float]
Cue = Hashable | Pattern
Patterns = Float[Tensor, "N d"]
States = Float[Tensor, "*batch d"]


def _halves(o: Tensor, degree: Degree) -> tuple[Tensor, Tensor]:
    """A(o) and B(o); those of exp in units of exp(max o), which changes no sign and cannot overflow."""
    if degree == "exp":
        w = (o - o.amax(-1, keepdim=True)).exp()
        return sinh(2) * w, (1 - cosh(2)) * w
    if degree == 2:  # twice as fast as the general line, which gives the same
        return 4 * o, torch.full_like(o, -4)
    up, down = (o + 2) ** degree, (o - 2) ** degree
    return (up - down) / 2, o**degree - (up + down) / 2


def drive(xi: Patterns, x: States, degree: Degree = 2) -> States:
    """drive_i = Σ_μ F(ξ_μ · x | x_i = +1) − F(ξ_μ · x | x_i = −1) of every bit; for F = exp up to a positive factor."""
    A, B = _halves(x @ xi.mT, degree)
    return A @ xi + x * B.sum(-1, keepdim=True)


def synchronous(xi: Patterns, x: States, degree: Degree = 2) -> States:
    """x_i ← sign(drive_i), all bits at once; can end in a cycle of two states."""
    h = drive(xi, x, degree)
    return torch.where(h == 0, x, h.sign())


def asynchronous(xi: Patterns, x: States, degree: Degree = 2, bits: Iterable[int] | None = None) -> States:
    """x_i ← sign(drive_i), one bit after the other, from first to last by default: the energy never rises."""
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


def settle(xi: Patterns, x: Float[Tensor, "n d"], degree: Degree = 2, sweeps: int = 1000) -> Float[Tensor, "n d"]:
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


def energy(xi: Patterns, x: States, degree: Degree = 2) -> Float[Tensor, "*batch"]:
    """E(x) = −Σ_μ (ξ_μ · x)ⁿ; for exp, −log Σ_μ exp(ξ_μ · x), which falls where E falls and does not overflow."""
    o = x @ xi.mT
    return -o.logsumexp(-1) if degree == "exp" else -(o**degree).sum(-1)


class Hopfield:
    """Patterns ξ_μ ∈ {±1}^d as minima of E(x) = −Σ_μ F(ξ_μ · x); a noisy cue falls back to the pattern that it is near.

    degree    n ≥ 2: F(t) = tⁿ (Hopfield 1982; Krotov and Hopfield 2016); "exp": F = exp (Demircigil et al. 2017)
    seed      of the random patterns of plain names

    >>> m = Hopfield(d=200, seed=0)
    >>> m.store(["France", "Japan", "Peru"])
    >>> m.recall(m.noisy("Peru", flips=60))
    'Peru'
    """

    def __init__(self, d: int, degree: Degree = 2, *, seed: int = 0):
        check_size(d, seed, least=2)
        if degree != "exp" and not (is_whole(degree) and degree >= 2 and degree * log(d + 2) < 600):
            most = int(600 / log(d + 2))  # (d + 2)ⁿ must stay a finite number
            raise EngramError(f"degree: must be 'exp' or, for d={d}, from 2 to {most}; got {shown(degree)}")
        self.d, self.seed = d, seed
        self.degree: Degree = degree
        self.names = Names(d, "signs", seed, "xi")
        self._given: dict[Hashable, Float[Tensor, " d"]] = {}

    def store(self, patterns: Mapping[Hashable, Pattern] | Iterable[Hashable]) -> None:
        """Store names, which get random patterns, or {name: pattern} with d entries ±1 each."""
        if isinstance(patterns, Tensor | np.ndarray):
            raise EngramError("store: a vector was given without a name; write store({name: pattern, …})")
        if isinstance(patterns, Sized):
            check_room("patterns", len(patterns), self.d)
        listed = several("store", patterns)
        given = {name: self._pattern(p) for name, p in patterns.items()} if isinstance(patterns, Mapping) else {}
        for name, vector in given.items():
            if name in self.names and not torch.equal(self[name], vector):
                raise EngramError(f"store: {name!r} already has another pattern; store this one under another name")
        fresh = {name: vector for name, vector in given.items() if name not in self.names}
        self.names.add(listed)
        self._given |= fresh
        vars(self).pop("xi", None)  # recomputed when it is next needed

    @cached_property
    def xi(self) -> Patterns:
        """The stored patterns, in the order of storing."""
        if not len(self.names):
            raise EngramError("recall: nothing is stored yet; call store([name, …]) first")
        if not self._given:
            return self.names.vectors
        return self.names.vectors.index_put(
            (torch.tensor(self.names.rows(self._given)),), torch.stack([*self._given.values()])
        )

    def __getitem__(self, name: Hashable) -> Float[Tensor, " d"]:
        """The pattern stored under a name."""
        return self.xi[self.names.row(name)]

    def noisy(self, name: Hashable, flips: int, draw: int = 0) -> Float[Tensor, " d"]:
        """The pattern with `flips` of its bits flipped at random; another `draw` flips others."""
        check_whole_number("flips", flips, 0, self.d)
        x = self[name].clone()
        x[flipped_bits(1, self.d, flips, self.seed, f"flips{draw}")[0]] *= -1
        return x

    def scores(self, cues: Iterable[Cue] | None = None) -> Float[Tensor, "n N"]:
        """Overlaps ξ_μ · x / d: one row for each cue x (all stored patterns by default), one column for each pattern.

        A single vector is one cue, with one row.
        """
        if cues is None:
            return self._overlaps(self.xi)
        one = isinstance(cues, Tensor | np.ndarray) and cues.ndim == 1
        return self._overlaps(torch.stack([self._vector(cue) for cue in ([cues] if one else several("scores", cues))]))

    def _overlaps(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n N"]:
        check_room("overlaps", 2, len(x), len(self.xi))
        return x @ self.xi.T / self.d

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
        return list(self.names)[int(self._overlaps(self.settle(cue)[None]).argmax())]

    def margin(self, *names: Hashable) -> float:
        """min over bits i and patterns (all by default) of ξ_i drive_i, in units of a single pattern; > 0 if stable."""
        xi = self.xi[self.names.rows(names)] if names else self.xi
        check_room("overlaps", 3, len(xi), len(self.xi))
        alone = drive(xi[:1], xi[0], self.degree)[0].abs()  # F(d) − F(d−2), in the same units
        return float((xi * drive(self.xi, xi, self.degree)).min() / alone)

    def stable(self) -> float:
        """The share of stored patterns that one synchronous update leaves unchanged."""
        check_room("overlaps", 3, len(self.xi), len(self.xi))
        return float((synchronous(self.xi, self.xi, self.degree) == self.xi).all(1).double().mean())

    def accuracy(self) -> float:
        """The share of stored patterns that are recalled from themselves: nearest to where they settle."""
        check_room("overlaps", 3, len(self.xi), len(self.xi))
        nearest = self._overlaps(settle(self.xi, self.xi, self.degree)).argmax(1)
        return float((nearest == torch.arange(len(nearest))).double().mean())

    def energy(self, cue: Cue) -> float:
        """E(x) of a cue; for "exp", −log Σ_μ exp(ξ_μ · x)."""
        return float(energy(self.xi, self._vector(cue), self.degree))

    def _vector(self, cue: Cue) -> Float[Tensor, " d"]:
        return self._pattern(cue) if isinstance(cue, Tensor | np.ndarray | list) else self[cue]

    def _pattern(self, given: object) -> Float[Tensor, " d"]:
        try:
            x = torch.as_tensor(given)
        except (TypeError, ValueError, RuntimeError):
            raise EngramError(f"pattern: must be a vector of d={self.d} entries ±1; got {shown(given)}") from None
        if x.shape != (self.d,):
            raise EngramError(f"pattern: must be a vector of d={self.d} entries ±1; got shape {tuple(x.shape)}")
        x = x.detach().to(torch.float64, copy=True)
        if not (x.abs() == 1).all():
            wrong = float(x[x.abs() != 1][0])
            raise EngramError(f"pattern: every entry must be +1 or −1; got {wrong:g}")
        return x

    def __repr__(self) -> str:
        return f"Hopfield(d={self.d}, degree={self.degree!r}, {len(self.names)} patterns)"


def flipped_bits(n: int, d: int, flips: int, seed: int, name: str) -> Tensor:
    """Row by row the indices of `flips` different bits, chosen at random."""
    return directions("gaussian", n, d, seed, name).argsort(1)[:, :flips]
