"""Controls of the calculator: capacities at twice the width that no fit could know, and widths that say nothing."""

from math import exp

from engram.claims.controls import Control, Controls
from engram.claims.experiment import Runs
from engram.claims.planting import Plant, changed, resized
from engram.records import Record
from engram.values import generator


def _more(factor: float, record: Record) -> float:
    """A Search over facts turns at a number of subjects, whose square is the number of facts."""
    return factor**0.5 if "factual" in record.id else factor


def _at_twice_the_width(factor: float) -> Plant:
    """The largest width of every kind stores so many times as much."""

    def plant(runs: Runs) -> Runs:
        tops = {kind: max(d for other, d in runs if other == kind) for kind, _ in runs}
        larger = resized(lambda record: _more(factor, record))
        return changed(larger, only=lambda label: label[1] == tops[label[0]])(runs)

    return plant


def _by_chance(record: Record) -> float:
    """Every Search turns somewhere else, by a factor of about three up or down."""
    return _more(exp(generator(record.spec.seed, f"control.{record.id}").normal()), record)


CONTROLS: Controls = {
    "scaling.prediction": (
        Control("twice the width stores 1.5 times as much as it does", _at_twice_the_width(1.5)),
        Control("what a width stores is left to chance", changed(resized(_by_chance))),
    ),
}
