"""Controls of the experiments on global against in-context associations: other exponents, noise that is elsewhere."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from engram.claims.controls import Control, Controls
from engram.claims.experiment import Runs
from engram.claims.planting import Change, alike, anew, changed, columns, exchanged_columns, instead, multiplied
from engram.experiments.context.noisy_recall import ATTENTION, MATRIX, SWEPT
from engram.experiments.context.samples import ALPHA, MIDDLE, SIZES, T
from engram.probes.truncation import percent
from engram.records import Record
from engram.records.files import Row

SAMPLES = "engram.experiments.context.samples"
FACTORS = "engram.theory.truncation.Factors"


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


def is_trained(label: Any) -> bool:
    """Trainings are labelled by their α."""
    return isinstance(label, float)


def as_if_removed(other: str, matrix: str = MATRIX) -> dict[str, str]:
    """Truncating one matrix does what truncating another one does."""
    metrics = [f"{percent(share)}.{metric}" for share in SWEPT for metric in ("p_correct", "p_noise")]
    return {f"map.{matrix}.{metric}": f"map.{other}.{metric}" for metric in metrics}


PROBABILITIES = ("noise.p_noise", "noise.p_correct")
SEEN_AS_ATTENTION = {name: source for matrix in ATTENTION for name, source in as_if_removed(MATRIX, matrix).items()}


def off(right: Any) -> Any:
    """Singular vectors that are not quite so."""

    class Off(right):
        @classmethod
        def of(cls, W: Tensor) -> Any:
            exact = right.of(W)
            return cls(exact.W, exact.left + 1e-6 * exact.left.roll(1, 1), exact.values, exact.right)

    return Off


CONTROLS: Controls = {
    "context.noise-first": (
        Control("noise comes when the answer came", changed(exchanged_columns(PROBABILITIES), only=is_trained)),
    ),
    "context.bayes-level": (
        Control("noise is unlearned", changed(multiplied(0.5, "noise.p_noise"), only=is_trained)),
        Control("noise is believed too much", changed(multiplied(1.3, "noise.p_noise"), only=is_trained)),
    ),
    "context.truncation-reveals": (
        Control("the matrix does what W_O2 does", changed(columns(as_if_removed("W_O2")), only=is_trained)),
        Control("the matrix does what W_K2 does", changed(columns(as_if_removed("W_K2")), only=is_trained)),
    ),
    "context.where": (
        Control("attention matrices do what W_I2 does", changed(columns(SEEN_AS_ATTENTION, 0.1), only=is_trained)),
        Control("W_I2 does what W_O2 does", changed(columns(as_if_removed("W_O2")), only=is_trained)),
    ),
    "context.alpha": (Control("α makes no difference", alike(0.5, only=is_trained)),),
    "context.truncation-identity": (
        Control(
            "singular vectors off by 1e-6",
            changed(anew(draws=2), only=lambda label: label == "identity"),
            {FACTORS: off},
        ),
    ),
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
