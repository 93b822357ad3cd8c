"""Controls of "Understanding factual recall": capacities with another exponent, stages that do not come."""

from collections.abc import Callable
from math import log
from typing import Any

import numpy as np

from engram.claims.controls import Control, Controls
from engram.claims.experiment import Runs
from engram.claims.planting import (
    Change,
    anew,
    changed,
    columns,
    exchanged_columns,
    held,
    instead,
    multiplied,
    resized,
    rewritten,
    with_rows,
)
from engram.experiments.facts.trade_off import FEW, HEADS, UNITS
from engram.records import Record
from engram.records.files import Row
from engram.theory.fact_flow import Head

PARTS = [("loss.relation", "loss.subject"), ("distance.relation", "distance.subject")]
READ = ("all.loss", "all.loss.relation", "all.loss.subject", "all.distance.relation")
ANSWERS, RELATION = 32, 8  # of the linear and the softmax head: all answers, and those of a relation


def _all_pairs_count(runs: Runs) -> Runs:
    """A subset costs what its table of twice as many pairs would: half of the facts are stored."""
    return changed(resized(lambda record: 0.5 / 0.8), only=lambda label: label[0] == "subset")(runs)


def _other_heads(runs: Runs) -> Runs:
    """An MLP does not help, and more heads do not."""
    few, heads, units = FEW[runs.scale], HEADS[runs.scale][-1], UNITS[runs.scale][-1]
    return instead({(heads, 0): (few, 0), (few, units): (few, 0), (few, 0): (heads, 0)})(runs)


def _rescued(runs: Runs) -> Runs:
    few = FEW[runs.scale]
    return instead({(heads, m): (few, m) for heads in (1, 2) for m in UNITS[runs.scale]})(runs)


def _shuffled_answers(record: Record, row: Row) -> Row:
    """Every answer scores as all 128 do in the mean: 1 of them lies in both sets, 22 in one."""
    return (
        {
            f"score.{count}": (1 * row["score.2"] + 22 * row["score.1"] + 105 * row["score.0"]) / 128
            for count in (2, 1, 0)
        }
        if "score.2" in row
        else {}
    )


def _two_rates(right: Callable[..., Head]) -> Callable[..., Head]:
    """W learns twice as fast as w."""

    def velocity(*arguments: Any) -> Head:
        found = right(*arguments)
        return Head(found.w, 2 * found.W)

    return velocity


def _stays_at(level: float) -> Change:
    """The loss does not fall below a level."""
    return rewritten(lambda record, row: {"loss": max(row["loss"], level)})


def _straight(record: Record) -> Record:
    """The loss falls in a straight line over the time of the run."""
    first, end = record.rows[0]["loss"], record.rows[-1]["time"]
    return with_rows(record, [{**row, "loss": first * (1 - 0.999 * row["time"] / end)} for row in record.rows])


def _twice_as_fast(record: Record) -> Record:
    last = len(record.rows) - 1
    return with_rows(record, [record.rows[min(2 * step, last)] for step in range(last + 1)])


def _fact_by_fact(record: Record, row: Row) -> Row:
    """At the same loss p̂ is a mixture of uniform and right answers: nothing is known of the relation alone."""
    if "all.loss" not in row:
        return {}
    right = float(np.exp(-row["all.loss"]))
    other = (1 - right) / (ANSWERS - 1)
    wrong_relation = (ANSWERS - RELATION) * other
    distance = (abs(right - 1 / RELATION) + (RELATION - 1) * abs(other - 1 / RELATION) + wrong_relation) / 2
    return {"all.distance.relation": distance, "all.loss.relation": -log(max(1 - wrong_relation, 1e-12))}


def _at(*wanted: Any) -> Callable[[Any], bool]:
    return lambda label: label in wanted


OTHER_PART = Control(
    "subject and relation are exchanged", changed(exchanged_columns(*PARTS), only=lambda label: label != "SGD")
)
CONTROLS: Controls = {
    "facts.linear-in-parameters": (
        Control(
            "facts grow like the root of the parameters",
            changed(resized(lambda record: 8 * (record.store.parameters / 500) ** -0.25)),
        ),
    ),
    "facts.attention-construction": (
        Control("a quarter of the width", instead({("attention", 1024): ("attention", 256)})),
        Control("answers are shuffled", changed(rewritten(_shuffled_answers))),
    ),
    "facts.mlp-construction": (Control("512 units instead of 8192", instead({("MLP", 8192): ("MLP", 512)})),),
    "facts.bits-per-bit": (
        Control(
            "bits used are counted as bytes, so that the ratio is 8 times too large", changed(multiplied(8, "ratio"))
        ),
    ),
    "facts.subset": (Control("all pairs of the table count", _all_pairs_count),),
    "facts.conserved": (
        Control(
            "W learns twice as fast as w",
            changed(anew(draws=20), only=_at("random")),
            {"engram.theory.fact_flow.velocity": _two_rates},
        ),
    ),
    "facts.converges": (Control("the loss stays at ln D", changed(_stays_at(log(RELATION)), only=_at("long"))),),
    "facts.hallucination-stage": (
        OTHER_PART,
        Control("time runs twice as fast", changed(multiplied(0.5, "time"), only=_at("run"))),
        Control("the loss falls in a straight line", changed(_straight, only=_at("run"))),
    ),
    "facts.which-part-first": (OTHER_PART,),
    "facts.escape-times": (Control("time runs 25 % slower", changed(multiplied(1.25, "time"), only=_at("run"))),),
    "facts.published-stages": (Control("twice the learning rate", changed(_twice_as_fast, only=_at("SGD"))),),
    "facts.softmax-stages": (
        Control("facts are learned one by one, without the relation", changed(rewritten(_fact_by_fact))),
        Control("nothing is learned", changed(held(begin=0, end=0), columns({name: name for name in READ}, 0.01))),
    ),
    "facts.either-suffices": (Control("neither an MLP nor more heads help, and fewer do", _other_heads),),
    "facts.attention-floor": (Control("the MLP rescues one and two heads", _rescued),),
}
