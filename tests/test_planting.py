"""Planted records: the same format, other numbers; what lies on disk and what the code is stays as it was."""

import numpy as np
import pytest

from engram.claims.experiment import Runs
from engram.claims.ledger import Index, best_runs
from engram.claims.planting import (
    alike,
    anew,
    changed,
    columns,
    drawn,
    exchanged,
    exchanged_columns,
    grafted,
    held,
    instead,
    multiplied,
    resized,
    shuffled,
    swapped,
)
from engram.claims.readings import birth, capacity, late_mean
from engram.experiments import find
from engram.records.files import COMMITTED
from engram.theory import lemmas


def runs_of(name: str) -> Runs:
    best = best_runs(find(name), Index.of([COMMITTED]))
    assert best is not None
    return best[0]


@pytest.fixture(scope="module")
def joint() -> Runs:
    return runs_of("birth.joint")


@pytest.fixture(scope="module")
def hebb() -> Runs:
    return runs_of("memory.hebb-capacity")


def test_nothing_is_learned_in_a_held_record(joint: Runs) -> None:
    real, planted = joint["joint"][0], changed(held())(joint)["joint"][0]
    first = real.curve("accuracy.in_context")[1][:5]
    end = real.train.steps
    assert late_mean(real, "accuracy.in_context", end) > 0.9
    assert late_mean(planted, "accuracy.in_context", end) == pytest.approx(first.mean(), abs=0.01)
    assert planted.columns == real.columns
    assert len(planted.rows) == len(real.rows)
    assert birth(planted, "recall.W_K2") is None


def test_columns_are_exchanged_and_the_record_is_not_touched(joint: Runs) -> None:
    real = joint["joint"][0]
    planted = exchanged_columns(("recall.W_O2", "recall.W_K2"))(real)
    assert birth(planted, "recall.W_O2") == birth(real, "recall.W_K2") != birth(real, "recall.W_O2")
    assert np.array_equal(
        columns({"loss": "accuracy.in_context"})(real).column("loss"), real.column("accuracy.in_context")
    )
    assert real.rows == type(real)(real.place).rows


def test_labels_are_exchanged_in_all_or_in_every_other_seed(hebb: Runs) -> None:
    assert swapped((16, 32))(hebb)[16] == hebb[32]
    mixed = shuffled((16, 32))(hebb)
    assert mixed[16] == [hebb[32][0], hebb[16][1], hebb[32][2], hebb[16][3], hebb[32][4]]
    assert mixed[32][0] == hebb[16][0]
    assert instead({16: 32})(hebb)[16] == [*hebb[32][1:], hebb[32][0]]


def test_alike_labels_hold_the_same_records_in_another_order(hebb: Runs) -> None:
    planted = alike(64, only=lambda label: label in (16, 32))(hebb)
    assert planted[16] == hebb[64]
    assert planted[32] == [*hebb[64][1:], hebb[64][0]]
    assert planted[64] == hebb[64]


def test_a_resized_search_turns_elsewhere(hebb: Runs) -> None:
    real = hebb[64][0]
    assert capacity(resized(lambda record: 2.0)(real)) == pytest.approx(2 * capacity(real), rel=0.01)
    assert capacity(resized(lambda record: 0.01)(real)) < 10  # small sizes stay apart


def test_a_graft_keeps_the_spec(hebb: Runs) -> None:
    schedules = runs_of("birth.fig3")
    planted = grafted({"W_O2 frozen": "joint"}, "recall.W_K2")(schedules)["W_O2 frozen"][0]
    own, other = schedules["W_O2 frozen"][0], schedules["joint"][1]
    assert planted.spec == own.spec
    assert np.array_equal(planted.column("recall.W_K2"), other.column("recall.W_K2"), equal_nan=True)
    assert np.array_equal(planted.column("recall.W_O2"), own.column("recall.W_O2"), equal_nan=True)


def test_noise_differs_between_seeds_and_not_between_calls() -> None:
    records = runs_of("theory.order")["random", ("W_O2", "W_K2", "W_K1")][:2]
    noise = drawn(lambda rng: rng.normal(), "recall.W_O2")
    first, second = (noise(record).rows[0]["recall.W_O2"] for record in records)
    assert first != second
    assert first == noise(records[0]).rows[0]["recall.W_O2"]
    assert multiplied(2, "recall.W_O2")(records[0]).rows[0]["recall.W_O2"] == 2 * records[0].rows[0]["recall.W_O2"]


def test_a_check_is_measured_anew_with_wrong_code() -> None:
    record = runs_of("memory.lemmas")["closed_forms"][0]
    with exchanged({"engram.theory.lemmas.lemma1_gradient": lambda right: lambda *a: 2 * right(*a)}):
        planted = anew(draws=2)(record)
    assert min(planted.column("lemma1")) > 1e-3
    assert max(planted.column("lemma2")) < 1e-12
    assert max(anew(draws=2)(record).column("lemma1")) < 1e-12
    assert anew(draws=2, A=3)(record).check.sizes["A"] == 3


def test_the_right_code_is_back_after_an_error() -> None:
    right = lemmas.lemma1_gradient
    with pytest.raises(ZeroDivisionError), exchanged({"engram.theory.lemmas.lemma1_gradient": lambda right: None}):
        raise ZeroDivisionError
    assert lemmas.lemma1_gradient is right
