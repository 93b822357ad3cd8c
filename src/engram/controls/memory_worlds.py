"""Worlds in which the sentences on storing and recall are false: wrong code, other laws, other labels."""

from collections.abc import Callable
from math import log, log2, sqrt
from typing import Any

import torch
from torch import Tensor

from engram.claims.experiment import Runs
from engram.claims.planting import anew, instead
from engram.experiments.memory.dense import NOISE
from engram.experiments.memory.mlp_construction import LOADS, MORE_UNITS, UNITS
from engram.records import Record
from engram.records.files import Row
from engram.theory.collapse import two_valued_accuracy


def wider(right: Any) -> Any:
    """Weights 1 % larger than those that autograd sees."""
    return lambda W, *others: right(1.01 * W, *others)


def undeclared_decay(right: Any) -> Any:
    return lambda logits, W, *others: right(logits, W, *others) + 1e-6 * W


def twice_the_first(right: Any) -> Any:
    """U twice as large: the factor 1/2 of W = (d/2d')UV is forgotten."""

    def factors(*arguments: Any) -> Any:
        U, V = right(*arguments)
        return 2 * U, V

    return factors


def sums_of_two(right: Any) -> Any:
    """The answer to {i, j} is the sum of one for i, one for j, and a part of its own."""

    def directions(law: str, n: int, d: int, seed: int, name: str, dtype: torch.dtype) -> Tensor:
        if not name.startswith("sets.V"):
            return right(law, n, d, seed, name, dtype)
        names = round((1 + sqrt(1 + 8 * n)) / 2)
        alone, (i, j) = right(law, names, d, seed, name, dtype), torch.triu_indices(names, names, offset=1)
        own = right(law, n, d, seed, f"{name}.own", dtype)
        return torch.nn.functional.normalize(alone[i] + alone[j] + 2.2 * own, dim=1)

    return directions


def unscaled(right: Any) -> Any:
    """Entries N(0, 1) where they should be N(0, 1/d)."""
    return lambda law, *others: right("gaussian" if law == "gaussian/d" else law, *others)


def in_common(right: Any) -> Any:
    """All vectors 5 % longer, and with a part in common."""

    def problems(law: str, count: int, n: int, d: int, *others: Any) -> Tensor:
        return 1.05 * right(law, count, n, d, *others) + 0.2 / sqrt(d)

    return problems


def one_in_ten(right: Any) -> Any:
    """Every tenth key is stored with the answer of another."""

    def rule(E: Tensor, V: Tensor, *others: Tensor) -> Tensor:
        moved = V.clone()
        moved[..., ::10, :] = V.roll(1, dims=-2)[..., ::10, :]
        return right(E, moved, *others)

    return rule


def one_pair_swapped(right: Any) -> Any:
    """Two of all keys have exchanged their answers."""

    def step(E: Tensor, U: Tensor, f: Tensor) -> Tensor:
        return right(E, U, torch.cat([f[:2].flip(0), f[2:]]))

    return step


def noisy_pair_swapped(right: Any) -> Any:
    def step(E: Tensor, P: Tensor, U: Tensor) -> tuple[Tensor, Tensor]:
        W1, _ = right(E, P, torch.cat([U[:2].flip(0), U[2:]]))
        return W1, (E[:, None] + P) @ W1.T @ U.T

    return step


def not_subtracted(right: Any) -> Any:
    """The gradient without what the model predicts: positions do not cancel."""
    return lambda W, X, U, p: -U.T @ p.T @ X


def opposite(right: Any) -> Any:
    """A bit takes the sign against its drive."""

    def asynchronous(xi: Tensor, x: Tensor, n: int, bits: tuple[int, ...]) -> Tensor:
        moved = right(xi, x, n, bits=bits).clone()
        moved[:, list(bits)] *= -1
        return moved

    return asynchronous


def fewer_bits(right: Any) -> Any:
    """A bound that takes one bit for lost."""
    return lambda p, M, bits: right(p, M, max(0, bits - 1))


def steeper(right: Any) -> Any:
    return lambda N, alpha: right(N, alpha + 0.25)


def half_norm(right: Any) -> Any:
    """Patterns of half the norm, with which the bound promises not a single one."""
    return lambda xi: right(xi / 2)


def by_power(exponent: float, at: float) -> Callable[[Record], float]:
    """(md/at)^exponent; a linear memory has m = d."""
    return lambda record: ((getattr(record.store, "m", record.store.d) * record.store.d) / at) ** exponent


def other_shapes(record: Record) -> float:
    return (record.store.m / record.store.d / 2) ** 0.5


def root_of_width(record: Record) -> float:
    return (record.store.d / 90) ** 0.5


def recall_by_width(record: Record, row: Row) -> Row:
    """Recall by N/d^1.5, with the noise that was measured."""
    d = record.check.sizes["d"]
    return {"accuracy": two_valued_accuracy(row["N"], d * (d / 90) ** 0.5) + row["accuracy"] - row["law"]}


def lower_powers(record: Record, row: Row) -> float:
    sizes = record.check.sizes
    return (sizes["d"] / 128) ** (-(sizes["n"] - 1) / 2)


def right_bits_only(runs: Runs) -> Runs:
    """Wrong bits of the cue cost nothing."""
    noise = NOISE[runs.scale]
    shared = {k: max(set(noise[k]) & set(noise[k + 1])) for k in (0, 1)}
    return instead({("exp", k + 1, d): ("exp", k, d) for k, d in shared.items()})(runs)


def linear_for_cubic(runs: Runs) -> Runs:
    return instead({("cubic", load, m): ("linear", LOADS[-1], m) for load in LOADS for m in UNITS[runs.scale]})(runs)


def cubic_for_linear(runs: Runs) -> Runs:
    return instead({("linear", LOADS[-1], m): ("cubic", LOADS[-1], m) for m in UNITS[runs.scale]})(runs)


def falls_at_the_end(runs: Runs) -> Runs:
    """At the most units recall is back at that of a quarter of them."""
    *_, quarter, _, most = UNITS[runs.scale]
    return instead({("cubic", load, most): ("cubic", load, quarter) for load in LOADS})(runs)


def stays_at_the_end(runs: Runs) -> Runs:
    first, *others = MORE_UNITS[runs.scale]
    return instead({("cubic", LOADS[-1], m): ("cubic", LOADS[-1], first) for m in others})(runs)


def worst_case(record: Record, row: Row) -> Row:
    return {"sufficient": 1.1 * row["certified"]}


def power_of_width(record: Record, row: Row) -> Row:
    """√d/4: as many bits as were measured at these widths, but no law of log d."""
    return {"sufficient": sqrt(row["d"]) / 4}


def slower_bits(record: Record, row: Row) -> Row:
    return {"certified": row["certified"] / 2}


def powers_of_width(record: Record, row: Row) -> Row:
    """Worst-case bits that grow like √d, with the noise of those that were measured."""
    return {"certified": row["certified"] * sqrt(row["d"]) / (2 * log2(row["d"]))}


def fewer_margins(record: Record) -> Record:
    return anew(draws=max(4, record.check.draws // 10))(record)


def twice_as_many(record: Record) -> Record:
    return anew(draws=4, N=2 * record.check.sizes["N"])(record)


def without_logarithm(record: Record, row: Row) -> float:
    return log(record.check.sizes["d"]) / log(128)


def one_shape_more(record: Record) -> float:
    return 1.5 if record.store.m == 2 * record.store.d else 1.0


def breaks_later(runs: Runs) -> Runs:
    """All loads below 0.17 keep their patterns as 0.12 does."""
    loads = [label for label in runs if label[0] == "overlap" and 12 < label[1] < 17]
    return instead(dict.fromkeys(loads, ("overlap", 12)))(runs)
