"""Controls of the experiments on steps and dynamics of few memories: other laws of growth, rates without effect."""

from collections.abc import Callable
from math import floor
from typing import Any

from engram.claims.controls import Control, Controls
from engram.claims.experiment import Runs
from engram.claims.planting import (
    alike,
    anew,
    changed,
    columns,
    exchanged_columns,
    held,
    instead,
    multiplied,
    rewritten,
)
from engram.experiments.scaling.oscillation import RATES, WIDTHS
from engram.experiments.scaling.stored import RATES as VISITS
from engram.experiments.scaling.stored import WIDTHS as SINGLE
from engram.records import Record
from engram.records.files import Row
from engram.theory.memory_dynamics import error as pairs_error

LAWS, THEORY, MARGINS = (
    "engram.laws.memory_steps",
    "engram.theory.memory_dynamics",
    "engram.experiments.scaling.margins",
)
RULES = ("error.gradient", "error.sign", "error.normalised")
SCHEDULES = ("error.small", "error.large", "error.decayed")


def _at(*wanted: Any) -> Callable[[Any], bool]:
    return lambda label: label in wanted


def _margins(label: Any) -> bool:
    """Margins of a single token, by (p, rate)."""
    return isinstance(label, tuple)


def _half_as_fast(right: Any) -> Any:
    return lambda m, p, M: right(m, p, M) / 2


def _one_answer_more(right: Any) -> Any:
    return lambda p, M, t: right(p, M + 1, t)


def _half_the_time(right: Any) -> Any:
    return lambda p, M, t: right(p, M, t / 2)


def _wider(right: Any) -> Any:
    """Weights 1 % larger than those that autograd sees."""
    return lambda pairs, W: right(pairs, 1.01 * W)


def _over_all(right: Any) -> Any:
    """The mean over all tokens, of which only the wrong ones count: the first reading."""
    return lambda pairs, logits: pairs_error(pairs, logits) / pairs.answers.shape[0]


def _other_rate(record: Record, row: Row) -> Row:
    """The grid of rates goes from 0.1 to 10: each becomes that on the other side of 1."""
    return {"rate": 1 / row["rate"]}


def _root_of_p(record: Record, row: Row) -> Row:
    return {"q": row["q"] / row["p"] ** 0.5}


def _p_at_every_width(runs: Runs) -> Runs:
    """Single samples store p where d ≫ N as well, and rare tokens are wrong."""
    common = 0.05
    plant = rewritten(lambda record, row: {"q": row["q"] * row["p"], "wrong": int(row["p"] < common)})
    return changed(plant, only=_at(SINGLE[runs.scale][0]))(runs)


def _width_without_effect(runs: Runs) -> Runs:
    wide, narrow = SINGLE[runs.scale]
    return instead({narrow: wide})(runs)


def _rises_anywhere(record: Record, row: Row) -> Row:
    """The loss rises at every tenth step that begins below the edge too."""
    return {"rises": row["rises"] + 0.1 * row["below"], "rises.below": row["rises.below"] + 0.1 * row["below"]}


def _seldom(record: Record, row: Row) -> Row:
    """The error rises in three planes of ten in which it does."""
    return {"risen": floor(0.3 * row["risen"] * record.check.draws) / record.check.draws}


OVER_ALL = {f"{THEORY}.mean_of_wrong": _over_all}
BACKWARDS = {(d, rate): (WIDTHS[-1 - i], RATES[-1 - j]) for i, d in enumerate(WIDTHS) for j, rate in enumerate(RATES)}
TURNED = {("visits", rate): ("visits", VISITS[i - 1]) for i, rate in enumerate(VISITS)}

CONTROLS: Controls = {
    "scaling.log-margins": (
        Control("margins grow half as fast", changed(anew(), only=_margins), {f"{LAWS}.growth": _half_as_fast}),
        Control(
            "the law has one answer more",
            changed(anew(), only=lambda label: _margins(label) or label == "matrix"),
            {f"{LAWS}.margin_at": _one_answer_more},
        ),
        Control("time runs half as fast", parts={f"{MARGINS}.margin_at": _half_the_time}),
    ),
    "scaling.hessian": (
        Control(
            "the closed form has weights 1 % too large",
            changed(anew(draws=2), only=_at("hessian")),
            {f"{THEORY}.hessian": _wider},
        ),
        Control(
            "the gradient has weights 1 % too large",
            changed(anew(draws=2), only=_at("hessian")),
            {f"{THEORY}.gradient": _wider},
        ),
    ),
    "scaling.spikes": (
        Control("p = 0.74 instead of 0.75", changed(anew(p=0.74), only=_margins)),
        Control("all tokens overlap by 0.9", changed(anew(a=0.9), only=_margins)),
        Control("all steps are 3", changed(anew(rate=3.0), only=_margins)),
    ),
    "scaling.large-steps-faster": (
        Control("smaller steps are faster", changed(rewritten(_other_rate), only=_at("grid"))),
        Control(
            "the step size has no effect",
            changed(rewritten(lambda record, row: {"first": 20.0}), only=_at("grid")),
        ),
    ),
    "scaling.decay-helps": (
        Control("decaying steps are small from the start", changed(columns({"error.decayed": "error.small"}, 0.01))),
        Control("the small step is the one that decays", changed(exchanged_columns(("error.decayed", "error.small")))),
    ),
    "scaling.decay-numbers": (
        Control("errors are 1.5 times as large", changed(multiplied(1.5, *SCHEDULES), only=_at("schedules"))),
        Control(
            "the decay has no effect", changed(columns({"error.decayed": "error.large"}, 0.01), only=_at("schedules"))
        ),
    ),
    "scaling.normalised-steps": (
        Control("gradients and signs are exchanged", changed(exchanged_columns(RULES[:2]), only=_at("rules"))),
        Control(
            "gradients and normalised ones are exchanged",
            changed(exchanged_columns((RULES[0], RULES[2])), only=_at("rules")),
        ),
    ),
    "scaling.normalised-numbers": (
        Control("errors are twice as large", changed(multiplied(2, *RULES), only=_at("rules"))),
        Control(
            "all steps are plain gradients",
            changed(columns(dict.fromkeys(RULES[1:], RULES[0]), 0.01), only=_at("rules")),
        ),
    ),
    "scaling.decay-helps-30": (
        Control("decaying steps are small from the start", changed(columns({"error.decayed": "error.small"}, 0.01))),
        Control("the small step is the one that decays", changed(exchanged_columns(("error.decayed", "error.small")))),
    ),
    "scaling.decay-numbers-30": (
        Control("errors are 1.5 times as large", changed(multiplied(1.5, *SCHEDULES), only=_at("schedules"))),
        Control(
            "the decay has no effect", changed(columns({"error.decayed": "error.large"}, 0.01), only=_at("schedules"))
        ),
    ),
    "scaling.q-dynamics-1000": (
        Control(
            "the approximation is the real one",
            changed(exchanged_columns(("error.real", "error.scalar")), only=_at("recursion")),
        ),
        Control(
            "errors are 1.5 times as large",
            changed(multiplied(1.5, "error.real", "error.scalar"), only=_at("recursion")),
        ),
    ),
    "scaling.mean-of-wrong": (
        Control("the error over the number of tokens", changed(anew(), only=_at("wrong")), OVER_ALL),
        Control(
            "all steps are plain gradients",
            changed(columns(dict.fromkeys(("p.sign", "p.normalised"), "p.gradient"), 0.01), only=_at("wrong")),
        ),
    ),
    "scaling.one-step-stores-p": (
        Control("the root of p is stored", changed(rewritten(_root_of_p), only=_at("one step"))),
    ),
    "scaling.batch-one-stores-one": (
        Control("p is stored, and rare tokens are wrong", _p_at_every_width),
        Control("the width has no effect", _width_without_effect),
    ),
    "scaling.q-dynamics": (
        Control(
            "the approximation is the real one",
            changed(exchanged_columns(("error.real", "error.scalar")), only=_at("narrow")),
        ),
        Control("errors are 1.5 times as large", changed(multiplied(1.5, "error.real", "error.scalar"))),
    ),
    "scaling.q-dynamics-width": (
        Control("small widths are the good ones", instead({"wide": "narrow", "narrow": "wide"})),
    ),
    "scaling.stored-exponents": (Control("step sizes are exchanged", instead(TURNED)),),
    "scaling.induction-large-steps": (
        Control("nothing is learned", changed(held())),
        Control("steps of 20 are the soonest", instead({20.0: 200.0, 200.0: 20.0})),
    ),
    "scaling.oscillation": (
        Control("smaller steps and larger widths oscillate more", instead(BACKWARDS)),
        Control("neither step nor width has an effect", alike(only=_margins)),
    ),
    "scaling.edge-of-stability": (
        Control("the loss rises below the edge too", changed(rewritten(_rises_anywhere))),
        Control("the loss hardly ever rises", changed(multiplied(0.001, "rises", "rises.below"))),
    ),
    "scaling.over-optimisation": (
        Control("three tokens, most of which can all be right", changed(anew(N=3), only=_at(30))),
        Control("errors rise in few planes", changed(rewritten(_seldom), only=_at("path"))),
    ),
}
