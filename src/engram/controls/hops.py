"""Controls of the experiments on several hops: attention that is not sharp, other hidden permutations, no depth."""

from collections.abc import Callable
from typing import Any

import numpy as np

from engram.claims.controls import Control, Controls
from engram.claims.planting import Plant, anew, changed, rewritten
from engram.controls import hops_published, hops_training
from engram.records import Record
from engram.records.files import Row

PLANTED, LAWS, THEORY = "engram.models.doubling", "engram.laws.hops", "engram.theory.hops"
SHORT = {"length": 60, "most": 16}  # sizes at which planted hops take a second


def _soft(plant: Plant) -> Control:
    return Control("attention is soft: β is a hundredth", plant, {f"{PLANTED}.SHARPNESS": lambda beta: beta / 100})


def _at(*wanted: Any) -> Callable[[Any], bool]:
    """Labels that are one of these, or tuples that begin with one."""
    return lambda label: label in wanted or (isinstance(label, tuple) and label[0] in wanted)


def _first_visit(right: Any) -> Any:
    """Among the places up to the pointer the first one wins."""

    def sought(T: int) -> np.ndarray:
        table, j = right(T), np.arange(T)
        return np.where(table == j, T - j, table)

    return sought


def _other_hidden(right: Any) -> Any:
    return lambda task, hops: right(task.model_copy(update={"hidden": task.hidden + 1}), hops)


def _keep_zero(right: Any) -> Any:
    """Only permutations that leave 0 in place are averaged over."""
    return lambda n: [permutation for permutation in right(n) if permutation[0] == 0]


def _depth_is_free(record: Record, row: Row) -> Row:
    return {"shallower": 1 - 0.01 * row["shallower"]}


def _never_certain(record: Record, row: Row) -> Row:
    return {"off": 0.0, "uncertain": row["off"] + row["uncertain"]}


HOPS = changed(anew(draws=3, **SHORT), only=_at("doubling"))
COMPOSED = changed(anew(draws=20), only=_at("composition"))
CONTROLS: Controls = {
    **hops_published.CONTROLS,
    **hops_training.CONTROLS,
    "hops.pointer-doubling": (
        _soft(HOPS),
        Control("the first earlier visit is found, not the last", HOPS, {f"{PLANTED}._sought": _first_visit}),
        Control("one layer less is as good", changed(rewritten(_depth_is_free), only=_at("doubling"))),
    ),
    "hops.composition": (
        _soft(COMPOSED),
        Control("the hidden permutations are others", COMPOSED, {f"{LAWS}.plant_composition": _other_hidden}),
    ),
    "hops.no-correlation": (
        Control(
            "only permutations that leave 0 in place are averaged over",
            changed(anew(), only=_at("enumerated")),
            {f"{THEORY}.averaged_over": _keep_zero},
        ),
        Control("the answer is uniform whatever is given", changed(rewritten(_never_certain), only=_at("enumerated"))),
    ),
}
