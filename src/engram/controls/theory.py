"""Controls of the experiments on learning by gradients: steps uphill, longer sequences, another power of a size."""

from collections.abc import Callable
from typing import Any

from engram.claims.controls import Control, Controls
from engram.claims.experiment import Runs
from engram.claims.planting import (
    Plant,
    anew,
    changed,
    drawn,
    instead,
    multiplied,
    resized,
    shuffled,
    swapped,
)
from engram.experiments.theory import finite, mean_bias
from engram.experiments.theory import three_steps_finite as samples
from engram.laws.orders import MEMORIES
from engram.records import Record
from engram.tasks.second_visit import SecondVisit

STEPS, THREE_STEPS, LEMMAS = "engram.laws.steps", "engram.experiments.theory.three_steps", "engram.theory.lemmas"
BACKWARDS = tuple(reversed(MEMORIES))
SMALL = {"N": 20, "T": 6}  # sizes at which three steps take seconds


def _at(*wanted: Any) -> Callable[[Any], bool]:
    """Labels that are one of these, or tuples that begin with one."""
    return lambda label: label in wanted or (isinstance(label, tuple) and label[0] in wanted)


def _longer(right: Any) -> Any:
    """The same for sequences one token longer."""
    return lambda task: right(SecondVisit(N=task.N, T=task.T + 1, pairs=task.pairs))


LONGER = Control(
    "the expressions are those of sequences one token longer",
    parts={f"{THREE_STEPS}.expressions": _longer, f"{THREE_STEPS}.closed_forms": _longer},
)


def _uphill(step: str, memory: str) -> Control:
    plant = changed(anew(**SMALL), only=_at("steps"))
    return Control(f"the step on {memory} goes uphill", plant, {f"{STEPS}.{step}": lambda right: lambda *a: -right(*a)})


UPHILL = [
    _uphill(f"step_{name}", memory) for name, memory in (("output", "W_O2"), ("trigger", "W_K2"), ("previous", "W_K1"))
]


def _larger_argument(position: int) -> Callable[[Any], Any]:
    """One of the matrices of a closed form 1 % larger than that which autograd sees."""

    def wrong(right: Any) -> Any:
        return lambda *a: right(*a[:position], 1.01 * a[position], *a[position + 1 :])

    return wrong


def _lemma(name: str, position: int) -> Control:
    plant = changed(anew(draws=3), only=_at("gradients.closed_forms"))
    return Control("the closed form has Φ2 1 % too large", plant, {f"{LEMMAS}.{name}": _larger_argument(position)})


def _without_last(right: Any) -> Any:
    return lambda back, went: right(back[:, :-1], went[:, :-1])


def _by_tokens(exponent: float, kind: str) -> Plant:
    """Critical widths that follow another power of N."""

    def factor(record: Record) -> float:
        return (record.search.task.N / 128) ** exponent  # type: ignore[attr-defined]

    return changed(resized(factor), only=lambda label: label[0] == kind)


def _by_length_and_samples(record: Record) -> float:
    task = record.search.task
    return (task.T / 128) ** 0.4 * (task.samples / 2725) ** 0.3  # type: ignore[attr-defined]


def _more_samples(runs: Runs) -> Runs:
    """Eight times the samples lower nothing."""
    pairs = [
        ((kind, "label", N), (kind + finite.MORE, "label", N)) for kind, asked, N in _asked(runs) if asked == "label"
    ]
    return shuffled(*pairs)(runs)


def _asked(runs: Runs) -> list[tuple[str, str, int]]:
    found = [label for label in runs if isinstance(label, tuple)]
    return [label for label in found if (label[0] + finite.MORE, *label[1:]) in runs]


def _equal_counts(runs: Runs) -> Runs:
    sizes = mean_bias.lines(runs.scale)[mean_bias.CONTROL]
    return instead({(mean_bias.CONTROL, size): (mean_bias.TOKENS, size) for size in sizes})(runs)


def _width_alone(runs: Runs) -> Runs:
    """Few samples write as much as many."""
    few, *_, n = samples.SAMPLES[runs.scale]
    return instead({(samples.N, samples.T, d, few): (samples.N, samples.T, d, n) for d in samples.WIDTHS[runs.scale]})(
        runs
    )


def _samples_alone(runs: Runs) -> Runs:
    narrow, *_, d = samples.WIDTHS[runs.scale]
    return instead(
        {(samples.N, samples.T, narrow, n): (samples.N, samples.T, d, n) for n in samples.SAMPLES[runs.scale]}
    )(runs)


def _no_more_than_narrow(runs: Runs) -> Runs:
    (_, second, *_, d), n = samples.WIDTHS[runs.scale], samples.SAMPLES[runs.scale][-1]
    return instead({(samples.N, samples.T, d, n): (samples.N, samples.T, second, n)})(runs)


def _coins(record: Record) -> Record:
    """The sign of every trigger is that of a coin."""
    N = record.check.sizes["N"]
    return drawn(lambda rng: rng.binomial(N, 0.5) / N, "positive.W_K2")(record)


OPPOSITE = Control(
    "the right order is the opposite one",
    swapped(*(((first, MEMORIES), (first, BACKWARDS)) for first in ("zero", "random"))),
)
RECALLS = [f"recall.{name}" for name in (*MEMORIES, "W_K1.t<T")]

CONTROLS: Controls = {
    "theory.construction": (
        Control("d = 512 does as d = 128 does, and the reverse", swapped(((512, 100), (128, 100)))),
        Control("d = 512 does as d = 64 does, and the reverse", swapped(((512, 100), (64, 100)))),
        Control("d = 256 does as d = 64 does", instead({(256, sharp): (64, sharp) for sharp in (10, 30, 100)})),
    ),
    "theory.finite-slope": (
        Control(
            "widths grow by √N less", lambda runs: _by_tokens(-0.5, finite.SHORT)(_by_tokens(-0.5, finite.LONG)(runs))
        ),
    ),
    "theory.samples": (Control("samples make no difference", _more_samples),),
    "theory.long-slope": (Control("for T = N, too, the width grows like √N", _by_tokens(-0.26, finite.WHOLE)),),
    "theory.lemma4": (_lemma("lemma4_gradient", 3),),
    "theory.lemma5": (_lemma("lemma5_gradient", 4),),
    "theory.backward-vectors": (
        Control(
            "the last position is left out",
            changed(anew(draws=3), only=_at("backward.outer_products")),
            {"engram.theory.backward.sum_outer_products": _without_last},
        ),
    ),
    "theory.mean-bias": (
        Control(
            "signal and noise follow another power of d",
            changed(multiplied(lambda _, row: (row["d"] / 181) ** 0.5, "signal", "noise"), only=_at("drawn")),
        ),
        Control("equal label counts are as noisy", instead({"equal": "drawn"})),
    ),
    "theory.mean-bias-width": (
        Control(
            "widths follow another power of T and n",
            changed(resized(_by_length_and_samples), only=lambda label: isinstance(label, tuple)),
        ),
        Control("equal label counts need as much", _equal_counts),
    ),
    "theory.order-matters": (OPPOSITE,),
    "theory.order-gap": (OPPOSITE,),
    "theory.step1": (LONGER,),
    "theory.step2": (
        LONGER,
        Control("columns of W_K2 do not sum to zero", changed(multiplied(0.9, "W_K2.off"))),
        Control("the diagonal asks for N = 2T²", parts={f"{THREE_STEPS}.least_tokens": lambda _: lambda T: 2.0 * T**2}),
    ),
    "theory.step3": (LONGER, UPHILL[2]),
    "theory.step3-factor": (LONGER,),
    "theory.three-steps": (*UPHILL,),
    "theory.three-steps-answers": (UPHILL[2],),
    "theory.three-steps-later": (UPHILL[2],),
    "theory.step2-finite": (Control("signs are drawn", changed(_coins)),),
    "theory.three-steps-finite": (
        Control("width alone decides", _width_alone),
        Control("samples alone decide", _samples_alone),
        Control("the widest recalls no more than d = 128", _no_more_than_narrow),
    ),
    "theory.three-steps-real": (Control("nothing is recalled", changed(multiplied(0, *RECALLS))),),
}
