"""Heavy-tailed data: the errors that samples and width leave, and what an error asks for. Theory only, so far."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from engram.theory.bounds import power_law
from engram.theory.prediction import KEPT, counts_error, exponents, least_size, threshold_error, unseen


@dataclass(frozen=True, repr=False)
class Tail:
    """N tokens with p ∝ z^−α and M answers, n samples of them, and a matrix of width d; None is not asked."""

    alpha: float
    tokens: int
    answers: int
    samples: int | None
    width: int | None
    target: float | None = None

    def __repr__(self) -> str:
        return "\n".join(import_module("engram.calculator.words").lines_of(self))  # as the command prints it

    @property
    def errors(self) -> dict[str, float]:
        """Expected errors by what causes them."""
        p, found = power_law(self.tokens, self.alpha), dict[str, float]()
        if self.samples is not None:
            found["unseen"] = unseen(p, self.samples)
        if self.width is not None:
            found["counts"] = counts_error(p, self.width, self.answers)
            found["threshold"] = threshold_error(p, self.width)
        if self.samples is not None and self.width is not None:
            found["threshold, of samples"] = threshold_error(p, self.width, self.samples)
        return found

    @property
    def needed(self) -> dict[str, int]:
        """What the target asks for, half of it from each: samples, tokens that are kept, and the width for these."""
        if self.target is None:
            return {}
        p, half = power_law(self.tokens, self.alpha), self.target / 2
        kept = least_size(lambda k: -float(p[k:].sum()), -half)
        return {"samples": least_size(lambda n: -unseen(p, n), -half), "kept": kept, "width": KEPT * kept}

    def to_json(self) -> dict[str, Any]:
        return {
            "memory": "zipf", "alpha": self.alpha, "tokens": self.tokens, "answers": self.answers,
            "samples": self.samples, "width": self.width, "target": self.target, "exponents": exponents(self.alpha),
            "errors": self.errors, "needed": self.needed or None, "measured": None,
        }  # fmt: skip
