"""Controls of the experiments on storing and recall: other exponents, shuffled answers, closed forms that are off."""

from collections.abc import Callable
from math import log, sqrt
from typing import Any

import torch
from torch import Tensor

from engram.claims.controls import Control, Controls
from engram.claims.experiment import Runs
from engram.claims.planting import (
    anew, changed, columns, held, instead, multiplied, resized, rewritten, swapped, together,
)  # fmt: skip
from engram.experiments.memory.dense import NOISE
from engram.experiments.memory.mlp_construction import LOADS, UNITS
from engram.records import Record
from engram.records.files import Row
from engram.theory.collapse import two_valued_accuracy

LEMMAS, ARCHITECTURES, ONE_STEP = (f"engram.theory.{name}" for name in ("lemmas", "architectures", "one_step"))
NOTHING = Control("nothing is learned", changed(held()))


def _at(*wanted: Any) -> Callable[[Any], bool]:
    """Labels that are one of these, or tuples that begin with one."""
    return lambda label: label in wanted or (isinstance(label, tuple) and label[0] in wanted)


def _wider(right: Any) -> Any:
    """Weights 1 % larger than those that autograd sees."""
    return lambda W, *others: right(1.01 * W, *others)


def _closed_form(name: str) -> Control:
    plant = changed(anew(draws=3), only=_at("closed_forms"))
    return Control("the closed form has weights 1 % too large", plant, {f"{LEMMAS}.{name}": _wider})


def _undeclared_decay(right: Any) -> Any:
    return lambda logits, W, *others: right(logits, W, *others) + 1e-6 * W


def _twice_the_first(right: Any) -> Any:
    """U twice as large: the factor 1/2 of W = (d/2d')UV is forgotten."""

    def factors(*arguments: Any) -> Any:
        U, V = right(*arguments)
        return 2 * U, V

    return factors


def _sums_of_two(right: Any) -> Any:
    """The answer to {i, j} is the sum of one for i and one for j."""

    def directions(law: str, n: int, d: int, seed: int, name: str, dtype: torch.dtype) -> Tensor:
        if not name.startswith("sets.V"):
            return right(law, n, d, seed, name, dtype)
        names = round((1 + sqrt(1 + 8 * n)) / 2)
        alone, (i, j) = right(law, names, d, seed, name, dtype), torch.triu_indices(names, names, offset=1)
        return torch.nn.functional.normalize(alone[i] + alone[j], dim=1)

    return directions


def _unscaled(right: Any) -> Any:
    """Entries N(0, 1) where they should be N(0, 1/d)."""
    return lambda law, *others: right("gaussian" if law == "gaussian/d" else law, *others)


def _in_common(right: Any) -> Any:
    """All vectors 5 % longer, and with a part in common."""

    def problems(law: str, count: int, n: int, d: int, *others: Any) -> Tensor:
        return 1.05 * right(law, count, n, d, *others) + 0.2 / sqrt(d)

    return problems


def _one_in_ten(right: Any) -> Any:
    """Every tenth key is stored with the answer of another."""

    def rule(E: Tensor, V: Tensor, *others: Tensor) -> Tensor:
        moved = V.clone()
        moved[..., ::10, :] = V.roll(1, dims=-2)[..., ::10, :]
        return right(E, moved, *others)

    return rule


def _one_pair_swapped(right: Any) -> Any:
    """Two of all keys have exchanged their answers."""

    def step(E: Tensor, U: Tensor, f: Tensor) -> Tensor:
        return right(E, U, torch.cat([f[:2].flip(0), f[2:]]))

    return step


def _noisy_pair_swapped(right: Any) -> Any:
    def step(E: Tensor, P: Tensor, U: Tensor) -> tuple[Tensor, Tensor]:
        W1, _ = right(E, P, torch.cat([U[:2].flip(0), U[2:]]))
        return W1, (E[:, None] + P) @ W1.T @ U.T

    return step


def _not_subtracted(right: Any) -> Any:
    """The gradient without what the model predicts: positions do not cancel."""
    return lambda W, X, U, p: -U.T @ p.T @ X


def _opposite(right: Any) -> Any:
    """A bit takes the sign against its drive."""

    def asynchronous(xi: Tensor, x: Tensor, n: int, bits: tuple[int, ...]) -> Tensor:
        moved = right(xi, x, n, bits=bits).clone()
        moved[:, list(bits)] *= -1
        return moved

    return asynchronous


def _fewer_bits(right: Any) -> Any:
    """A bound that takes one bit for lost."""
    return lambda p, M, bits: right(p, M, max(0, bits - 1))


def _steeper(right: Any) -> Any:
    return lambda N, alpha: right(N, alpha + 0.25)


def _half_norm(right: Any) -> Any:
    """Patterns of half the norm, with which the bound promises not a single one."""
    return lambda xi: right(xi / 2)


def _by_power(exponent: float, at: float) -> Callable[[Record], float]:
    """(md/at)^exponent; a linear memory has m = d."""
    return lambda record: ((getattr(record.store, "m", record.store.d) * record.store.d) / at) ** exponent


def _another_power(exponent: float, at: float) -> Any:
    return changed(resized(_by_power(exponent, at)))


def _other_shapes(record: Record) -> float:
    return (record.store.m / record.store.d / 2) ** 0.5


def _root_of_width(record: Record) -> float:
    return (record.store.d / 90) ** 0.5


def _recall_by_width(record: Record, row: Row) -> Row:
    """Recall by N/d^1.5, with the noise that was measured."""
    d = record.check.sizes["d"]
    return {"accuracy": two_valued_accuracy(row["N"], d * (d / 90) ** 0.5) + row["accuracy"] - row["law"]}


def _lower_powers(record: Record, row: Row) -> float:
    sizes = record.check.sizes
    return (sizes["d"] / 128) ** (-(sizes["n"] - 1) / 2)


def _right_bits_only(runs: Runs) -> Runs:
    """Wrong bits of the cue cost nothing."""
    noise = NOISE[runs.scale]
    shared = {k: max(set(noise[k]) & set(noise[k + 1])) for k in (0, 1)}
    return instead({("exp", k + 1, d): ("exp", k, d) for k, d in shared.items()})(runs)


def _linear_for_cubic(runs: Runs) -> Runs:
    return instead({("cubic", load, m): ("linear", LOADS[-1], m) for load in LOADS for m in UNITS[runs.scale]})(runs)


def _cubic_for_linear(runs: Runs) -> Runs:
    return instead({("linear", LOADS[-1], m): ("cubic", LOADS[-1], m) for m in UNITS[runs.scale]})(runs)


def _falls_at_the_end(runs: Runs) -> Runs:
    """At the most units recall is back at that of a quarter of them."""
    *_, quarter, _, most = UNITS[runs.scale]
    return instead({("cubic", load, most): ("cubic", load, quarter) for load in LOADS})(runs)


def _worst_case(record: Record, row: Row) -> Row:
    return {"sufficient": row["certified"] + 0.5}


def _power_of_width(record: Record, row: Row) -> Row:
    """√d/4: as many bits as were measured at these widths, but no law of log d."""
    return {"sufficient": sqrt(row["d"]) / 4}


def _slower_bits(record: Record, row: Row) -> Row:
    return {"certified": row["certified"] / 2}


def _fewer_margins(record: Record) -> Record:
    return anew(draws=max(4, record.check.draws // 10))(record)


def _twice_as_many(record: Record) -> Record:
    return anew(draws=4, N=2 * record.check.sizes["N"])(record)


def _scale(factor: float) -> Any:
    return changed(resized(lambda record: factor))


def _without_logarithm(record: Record, row: Row) -> float:
    return log(record.check.sizes["d"]) / log(128)


def _one_shape_more(record: Record) -> float:
    return 1.5 if record.store.m == 2 * record.store.d else 1.0


def _breaks_later(runs: Runs) -> Runs:
    """All loads below 0.17 keep their patterns as 0.12 does."""
    loads = [label for label in runs if label[0] == "overlap" and 12 < label[1] < 17]
    return instead(dict.fromkeys(loads, ("overlap", 12)))(runs)


OF_SHAPE = (
    Control("N is 1.5 times as large", _scale(1.5)),
    Control("N grows with m/d at the same md", changed(resized(_other_shapes))),
    Control("the shape m/d = 2 stores 1.5 times as much", changed(resized(_one_shape_more))),
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
            {f"{ARCHITECTURES}.factors": _twice_the_first},
        ),
    ),
    "memory.threshold-mlp": (
        Control("no threshold", changed(anew(), only=_at("threshold")), {f"{ARCHITECTURES}.threshold_bias": lambda _: lambda X: 0.0}),
        Control("no more pairs than the matrix holds", changed(anew(N=64), only=_at("threshold"))),
    ),
    "memory.sets": (
        Control("no threshold", changed(anew(), only=_at("sets")), {f"{ARCHITECTURES}.threshold_bias": lambda _: lambda X: -1.0}),
        Control("answers are sums", changed(anew(), only=_at("sets")), {f"{ARCHITECTURES}.directions": _sums_of_two}),
    ),
    "memory.maximal-updates": (
        Control(
            "entries do not shrink with the width",
            changed(anew(draws=2), only=_at("maximal_updates")),
            {f"{ARCHITECTURES}.directions": _unscaled},
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
        Control("p = 0.01 instead of 0.001", changed(anew(), only=_at("bound")), {"engram.theory.retrieval.SHARE": lambda p: 10 * p}),
        Control(
            "patterns have half the norm, and the bound promises none",
            changed(anew(most=7), only=_at("apart")),
            {"engram.theory.retrieval._least_gap": _half_norm},
        ),
    ),
    "memory.bounds": (
        Control(
            "the bound loses one bit",
            changed(anew(), only=_at("codebooks", "top-k", "power law")),
            {"engram.theory.bounds.loss_lower_bound": _fewer_bits},
        ),
        Control("a steeper law of inputs", changed(anew(), only=_at("power law")), {"engram.theory.bounds.power_law": _steeper}),
        Control(
            "a quarter of the bits used is counted",
            changed(multiplied(4, "ratio"), only=_at("Hebbian", "trained")),
        ),
    ),
    "memory.denoising": (NOTHING, Control("scales are 25 % larger", changed(multiplied(1.25, "alpha", "beta")))),
    "memory.denoising-longer": (
        Control("100 epochs more change nothing", instead({("clusters", "longer"): ("clusters", "softmax")})),
    ),
    "memory.denoising-datasets": (NOTHING,),
    "memory.denoising-bayes": (
        Control("attention always answers zero", changed(columns({"loss.test": "loss.zero"}))),
    ),
    "memory.dense": (
        Control("the exponent is halved", changed(multiplied(_lower_powers, "N"), only=_at("power"))),
        Control("N ∝ d^{n−1}, without the logarithm", changed(multiplied(_without_logarithm, "N"), only=_at("power"))),
    ),
    "memory.exponential": (
        Control("log2 N grows half as fast", changed(rewritten(lambda _, row: {"N": sqrt(row["N"])}), only=_at("exp"))),
        Control("wrong bits cost nothing", _right_bits_only),
    ),
    "memory.hebb-capacity": (
        Control("N grows like d", _another_power(-0.5, 64 * 64)),
        Control("N is twice as large", _scale(2)),
    ),
    "memory.hopfield": (
        Control("loads 0.12 and 0.18 are exchanged", swapped((("overlap", 12), ("overlap", 18)))),
        Control("patterns are attractors up to 0.17 d", _breaks_later),
        Control("twice as many patterns", changed(_twice_as_many, only=_at("no error"))),
        Control(
            "bits move against their drive",
            changed(anew(), only=_at("energy")),
            {"engram.theory.hopfield.asynchronous": _opposite},
        ),
    ),
    "memory.overlaps": (
        Control(
            "vectors are 5 % longer and have a part in common",
            changed(anew(draws=20_000), only=_at("overlaps")),
            {"engram.theory.margins.problems": _in_common},
        ),
    ),
    "memory.lemma1": (_closed_form("lemma1_gradient"),),
    "memory.lemma2": (_closed_form("lemma2_gradient"),),
    "memory.layernorm-gradient": (_closed_form("layernorm_gradient"),),
    "memory.span": (
        Control(
            "a weight decay of 1e-6 that α₀ does not know of",
            changed(anew(draws=2), only=_at("span")),
            {f"{LEMMAS}.differentiate": _undeclared_decay},
        ),
    ),
    "memory.linear-trained": (Control("N grows like d", _another_power(-0.5, 27 * 27)),),
    "memory.low-rank": (*OF_RANK,),
    "memory.low-rank-thin": (
        *OF_RANK,
        Control("the law md holds at m = d too", changed(resized(lambda r: 4 / 3 if r.store.m == r.store.d else 1.0))),
    ),
    "memory.many-to-one": (
        Control(
            "N grows like d^1.5",
            together(
                changed(resized(_root_of_width), only=_at("searches")),
                changed(rewritten(_recall_by_width), only=_at("recall")),
            ),
        ),
    ),
    "memory.margin": (
        Control(
            "one pair in ten has a wrong answer",
            changed(_fewer_margins),
            {"engram.theory.margins.hebb": _one_in_ten, "engram.theory.margins.low_rank": _one_in_ten},
        ),
        Control(
            "the law has its leading terms only, 2/d + 2N/d²",
            parts={"engram.experiments.memory.margin.margin_variance": lambda _: lambda N, d: 2 / d + 2 * N / d**2},
        ),
    ),
    "memory.mlp-construction": (Control("the kernel is linear", _linear_for_cubic),),
    "memory.mlp-construction-holds": (
        Control("the kernel is linear", _linear_for_cubic),
        Control("the linear kernel does not fall", _cubic_for_linear),
        Control("recall falls again at the most units", _falls_at_the_end),
    ),
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
            {f"{ONE_STEP}.clean_step": _one_pair_swapped},
        ),
    ),
    "memory.noise-filtered": (
        Control(
            "what is predicted is not subtracted",
            changed(anew(), only=_at("noisy")),
            {f"{ONE_STEP}.lemma2_gradient": _not_subtracted},
        ),
        Control(
            "two keys have exchanged their answers",
            changed(anew(), only=_at("noisy")),
            {f"{ONE_STEP}.noisy_step": _noisy_pair_swapped},
        ),
    ),
    "memory.quantised": (
        Control("the bits of the worst case are needed", changed(rewritten(_worst_case))),
        Control("worst-case bits grow half as fast", changed(rewritten(_slower_bits))),
        Control("bits grow like a power of the width, √d/4", changed(rewritten(_power_of_width))),
    ),
    "memory.two-inputs": (Control("n² grows like the root of md", _another_power(-0.25, 512)),),
}
