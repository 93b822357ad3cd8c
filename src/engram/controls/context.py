"""Controls of the experiments on global against in-context associations: other exponents, terms of theory left out."""

from collections.abc import Callable
from typing import Any

from engram.claims.controls import Control, Controls
from engram.claims.experiment import Runs
from engram.claims.planting import Change, changed, instead, multiplied
from engram.experiments.context.samples import ALPHA, MIDDLE, SIZES, T
from engram.records import Record
from engram.records.files import Row

SAMPLES = "engram.experiments.context.samples"


def _of(path: str) -> Callable[[Any], bool]:
    return lambda label: label[0] == path


def tilted(size: str, by: float, beyond: float = 0.0) -> Change:
    """n has another exponent in a size; or only beyond one."""

    def tilt(record: Record, row: Row) -> float:
        return float(max(record.check.sizes[size], beyond) / (beyond or 1)) ** by

    return multiplied(tilt, "crossing")


def clean(by: float) -> Change:
    """n has another exponent in 1 − α."""
    return multiplied(lambda record, row: (1 - record.check.sizes["alpha"]) ** by, "crossing")


def exchanged_paths(runs: Runs) -> Runs:
    """What attention needs is what the feed-forward matrix needs."""
    labels = {("feedforward", N, ALPHA): ("attention", N, T[runs.scale], ALPHA) for N in SIZES[runs.scale]}
    return instead(labels)(runs)


def bent_down(runs: Runs) -> Runs:
    """Beyond the middle size n grows more slowly than before."""
    return changed(tilted("N", -0.4, MIDDLE[runs.scale]), only=_of("attention"))(runs)


def no_fillers(right: Any) -> Any:
    return lambda N, length, alpha: right(N, 3, alpha)


def no_repeated_labels(right: Any) -> Any:
    """As in a vocabulary without end."""
    return lambda N, alpha: right(10**6, alpha)


CONTROLS: Controls = {
    "context.feedforward-few-samples": (
        Control("n grows like N^0.3", changed(tilted("N", 0.3), only=_of("feedforward"))),
        Control("both paths need what attention needs", exchanged_paths),
    ),
    "context.attention-many-samples": (
        Control("n grows more slowly, by N^−0.3", changed(tilted("N", -0.3), only=_of("attention"))),
        Control("n is in proportion to N already here", changed(tilted("N", 0.35), only=_of("attention"))),
        Control("n bends down beyond the middle size", bent_down),
    ),
    "context.samples-theory": (
        Control("the theory has no fillers", parts={f"{SAMPLES}.attention_samples": no_fillers}),
        Control("the theory has no labels that repeat", parts={f"{SAMPLES}.feedforward_crossing": no_repeated_labels}),
        Control("n is 10 % larger for attention", changed(multiplied(1.1, "crossing"), only=_of("attention"))),
        Control(
            "n is 20 % larger for the feed-forward matrix",
            changed(multiplied(1.2, "crossing"), only=_of("feedforward")),
        ),
    ),
    "context.samples-alpha": (
        Control("noise does not slow down attention", changed(clean(2.3), only=_of("attention"))),
        Control("rare noise is learned as soon", changed(tilted("alpha", 1.36), only=_of("feedforward"))),
        Control("attention has the exponent of its limit, −2", changed(clean(0.3), only=_of("attention"))),
        Control("noise has the exponent of its limit, −1", changed(tilted("alpha", 0.36), only=_of("feedforward"))),
    ),
}
