"""Kinds of memory that the calculator knows: what counts as their size, and the law that theory or a paper gives."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from engram.theory.capacity import (
    FACTS_PER_PARAMETER,
    facts_capacity,
    hebb_capacity,
    linear_trained_capacity,
    mlp_capacity,
    pairs_with_log,
    with_log,
)
from engram.theory.extrapolation import Fit, Points, fitted, predicted


def _itself(N: float) -> float:
    return N


@dataclass(frozen=True)
class Kind:
    """A kind of memory.

    stores          what it holds, in the plural
    size            what is counted as its size; `octave` is the factor in it that doubles the width
    law             how much it holds by theory, from its size; `says` has it in words
    grown, back     what is a power law of the size, as theory has it: N, or N ln N; and N from that
    resolution      to which a Search finds what a memory holds
    experiment      whose records measure it
    """

    name: str
    about: str
    stores: str
    size: str
    octave: float
    law: Callable[[int], float]
    says: str
    resolution: float
    experiment: str
    grown: Callable[[float], float] = _itself
    back: Callable[[float], float] = _itself


HEBB = Kind(
    "hebb", "a Hebbian matrix, W = Σ u eᵀ", "pairs", "width d", 2.0,
    hebb_capacity, "N = 0.027 d²", 0.01, "memory.hebb-capacity",
)  # fmt: skip
LINEAR = Kind(
    "linear", "a trained d×d matrix", "pairs", "width d", 2.0,
    linear_trained_capacity, "N ln N = d²/1.3", 0.01, "memory.linear-trained", with_log, pairs_with_log,
)  # fmt: skip
MLP = Kind(
    "mlp", "a trained MLP of m units", "pairs", "parameters md", 4.0,
    mlp_capacity, "N ln N = md/0.35", 0.03, "memory.mlp-trained", with_log, pairs_with_log,
)  # fmt: skip
FACTS = Kind(
    "facts", "a one-layer transformer", "facts", "parameters 4 H d_h d + 2 m d", 4.0,
    facts_capacity, f"{FACTS_PER_PARAMETER:g} facts for each parameter", 0.03, "facts.capacity",
)  # fmt: skip
KINDS = {kind.name: kind for kind in (HEBB, LINEAR, MLP, FACTS)}


def fit_of(kind: Kind, points: Points) -> Fit:
    """The law of a kind through (size, what is held there): fitted in what theory says is a power law."""
    return fitted([(x, kind.grown(held)) for x, held in points], kind.octave, kind.resolution)


def foretold(kind: Kind, fit: Fit, size: float) -> tuple[float, float, float]:
    """What a memory of this size holds by the fit: low, middle and high end of the interval."""
    found = predicted(fit, size)
    return kind.back(found.low), kind.back(found.value), kind.back(found.high) if found.half < inf else inf
