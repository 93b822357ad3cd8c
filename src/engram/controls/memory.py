"""Controls of the experiments on storing and recall: other exponents, shuffled answers, closed forms that are off."""

from collections.abc import Callable
from math import sqrt
from typing import Any

from engram.claims.controls import Control, Controls
from engram.claims.planting import (
    Plant,
    anew,
    changed,
    held,
    instead,
    multiplied,
    resized,
    rewritten,
    swapped,
)
from engram.controls import memory_worlds as worlds

LEMMAS, ARCHITECTURES, ONE_STEP = (f"engram.theory.{name}" for name in ("lemmas", "architectures", "one_step"))
NOTHING = Control("nothing is learned", changed(held()))


def _at(*wanted: Any) -> Callable[[Any], bool]:
    """Labels that are one of these, or tuples that begin with one."""
    return lambda label: label in wanted or (isinstance(label, tuple) and label[0] in wanted)


def _closed_form(name: str) -> Control:
    plant = changed(anew(draws=3), only=_at("closed_forms"))
    return Control("the closed form has weights 1 % too large", plant, {f"{LEMMAS}.{name}": worlds.wider})


def _another_power(exponent: float, at: float) -> Plant:
    return changed(resized(worlds.by_power(exponent, at)))


def _scale(factor: float) -> Plant:
    return changed(resized(lambda record: factor))


OF_SHAPE = (
    Control("N is 1.5 times as large", _scale(1.5)),
    Control("N grows with m/d at the same md", changed(resized(worlds.other_shapes))),
    Control("the shape m/d = 2 stores 1.5 times as much", changed(resized(worlds.one_shape_more))),
)
OF_RANK = (
    Control("N grows like the root of md", _another_power(-0.5, 64 * 128)),
    Control("N depends on m alone", changed(resized(lambda record: 128 / record.store.d))),
    Control("N depends on d alone", changed(resized(lambda record: 64 / record.store.m))),
)

CONTROLS: Controls = {
    "memory.factorised": (
        Control(
            "the factor 1/2 is forgotten",
            changed(anew(draws=20), only=lambda label: label == ("factors", 64)),
            {f"{ARCHITECTURES}.factors": worlds.twice_the_first},
        ),
    ),
    "memory.threshold-mlp": (
        Control(
            "no threshold",
            changed(anew(), only=_at("threshold")),
            {f"{ARCHITECTURES}.threshold_bias": lambda _: lambda X: 0.0},
        ),
        Control("192 pairs instead of 2048", changed(anew(N=192), only=_at("threshold"))),
    ),
    "memory.sets": (
        Control(
            "no threshold",
            changed(anew(), only=_at("sets")),
            {f"{ARCHITECTURES}.threshold_bias": lambda _: lambda X: -1.0},
        ),
        Control(
            "a good part of an answer is a sum",
            changed(anew(), only=_at("sets")),
            {f"{ARCHITECTURES}.directions": worlds.sums_of_two},
        ),
    ),
    "memory.maximal-updates": (
        Control(
            "entries do not shrink with the width",
            changed(anew(draws=2), only=_at("maximal_updates")),
            {f"{ARCHITECTURES}.directions": worlds.unscaled},
        ),
    ),
    "memory.attention-is-retrieval": (
        Control(
            "the energy has a β 1 % too large",
            changed(anew(draws=5), only=_at("steps")),
            {"engram.theory.retrieval.dam_energy": lambda right: lambda s, X, a, b: right(s, X, a, 1.01 * b)},
        ),
    ),
    "memory.ramsauer-constant": (
        Control(
            "p = 0.01 instead of 0.001",
            changed(anew(), only=_at("bound")),
            {"engram.theory.retrieval.SHARE": lambda p: 10 * p},
        ),
    ),
    "memory.bounds": (
        Control(
            "the bound loses one bit",
            changed(anew(), only=_at("codebooks", "top-k", "power law")),
            {"engram.theory.bounds.loss_lower_bound": worlds.fewer_bits},
        ),
        Control(
            "a steeper law of inputs",
            changed(anew(), only=_at("power law")),
            {"engram.theory.bounds.power_law": worlds.steeper},
        ),
    ),
    "memory.denoising": (NOTHING, Control("scales are 25 % larger", changed(multiplied(1.25, "alpha", "beta")))),
    "memory.denoising-floor": (NOTHING, Control("the error is 10 % larger", changed(multiplied(1.1, "loss.test")))),
    "memory.denoising-longer": (
        Control("100 epochs more change nothing", instead({("clusters", "longer"): ("clusters", "softmax")})),
    ),
    "memory.denoising-datasets": (NOTHING,),
    "memory.dense": (
        Control("the exponent is halved", changed(multiplied(worlds.lower_powers, "N"), only=_at("power"))),
        Control("N ∝ d^{n−1}, no logarithm", changed(multiplied(worlds.without_logarithm, "N"), only=_at("power"))),
    ),
    "memory.exponential": (
        Control("log2 N grows half as fast", changed(rewritten(lambda _, row: {"N": sqrt(row["N"])}), only=_at("exp"))),
        Control("wrong bits cost nothing", worlds.right_bits_only),
    ),
    "memory.hebb-capacity": (Control("N grows like d", _another_power(-0.5, 64 * 64)),),
    "memory.hebb-constant": (Control("N is twice as large", _scale(2)),),
    "memory.hopfield": (
        Control("loads 0.12 and 0.18 are exchanged", swapped((("overlap", 12), ("overlap", 18)))),
        Control("patterns are attractors up to 0.17 d", worlds.breaks_later),
        Control("twice as many patterns", changed(worlds.twice_as_many, only=_at("no error"))),
        Control(
            "bits move against their drive",
            changed(anew(), only=_at("energy")),
            {"engram.theory.hopfield.asynchronous": worlds.opposite},
        ),
    ),
    "memory.overlaps": (
        Control(
            "vectors are 5 % longer and have a part in common",
            changed(anew(draws=8_000), only=_at("overlaps")),
            {"engram.theory.margins.problems": worlds.in_common},
        ),
    ),
    "memory.lemma1": (_closed_form("lemma1_gradient"),),
    "memory.lemma2": (_closed_form("lemma2_gradient"),),
    "memory.layernorm-gradient": (_closed_form("layernorm_gradient"),),
    "memory.span": (
        Control(
            "a weight decay of 1e-6 that α₀ does not know of",
            changed(anew(draws=2), only=_at("span")),
            {f"{LEMMAS}.differentiate": worlds.undeclared_decay},
        ),
    ),
    "memory.linear-trained": (Control("N grows like d", _another_power(-0.5, 27 * 27)),),
    "memory.low-rank": (*OF_RANK,),
    "memory.low-rank-thin": (
        *OF_RANK,
        Control("the law md holds at m = d too", changed(resized(lambda r: 4 / 3 if r.store.m == r.store.d else 1.0))),
    ),
    "memory.many-to-one": (
        Control("N grows like d^1.5", changed(resized(worlds.root_of_width), only=_at("searches"))),
    ),
    "memory.many-to-one-law": (
        Control("recall depends on N/d^1.5", changed(rewritten(worlds.recall_by_width), only=_at("recall"))),
    ),
    "memory.margin": (
        Control(
            "one pair in ten has a wrong answer",
            changed(worlds.fewer_margins),
            {"engram.theory.margins.hebb": worlds.one_in_ten, "engram.theory.margins.low_rank": worlds.one_in_ten},
        ),
        Control(
            "the law has its leading terms only, 2/d + 2N/d²",
            parts={"engram.experiments.memory.margin.margin_variance": lambda _: lambda N, d: 2 / d + 2 * N / d**2},
        ),
    ),
    "memory.mlp-construction": (Control("the kernel is linear", worlds.linear_for_cubic),),
    "memory.mlp-construction-holds": (
        Control("the kernel is linear", worlds.linear_for_cubic),
        Control("the linear kernel does not fall", worlds.cubic_for_linear),
        Control("recall falls again at the most units", worlds.falls_at_the_end),
    ),
    "memory.mlp-construction-ends": (Control("recall stays as it is at m = 1024", worlds.stays_at_the_end),),
    "memory.mlp-fixed-outputs": (
        Control("N grows like the root of md", _another_power(-0.5, 256)),
        Control("N ln N is proportional to md", _another_power(-0.26, 256)),
        *OF_SHAPE,
    ),
    "memory.mlp-trained": (
        Control("N grows like the root of md", _another_power(-0.5, 450)),
        Control("N is proportional to md, without the logarithm", _another_power(0.13, 450)),
        *OF_SHAPE,
    ),
    "memory.one-step": (
        Control(
            "two keys have exchanged their answers",
            changed(anew(), only=_at("clean")),
            {f"{ONE_STEP}.clean_step": worlds.one_pair_swapped},
        ),
    ),
    "memory.noise-filtered": (
        Control(
            "what is predicted is not subtracted",
            changed(anew(), only=_at("noisy")),
            {f"{ONE_STEP}.lemma2_gradient": worlds.not_subtracted},
        ),
        Control(
            "two keys have exchanged their answers",
            changed(anew(), only=_at("noisy")),
            {f"{ONE_STEP}.noisy_step": worlds.noisy_pair_swapped},
        ),
    ),
    "memory.quantised": (
        Control("worst-case bits grow half as fast", changed(rewritten(worlds.slower_bits))),
        Control("worst-case bits grow like the root of the width", changed(rewritten(worlds.powers_of_width))),
    ),
    "memory.bits-to-spare": (
        Control("the bits of the worst case are needed", changed(rewritten(worlds.worst_case))),
        Control("bits grow like a power of the width, √d/4", changed(rewritten(worlds.power_of_width))),
    ),
    "memory.two-inputs": (Control("n² grows like the root of md", _another_power(-0.25, 512)),),
}
