"""Controls of storage schemes: other exponents, other levels, columns exchanged, terms of the theory left out."""

from collections.abc import Callable
from typing import Any

import numpy as np

from engram.claims.controls import Control, Controls
from engram.claims.planting import Change, alike, anew, changed, exchanged_columns, multiplied, rewritten
from engram.records import Record
from engram.records.files import Row

SIZES = ("d", "n", "trial", "step", "parameters", "P")  # columns that are no errors


def _at(*wanted: Any) -> Callable[[Any], bool]:
    """Labels that are one of these, or tuples that begin with one."""
    return lambda label: label in wanted or (isinstance(label, tuple) and label[0] in wanted)


def tilted(size: str, exponent: float, at: float = 100.0) -> Change:
    """Every error falls with another exponent in a size."""

    def tilt(record: Record, row: Row) -> Row:
        by = (row[size] / at) ** exponent
        return {name: by * value for name, value in row.items() if name not in SIZES}

    return rewritten(tilt)


def scaled(by: float) -> Change:
    """Every error is larger or smaller by a factor."""
    return rewritten(lambda _, row: {name: by * value for name, value in row.items() if name not in SIZES})


def orthonormal(right: Any) -> Any:
    """Answers that do not overlap, whatever the width."""

    def answers(M: int, d: int, d_max: int, points: int) -> Any:
        G, g = right(M, d, d_max, points)
        return np.broadcast_to(np.eye(M), G.shape), g

    return answers


def more_noise(right: Any) -> Any:
    """Keys that share an answer add up without their own: the interference of all answers is twice as large."""
    return lambda Q, G, g: right(2 * Q, G, g)


def other_kind(record: Record, row: Row) -> Row:
    return {"kind": 1 - row["kind"]}


def known_at_once(record: Record, row: Row) -> Row:
    """A fact is known for ever when it was seen once."""
    return {"known": row["known"] if row["times"] == 0 else 1 - 0.01 * row["known"]}


def known_alike(record: Record, row: Row) -> Row:
    """Facts that came rarely are known as well as others."""
    return {"known": 0.7 + 0.1 * row["known"]}


CONTROLS: Controls = {
    "scaling.hutter": (
        Control("the error falls like n^(−(α−1)/α − 0.2)", changed(tilted("n", -0.2, 1000))),
        Control("the error falls more slowly, by n^0.2", changed(tilted("n", 0.2, 1000))),
    ),
    "scaling.counts": (
        Control("the exponent is −0.15 off", changed(tilted("d", -0.15))),
        Control("counts and threshold are exchanged", changed(exchanged_columns(("p", "1 | d/8")))),
    ),
    "scaling.threshold": (
        Control("the exponent is 0.15 off", changed(tilted("d", 0.15))),
        Control("counts and threshold are exchanged", changed(exchanged_columns(("p", "1 | d/8")))),
    ),
    "scaling.levels": (
        Control("errors are 30 % larger", changed(scaled(1.3))),
        Control("errors are 30 % smaller", changed(scaled(0.7))),
    ),
    "scaling.finite-size": (
        Control(
            "the theory takes answers for orthonormal",
            changed(anew(draws=512), only=_at("curve")),
            {"engram.theory.zipf_curve._answers": orthonormal},
        ),
        Control(
            "the theory has twice the interference of other answers",
            changed(anew(draws=512), only=_at("curve")),
            {"engram.theory.zipf_curve._edges": more_noise},
        ),
        Control("errors are 15 % larger", changed(scaled(1.15), only=_at("measured"))),
    ),
    "scaling.rho": (
        Control("all exponents are 0.1 off", changed(tilted("d", 0.1), only=_at("whole", "cut", "simulated"))),
    ),
    "scaling.lower-bound": (
        Control("errors are half as large", changed(scaled(0.5), only=_at("tried"))),
        Control("errors are 40 % larger", changed(scaled(1.4), only=_at("tried"))),
    ),
    "scaling.mlp-bound": (
        Control("the error falls like the root of that law", changed(tilted("parameters", 0.5), only=_at("mlp"))),
    ),
    "scaling.joint": (
        Control("errors are 40 % larger", changed(scaled(1.4), only=_at("joint"))),
        Control("samples do not matter beyond n = 100", changed(tilted("n", 0.3, 100), only=_at("joint"))),
    ),
    "scaling.seen": (
        Control("counts are stored", changed(exchanged_columns(("seen", "counts")), only=_at("seen"))),
        Control(
            "roots of counts are stored",
            changed(exchanged_columns(("seen", "root of counts")), only=_at("seen")),
        ),
        Control(
            "what was seen once is not stored", changed(exchanged_columns(("seen", "seen twice")), only=_at("seen"))
        ),
    ),
    "scaling.exponential-costs": (
        Control("fewer pairs than dimensions", changed(anew(N=16), only=_at("arithmetic"))),
        Control("the memories are exchanged", changed(rewritten(other_kind), only=_at("noise"))),
        Control("the kinds are exchanged", changed(exchanged_columns(("matrix", "exponential")), only=_at("kinds"))),
    ),
    "scaling.noise-when-full": (
        Control("the kind of memory has no effect", alike(only=lambda label: True)),
        Control("errors of a matrix are 30 times as many", changed(multiplied(30, "error"), only=_at("linear"))),
    ),
    "scaling.facts-frequency": (
        Control("a fact seen once is known", changed(rewritten(known_at_once), only=_at("known"))),
        Control("all facts are known alike", changed(rewritten(known_alike), only=_at("known"))),
        Control("nothing is known well", changed(multiplied(0.5, "known"), only=_at("known"))),
    ),
}
