"""Memories with a hidden layer: x ↦ Σ_i out_i σ(w_i · x + b_i), scored by u_y."""

from collections.abc import Iterable
from functools import cached_property
from math import sqrt
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from engram.embeddings import Law, directions
from engram.errors import EngramError
from engram.memory.check import check_finite, check_one_of, check_plan, check_room, check_whole_number, is_whole, shown
from engram.memory.memory import Memory, Name
from engram.memory.names import Names
from engram.memory.retrieval import Kept
from engram.memory.rules import fit, ntk_answers, ntk_directions, random_features, thresholded

Rule = Literal["hermite", "ntk", "trained"]
DEGREES = {"hermite": "1 or an even number", "ntk": "1, 2 or 3", "trained": "no degree"}


class MLP(Memory):
    """score_y = u_y · Σ_i out_i σ(w_i · e_z + b_i) with m hidden units; `rule` says how the weights are written.

    hermite   W frozen, entries N(0, 1), ReLU; out_i = Σ_z h_k(w_i · e_z) u_{f(z)} / (m c_k), k = degree
    ntk       W and out frozen, entries N(0, 1), σ = t² + t³; the first layer moves by δ_i, linearised, k = degree − 1
    trained   ReLU, b in the first layer only, entries initially N(0, 1/fan-in), all trained by Adam with lr and `steps`

    Over random W the first two answer Σ_z ⟨e_z, x⟩^degree u_{f(z)} on average, for keys of length one. ReLU has no
    Hermite coefficient of odd degree above 1, and its slope none of even degree above 0: hence the even degrees of
    "hermite", and the cubic σ of "ntk". "trained" starts again with all pairs whenever something is stored.

    Nichani, Lee and Bietti (2025), Theorem 2 (hermite, ntk) and Fig. 1 right (trained).
    """

    def __init__(
        self,
        d: int,
        m: int,
        *,
        rule: Rule = "trained",
        degree: int | None = None,
        seed: int = 0,
        law: Law = "sphere",
        lr: float = 0.03,
        steps: int = 4096,
    ):
        super().__init__(d, seed=seed, law=law)
        check_whole_number("m", m, 1)
        check_plan(lr, steps)
        check_room("layers", 4, m, d)
        self.m, self.rule, self.degree, self.lr, self.steps = m, rule, degree_of(rule, degree), lr, steps
        self.W, self.bias, self.out = self._start()
        self.delta: Float[Tensor, "m d"] = torch.zeros(m, d, dtype=torch.float64)

    def _start(self) -> tuple[Float[Tensor, "m d"], Float[Tensor, " m"], Float[Tensor, "m d"]]:
        """W, b and out before anything is stored."""
        W, out = (directions("gaussian", self.m, self.d, self.seed, name, torch.float64) for name in ("W", "out"))
        bias = torch.zeros(self.m, dtype=torch.float64)
        if self.rule == "trained":
            return W / sqrt(self.d), bias, out / sqrt(self.m)
        return W, bias, torch.zeros_like(out) if self.rule == "hermite" else out

    def _write(self, pairs: dict[Name, Name]) -> None:
        if self.rule == "trained":
            return self._train()
        E, V = self.inputs(pairs), self.values[pairs.values()]
        check_unit(E)
        if self.rule == "hermite":
            self.out = self.out + random_features(E, V, self.W, self.degree)
        else:
            self.delta = self.delta + ntk_directions(E, V, self.W, self.out, self.degree - 1)
        return None

    def _train(self) -> None:
        E, U, f = self.inputs(self.pairs), self.values.vectors, self._right(self.pairs)
        check_room("training", 4, len(f), len(U) + 2 * self.m)

        def scores(W: Tensor, bias: Tensor, out: Tensor) -> Tensor:
            return (E @ W.T + bias).relu() @ out @ U.T

        self.W, self.bias, self.out = fit(self._start(), scores, f, self.lr, self.steps)

    def respond(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n M"]:
        check_room("hidden units", 2, len(x), self.m)
        if self.rule == "ntk":
            answers = ntk_answers(x, self.W, self.out, self.delta, self.degree - 1)
        else:
            answers = (x @ self.W.T + self.bias).relu() @ self.out
        return answers @ self.values.vectors.T


def degree_of(rule: str, degree: int | None) -> int:
    """The power of ⟨e_z, x⟩ in the answers of a rule: 2 (hermite) and 3 (ntk) by default."""
    check_one_of("rule", rule, get_args(Rule))
    if degree is None:
        return {"hermite": 2, "ntk": 3, "trained": 0}[rule]
    if not (is_whole(degree) and fits(rule, degree)):
        raise EngramError(f"degree: rule={rule!r} allows {DEGREES[rule]}; got {shown(degree)}")
    return degree


def fits(rule: str, degree: int) -> bool:
    if rule == "hermite":
        return degree == 1 or (degree > 0 and degree % 2 == 0)
    return rule == "ntk" and 1 <= degree <= 3


def check_unit(E: Float[Tensor, "n d"]) -> None:
    """The Hermite identity holds for unit keys; a norm such as √d would drown every answer."""
    lengths = E.norm(dim=1)
    if (lengths < 0.5).any() or (lengths > 2).any():
        length = float(lengths[(lengths.log().abs()).argmax()])
        raise EngramError(f"embeddings: a key has length {length:.3g}; this rule needs length 1, as with law='sphere'")


class TwoInputs(MLP):
    """A trained MLP whose keys are pairs (z1, z2) of names: the input is e_{z1} + ẽ_{z2}."""

    def __init__(self, d: int, m: int, *, seed: int = 0, law: Law = "sphere", lr: float = 0.03, steps: int = 4096):
        super().__init__(d, m, seed=seed, law=law, lr=lr, steps=steps)
        self.seconds = Names(d, law, seed, "E.2")

    def _hear(self, keys: Iterable[Name]) -> None:
        first, second = both(keys)
        self.keys.add(first)
        self.seconds.add(second)

    def inputs(self, keys: Iterable[Name]) -> Float[Tensor, "n d"]:
        first, second = both(keys)
        return self.keys[first] + self.seconds[second]


def both(keys: Iterable[Name]) -> tuple[list[Name], list[Name]]:
    """The first and the second names of pairs."""
    listed = list(keys)
    for key in listed:
        if not (isinstance(key, tuple) and len(key) == 2):
            raise EngramError(f"key: a memory of two inputs has keys (z1, z2); got {shown(key)}")
    return [key[0] for key in listed], [key[1] for key in listed]  # type: ignore[index]


class Threshold(Kept):
    """score_y = u_y · Σ_z u_{f(z)} ReLU(e_z · x − b), one unit per pair: b above all ⟨e_z, e_z'⟩ silences other keys.

    By default b = `bias` lies halfway between the largest such overlap and the smallest ‖e_z‖² of the stored keys.
    Birth of a Transformer, App. D.
    """

    def __init__(self, d: int, *, bias: float | None = None, seed: int = 0, law: Law = "sphere"):
        super().__init__(d, seed=seed, law=law)
        if bias is not None:
            check_finite("bias", bias)
        self.bias = bias

    def _write(self, pairs: dict[Name, Name]) -> None:
        super()._write(pairs)
        vars(self).pop("halfway", None)  # recomputed when it is next needed

    @cached_property
    def halfway(self) -> float:
        """Between the largest overlap of two stored keys (0 if there is one key only) and the smallest ‖e_z‖²."""
        overlaps = self.overlaps(self.E)
        shortest = float(overlaps.diagonal().min())
        nearest = float(overlaps.fill_diagonal_(-torch.inf).amax()) if len(overlaps) > 1 else 0.0
        return (nearest + shortest) / 2

    def respond(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n M"]:
        b = self.halfway if self.bias is None else self.bias
        U = self.values.vectors
        return thresholded(self.overlaps(x), U[self.f], b) @ U.T


class Sets(Threshold):
    """A Threshold memory whose keys are frozensets I of names, with e_I = (1/√|I|) Σ_{i∈I} e_i.

    A Linear memory cannot store all such pairs: e_{ij} + e_{kl} = e_{ik} + e_{jl}, so {i,j}, {k,l} → A and
    {i,k}, {j,l} → B would need a score of A minus B that is both positive and negative.
    """

    def _hear(self, keys: Iterable[Name]) -> None:
        for members in map(members_of, keys):
            self.keys.add(members)

    def inputs(self, keys: Iterable[Name]) -> Float[Tensor, "n d"]:
        rows = [self.keys[members].sum(0) / sqrt(len(members)) for members in map(members_of, keys)]
        return torch.stack(rows)


def members_of(key: Name) -> list[Name]:
    """The names in a set, in an order that does not depend on the hash seed."""
    if not (isinstance(key, frozenset) and key):
        raise EngramError(f"key: a memory of sets has keys such as frozenset({{'a', 'b'}}); got {shown(key)}")
    return sorted(key, key=repr)
