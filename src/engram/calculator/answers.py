"""What the calculator answers: the size that so much needs, or what a size holds, by theory and as measured."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from math import ceil, inf, isfinite
from typing import Any

import numpy as np

from engram.calculator.kinds import FACTS, MLP, Kind, foretold
from engram.calculator.measured import fit_to
from engram.calculator.shapes import Transformer, mlp_with, transformer_with
from engram.theory.extrapolation import Fit, predicted
from engram.theory.prediction import hebb_error, least_size

FAR = 8.0  # a factor in width outside of what was measured, beyond which an answer comes with a warning
ERROR = 0.01  # at the capacity: it is the size at which recall falls to 99 %
REACH = np.geomspace(1, 64, 600)  # how far around the middle the ends of an interval of sizes are sought


@dataclass(frozen=True)
class Range:
    """A number with the ends of its 95 % interval for one more seed; None: no end was found."""

    value: float
    low: float | None
    high: float | None

    def to_json(self) -> dict[str, float | None]:
        return {"value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True, repr=False)
class Answer:
    """A size for what is to be stored, or what a size holds.

    asked        "size": what size is needed; "held": what a size holds; "error": both were given
    store        pairs or facts; where it was asked for, what theory says
    size         what the kind counts as its size; where it was asked for, what theory says
    theory       what theory says of what was asked
    measured     what the fit to our records says of it
    factor       how far in width outside of the measured sizes it lies; 1 inside
    error        expected share of wrong answers
    """

    kind: Kind
    asked: str
    store: float
    size: float
    theory: float
    measured: Range
    factor: float
    error: float | None
    fit: Fit
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        return "\n".join(import_module("engram.calculator.words").lines_of(self))  # as the command prints it

    @property
    def extrapolated(self) -> bool:
        return self.factor > 1

    @property
    def warning(self) -> str | None:
        """For sizes far outside of what was measured."""
        if self.factor <= FAR:
            return None
        end = self.fit.high if self.size_measured > self.fit.high else self.fit.low
        return (
            f"{self.factor:.0f} times {'wider' if end == self.fit.high else 'narrower'} than anything measured "
            f"({self.kind.size} {end:g}): an order of magnitude at best"
        )

    @property
    def size_measured(self) -> float:
        """The size of which the fit speaks."""
        return self.measured.value if self.asked == "size" else self.size

    @property
    def proposal(self) -> dict[str, int]:
        """A model that should do: by the upper end of the measured interval, or by theory where there is none."""
        return (
            shape_of(self.kind, self.measured.high or max(self.theory, self.measured.value))
            if self.asked == "size"
            else {}
        )

    def to_json(self) -> dict[str, Any]:
        fit = self.fit
        return {
            "memory": self.kind.name,
            "asked": self.asked,
            self.kind.stores: None if self.asked == "held" else self.store,
            "size": None if self.asked == "size" else self.size,
            "counted": self.kind.size,
            "theory": {"value": self.theory, "law": self.kind.says},
            "measured": self.measured.to_json(),
            "fit": {
                "exponent": fit.exponent, "spread": fit.spread, "missed": fit.missed, "n": fit.n,
                "sizes": list(fit.sizes), "experiment": self.kind.experiment,
            },
            "extrapolated": self.extrapolated,
            "factor": self.factor,
            "error": self.error,
            "proposal": self.proposal or None,
            "warning": self.warning,
            "notes": list(self.notes),
        }  # fmt: skip


def shape_of(kind: Kind, size: float) -> dict[str, int]:
    """A model of at least this size."""
    if kind is MLP:
        d, m = mlp_with(size)
        return {"d": d, "m": m}
    if kind is FACTS:
        shape: Transformer = transformer_with(size)
        return {"d": shape.d, "heads": shape.heads, "d_h": shape.d_h, "m": shape.m, "parameters": shape.parameters}
    return {"d": ceil(size)}


def size_needed(kind: Kind, store: float, notes: tuple[str, ...] = ()) -> Answer:
    """The size that so much needs."""
    fit, theory = fit_to(kind.name), least_size(kind.law, store)
    middle = _size_in(kind, fit, store)
    found = Range(middle, *(_end(kind, fit, store, middle, side) for side in (-1, 1)))
    return Answer(kind, "size", store, theory, theory, found, predicted(fit, middle).factor, ERROR, fit, notes)


def _size_in(kind: Kind, fit: Fit, store: float) -> float:
    """Where the fit says so much; a memory of one pair needs a width of one."""
    grown = kind.grown(store)
    return max(1.0, fit.size_for(grown)) if grown > 0 else 1.0


def _end(kind: Kind, fit: Fit, store: float, middle: float, side: int) -> float | None:
    """The largest size that is sure to hold less, or the smallest that is sure to hold so much; None within a factor
    of 64: an interval that grows faster than the law has no such size."""
    sure: Callable[[float], bool] = (
        (lambda size: foretold(kind, fit, size)[0] >= store)
        if side > 0
        else (lambda size: foretold(kind, fit, size)[2] <= store)
    )
    sizes = middle * REACH**side
    return next((float(size) for size in sizes if sure(size)), None)


def held_by(kind: Kind, size: float, notes: tuple[str, ...] = ()) -> Answer:
    """What a memory of this size holds."""
    fit, theory = fit_to(kind.name), kind.law(round(size))
    low, middle, high = foretold(kind, fit, size)
    found = Range(middle, low, high if isfinite(high) else None)
    return Answer(kind, "held", theory, size, theory, found, predicted(fit, size).factor, ERROR, fit, notes)


def error_of(kind: Kind, store: float, size: float, notes: tuple[str, ...] = ()) -> Answer:
    """Whether a memory of this size holds so much, and how many answers will be wrong, where theory says it."""
    base = held_by(kind, size)
    low, high = base.measured.low or 0.0, base.measured.high or inf
    fits = "it fits" if store <= low else "it may fit" if store <= high else "it does not fit"
    error = hebb_error(round(store), round(size)) if kind.name == "hebb" else ERROR if store <= low else None
    return Answer(kind, "error", store, size, base.theory, base.measured, base.factor, error, base.fit, (fits, *notes))
