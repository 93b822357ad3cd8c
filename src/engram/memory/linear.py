"""Memories that are one matrix: u_y · W e_z."""

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from engram.embeddings import Law
from engram.errors import EngramError
from engram.memory.check import (
    check_finite,
    check_names,
    check_one_of,
    check_plan,
    check_rank,
    check_room,
    check_whole_number,
    shown,
)
from engram.memory.memory import Memory, Name, Pairs, list_pairs
from engram.memory.names import Names
from engram.memory.rules import fit, hebb, one_step, rounded
from engram.memory.stored import Stored, truncated
from engram.memory.truncation import Factors

Rule = Literal["hebb", "one-step", "trained", "given"]
Same = TypeVar("Same", bound="Linear")


@dataclass(frozen=True)
class Edit:
    """What rewriting one pair did to the others.

    changed          other stored keys that now recall another value
    largest          the largest change in any score of another stored key
    margin_before    the smallest margin over the pairs stored before the edit
    margin_after     the smallest margin over the pairs stored after it
    """

    key: Name
    old: Name
    new: Name
    changed: tuple[Name, ...]
    largest: float
    margin_before: float
    margin_after: float


class Linear(Memory):
    """score_y = u_y · W e_z with one matrix W, d×d unless it is that of a model; `rule` says how W is written.

    hebb       W = Σ_z u_{f(z)} e_zᵀ, one outer product per pair
    one-step   W = (η/N) Σ_z Σ_k (1{f(z)=k} − 1/M) u_k e_zᵀ: a gradient step of size η = lr from W = 0
    trained    cross-entropy over all pairs by Adam (lr) from W = 0, until all are recalled or `steps` are over
    given      W is a matrix of a model (Linear.of); further pairs are added as outer products of the usual `strength`

    With "one-step" and "trained", W is computed again from all pairs whenever something is stored. Hebbian pairs may
    have weights, a storage scheme: W = Σ_z q(z) u_{f(z)} e_zᵀ.
    Birth of a Transformer, Lemma 1 (one-step); Nichani, Lee and Bietti (2025), Theorem 1 (hebb), Fig. 1 left (trained);
    Cabannes, Dohmatob and Bietti (2024) (weights).

    >>> m = Linear(d=64, seed=0)
    >>> m.store({"France": "Paris", "Japan": "Tokyo", "Peru": "Lima"})
    >>> m.recall("France")
    'Paris'
    """

    def __init__(
        self, d: int, *, rule: Rule = "hebb", seed: int = 0, law: Law = "sphere", lr: float = 1.0, steps: int = 4096
    ):
        super().__init__(d, seed=seed, law=law)
        check_one_of("rule", rule, get_args(Rule))
        check_plan(lr, steps)
        check_room("W", d, d)
        self.rule, self.lr, self.steps = rule, lr, steps
        self.W: Float[Tensor, "m d"] = torch.zeros(d, d, dtype=torch.float64)
        self.weights: dict[Name, float] = {}  # of the pairs that were given one

    @classmethod
    def of(cls, stored: Stored) -> "Linear":
        """W of a model as a memory: margin, edit, truncate and quantise then work on trained weights.

        Keys and values have the names in `stored.labels`, with the side that asks as keys. The pairs are the right
        answers, or the likeliest ones where `stored.right` is a law. A layer norm between W and the values is refused.
        """
        if stored.read is not None:
            raise EngramError(f"{stored.name}: a layer norm lies between W and its answers, so it is not linear")
        turned = stored.asking == "values"
        E, U = (stored.values, stored.keys) if turned else (stored.keys, stored.values)
        memory = cls(E.shape[1], rule="given")
        memory.values = Names(U.shape[1], "sphere", 0, "U")
        memory.give(E.cpu(), U.cpu(), stored.labels.rows, stored.labels.columns)
        memory.W = (stored.W.T if turned else stored.W).detach().double().cpu()
        memory.pairs = _right_pairs(stored)
        return memory

    def store(self, pairs: Pairs, weights: Any = None) -> None:
        """Write z → y for every pair, with weights q(z) if given: by key (others have 1), or one for each pair.

        >>> m = Linear(d=64, seed=0)
        >>> m.store({"often": "x", "rarely": "y", "never": "x"}, weights=[0.9, 0.1, 0])
        >>> round(m.strength(), 3)
        0.333
        """
        if weights is None:
            return super().store(pairs)
        if self.rule not in ("hebb", "given"):
            raise EngramError(f"weights: rule={self.rule!r} chooses its own; use rule='hebb'")
        listed = list_pairs(pairs)
        fresh = weights_by_key([key for key, _ in listed], weights)
        with self._whole_or_not():
            self._keep_weights(fresh)
            return super().store(listed)

    def _keep_weights(self, fresh: dict[Name, float]) -> None:
        """A pair that is stored already keeps its weight."""
        for key, weight in fresh.items():
            if key in self.pairs and weight != self.weights.get(key, 1.0):
                known = f"{key!r} is stored with weight {self.weights.get(key, 1.0):g}"
                raise EngramError(f"weights: {known}; got {weight:g}; store it once, or in a new memory")
        self.weights = self.weights | fresh

    def _write(self, pairs: dict[Name, Name]) -> None:
        if self.rule in ("hebb", "given"):
            known = [key for key in self.pairs if key not in pairs]
            usual = 1.0 if self.rule == "hebb" else self._strength(known)
            q = torch.tensor([self.weights.get(key, 1.0) for key in pairs], dtype=torch.float64)
            self.W = self.W + usual * hebb(self.inputs(pairs), q[:, None] * self.values[pairs.values()])
            return
        E, U, f = self.inputs(self.pairs), self.values.vectors, self._right(self.pairs)
        if self.rule == "one-step":
            self.W = one_step(E, U[f], U, self.lr)
        else:
            check_room("training", 4, len(f), len(U))
            (self.W,) = fit([torch.zeros_like(self.W)], lambda W: E @ W.T @ U.T, f, self.lr, self.steps)

    def respond(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n M"]:
        return x @ self.W.T @ self.values.vectors.T

    def edit(self, key: Name, value: Name) -> Edit:
        """Rewrite one pair: W ← W + (s u_y − W e_z) e_zᵀ / ‖e_z‖², after which W e_z = s u_y.

        s is the `strength` of all pairs. If the keys are orthogonal, no other key is affected.
        """
        before, old = self.copy(), self._value_of(key)
        if not self.inputs([key]).any():
            raise EngramError(f"edit: the vector of {key!r} is zero, and so is W e_z; give it another vector")
        with self._whole_or_not():
            self.values.add([value])
            self.pairs = self.pairs | {key: value}
            e, u = self.inputs([key])[0], self.values[[value]][0]
            self.W = self.W + torch.outer(before.strength() * u - self.W @ e, e) / (e @ e)
            return compare(before, self, key, old)

    def _value_of(self, key: Name) -> Name:
        check_names(key)
        if key not in self.pairs:
            self.keys.row(key)  # an unknown name is refused with the nearest one
            raise EngramError(f"edit: no pair is stored for {key!r}; store({{key: value}}) adds one")
        return self.pairs[key]

    def strength(self) -> float:
        """s: the mean weight for hebb, η/N for one-step, else the mean of max(0, u_{f(z)} · W e_z / ‖u_{f(z)}‖²)."""
        return self._strength(self.stored())

    def _strength(self, keys: list[Name]) -> float:
        if self.rule == "hebb" or not keys:
            return sum(self.weights.get(key, 1.0) for key in keys) / len(keys) if keys else 1.0
        if self.rule == "one-step":
            return self.lr / len(keys)
        answers, V = self.inputs(keys) @ self.W.T, self.values[[self.pairs[key] for key in keys]]
        along = (answers * V).sum(1) / V.square().sum(1)
        return float(along.clamp(min=0).mean()) or 1.0  # W = 0 is right if there is one value only

    def truncate(self: Same, rank: int) -> Same:
        """A copy with the nearest W of this rank: ‖W − W_rank‖_F² = Σ_{i > rank} σ_i², σ the singular values of W."""
        check_rank("rank", rank, min(self.W.shape))
        return self.copy(truncated(self.W, rank))

    def truncate_share(self: Same, share: float) -> Same:
        """A copy with this share of the singular values of W: with 0 it has forgotten everything, with 1 nothing."""
        return self.copy(Factors.of(self.W).keep_share(share))

    def spectrum(self) -> Float[Tensor, " rank"]:
        """The singular values of W, largest first."""
        return torch.linalg.svdvals(self.W)

    def quantise(self: Same, bits: int) -> Same:
        """A copy with each weight on the nearest of 2^bits levels on ±max|W|, Δ = 2 max|W| / (2^bits − 1) apart."""
        return self.copy(rounded(self.W, 2**bits) if grid_step(self, bits) else None)

    def copy(self: Same, W: Float[Tensor, "m d"] | None = None) -> Same:
        """The same pairs and names, with W if it is given; later changes to one memory do not affect the other."""
        other = copy(self)
        other.keys, other.values, other.pairs = self.keys.copy(), self.values.copy(), dict(self.pairs)
        other.weights = dict(self.weights)
        other.W = self.W if W is None else W
        return other


def weights_by_key(keys: list[Name], weights: Any) -> dict[Name, float]:
    """Weights as they may be given: a mapping of some keys, or numbers, one for each key in order."""
    found = weights if isinstance(weights, Mapping) else _in_order(keys, weights)
    strange = [key for key in found if key not in set(keys)]
    if strange:
        raise EngramError(f"weights: {strange[0]!r} is no key of these pairs; give weights to keys that are stored")
    for weight in found.values():
        check_finite("weights", weight)
    return {key: float(weight) for key, weight in found.items()}


def _in_order(keys: list[Name], weights: Any) -> dict[Name, Any]:
    if isinstance(weights, str) or not isinstance(weights, Iterable):
        raise EngramError(f"weights: got {shown(weights)}, which is neither a mapping by key nor a list of numbers")
    listed: list[Any] = weights.tolist() if isinstance(weights, np.ndarray | Tensor) else list(weights)
    if len(listed) != len(keys):
        raise EngramError(f"weights: {len(keys)} pairs need {len(keys)} of them; got {len(listed)}")
    return dict(zip(keys, listed, strict=True))


def _right_pairs(stored: Stored) -> dict[Name, Name]:
    """Each question with its right answer, or with the likeliest one where a law says what is right."""
    if stored.right is None:
        return {}
    law = stored.right.is_floating_point()
    asked = stored.right.sum(1) > 0 if law else torch.ones_like(stored.right, dtype=torch.bool)
    best = (stored.right.argmax(1) if law else stored.right).tolist()
    return {stored.labels.rows[i]: stored.labels.columns[best[i]] for i in asked.nonzero().flatten().tolist()}


def grid_step(memory: Linear, bits: int) -> float:
    """Δ = 2 max|W| / (2^bits − 1), the distance between neighbouring levels."""
    check_whole_number("bits", bits, 1, 32)
    return float(2 * memory.W.abs().amax() / (2**bits - 1))


def quantisation_bound(memory: Linear, bits: int) -> float:
    """(Δ/2) max_{z,y} ‖e_z‖₁ ‖u_{f(z)} − u_y‖₁, the most that quantise(bits) can take from any margin.

    No weight moves by more than Δ/2, so no score difference (u_{f(z)} − u_y) · W e_z by more than this (Hölder twice).
    """
    if type(memory).respond is not Linear.respond:
        kind = type(memory).__name__
        raise EngramError(f"quantisation_bound: the scores of {kind} are not linear in W; only Linear has this bound")
    E, V, U = memory.inputs(memory.stored()), memory.values[memory.pairs.values()], memory.values.vectors
    apart = torch.cdist(V, U, p=1).amax(1)
    return grid_step(memory, bits) / 2 * float((E.abs().sum(1) * apart).max())


def compare(before: Linear, after: Linear, key: Name, old: Name) -> Edit:
    """What rewriting `key` did to the other pairs."""
    others = [other for other in after.pairs if other != key]
    margins = before.margin(), after.margin()
    if not others:
        return Edit(key, old, after.pairs[key], (), 0.0, *margins)
    was, now = before.scores(others), after.scores(others)
    before.values = after.values  # so that a value that was new has its column in both
    largest = float((after.scores(others) - before.scores(others)).abs().max())
    moved = (was.argmax(1) != now.argmax(1)).tolist()
    changed = tuple(other for other, is_moved in zip(others, moved, strict=True) if is_moved)
    return Edit(key, old, after.pairs[key], changed, largest, *margins)
