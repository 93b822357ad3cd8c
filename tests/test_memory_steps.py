"""Laws of few memories at small sizes: limits that are known, and what must be equal."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engram.laws import memory_steps, stored_weights
from engram.values import Rows


def column(law: Callable[..., Rows], name: str, **sizes: Any) -> np.ndarray:
    return np.array([row[name] for row in law(**({"draws": 4, "seed": 0} | sizes))])


@pytest.mark.parametrize("sizes", [{"N": 3, "M": 2, "d": 2}, {"N": 6, "M": 4, "d": 5}])
def test_the_hessian_is_that_of_autograd(sizes: dict[str, int]) -> None:
    for name in ("gradient", "hessian"):
        assert column(memory_steps.closed_forms, name, **sizes).max() < 1e-10


def test_small_steps_give_the_margins_of_the_flow() -> None:
    sizes = {"p": 0.3, "M": 4, "rate": 1e-3, "until": 2.0}
    margins, expected = (column(memory_steps.margin_flow, name, **sizes) for name in ("margin", "law"))
    assert margins == pytest.approx(expected, abs=1e-3)
    assert column(memory_steps.orthogonal_margins, "difference", until=0.5).max() < 1e-3


def test_the_grid_has_the_published_cells() -> None:
    """η = 10 and a = 0.944 lie beside the published a = 0.95; a = 1 is never perfect."""
    rows = list(memory_steps.first_perfect_steps(draws=200, seed=0, points=4))
    assert len(rows) == 64
    assert {round(row["p"], 3) for row in rows} >= {0.578, 0.959}
    assert all(row["first"] == 201 for row in rows if row["a"] == 1)
    assert all(row["first"] <= 200 for row in rows if row["a"] == 0.5 and row["rate"] == 10)


def test_the_grid_is_that_of_single_paths() -> None:
    for row in memory_steps.first_perfect_steps(draws=60, seed=0, points=3):
        path = memory_steps.two_tokens(row["a"], row["p"], row["rate"], 60)
        reached = path.first_perfect if row["a"] < 1 else None
        assert row["first"] == (61 if reached is None else reached)


def test_one_step_from_zero_stores_the_share_of_a_token() -> None:
    sizes = {"N": 6, "d": 12, "batch": 50, "rate": 3.0, "steps": 1}
    seen, q = (column(stored_weights.stored_weights, name, **sizes) for name in ("seen", "q"))
    assert q == pytest.approx(3 * seen, abs=1e-10)


def test_where_tokens_do_not_overlap_a_visit_with_a_large_step_stores_one() -> None:
    sizes = {"N": 6, "d": 1500, "batch": 1, "rate": 10.0, "steps": 60, "draws": 2, "alpha": 1.0}
    seen, q = (column(stored_weights.stored_weights, name, **sizes) for name in ("seen", "q"))
    assert q[seen > 0] == pytest.approx(10, rel=0.3)
    assert np.abs(q[seen == 0]).max(initial=0) < 1e-6


def test_schedules_part_only_where_they_turn() -> None:
    names = [f"error.{name}" for name in ("large", "decayed", "small")]
    large, decayed, small = (column(stored_weights.schedules, name, steps=60, turn=30) for name in names)
    samples = column(stored_weights.schedules, "samples", steps=60, turn=30)
    assert (large[samples <= 30] == decayed[samples <= 30]).all()
    assert (large != decayed).any()
    assert (large != small).any()


def test_rules_begin_alike_and_the_sign_does_not_know_the_size() -> None:
    first = [column(stored_weights.rules, f"error.{rule}", steps=2)[0] for rule in ("gradient", "sign", "normalised")]
    assert first[0] == first[1] == first[2]
    once, twice = (column(stored_weights.rules, "error.gradient", steps=1, rate=rate)[1] for rate in (1.0, 2.0))
    assert once == twice  # one step from 0: the error does not know its size


def test_wrong_tokens_are_those_of_the_errors() -> None:
    """Of one memory the error is the mean p of its wrong tokens times their number, and 0 where that is 0."""
    for rule in ("gradient", "sign", "normalised"):
        errors = column(stored_weights.rules, f"error.{rule}", draws=1, steps=30)
        means = column(stored_weights.wrong_tokens, f"p.{rule}", draws=1, steps=30)
        number = np.divide(errors, means, out=np.zeros(31), where=means > 0)
        assert number == pytest.approx(number.round(), abs=1e-9)
        assert ((errors == 0) == (means == 0)).all()
        assert number[0] == 8  # from W = 0 the first answer is given, which two tokens of ten have


def test_the_recursion_begins_as_descent_does() -> None:
    """One step: both write shares, the recursion without the mean of the answers."""
    real, scalar = (
        column(stored_weights.approximation, f"error.{n}", d=400, N=10, steps=1) for n in ("real", "scalar")
    )
    assert real[0] == scalar[0]
    assert real[1] == pytest.approx(scalar[1], abs=0.05)


def test_oscillation_is_none_where_steps_are_small() -> None:
    rows = list(memory_steps.oscillating_margins(draws=3, seed=0, d=10, rate=0.01, steps=5))
    assert all(row["edge"] < 0.1 and row["rises"] == 0 and row["below"] == 3 for row in rows)
    large = list(memory_steps.oscillating_margins(draws=3, seed=0, d=2, rate=100.0, steps=5))
    assert sum(row["rises"] for row in large) > 0


def test_two_tokens_in_the_plane_are_never_forgotten() -> None:
    assert column(memory_steps.forgotten_tokens, "excess", N=2, draws=50).max() < 1e-12
    assert column(memory_steps.forgotten_tokens, "excess", N=12, draws=50).min() > -1e-12


def test_a_path_begins_where_the_published_one_does() -> None:
    rows = list(memory_steps.forgetful_path(draws=3, seed=0, steps=20))
    assert (rows[0]["gamma.0"], rows[0]["gamma.1"], rows[0]["risen"]) == (7.5, 2.5, 0.0)
    assert rows[-1]["loss.flow"] < rows[0]["loss.flow"]
