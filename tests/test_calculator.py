"""The calculator: theory and records beside each other, both ways round, and what makes no sense told in a sentence."""

import json
import subprocess
import sys
from collections.abc import Callable
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engram
from engram.calculator.answers import Answer, size_needed
from engram.calculator.kinds import FACTS, KINDS, LINEAR, foretold
from engram.calculator.measured import fit_to
from engram.calculator.predict import predict
from engram.calculator.shapes import mlp_with, transformer, transformer_with
from engram.calculator.words import lines_of
from engram.calculator.zipf import Tail
from engram.claims import Runs
from engram.embeddings import directions
from engram.errors import EngramError
from engram.experiments.scaling import prediction
from engram.facts.learn import SPARE, proposed, spec_of_file
from engram.memory.rules import hebb
from engram.models.factual import Factual
from engram.tasks.zipf import Zipf
from engram.theory.bounds import power_law
from engram.theory.prediction import counts_error, exponents, hebb_error, least_size, threshold_error, unseen

COUNTRIES = Path(__file__).parent.parent / "examples" / "countries.csv"


def asked(*words: Any, **more: Any) -> Answer:
    found = predict(*words, **more)
    assert isinstance(found, Answer)
    return found


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("wanted", [1, 7, 100, 12345])
def test_theory_asks_for_the_least_size_that_holds_it(name: str, wanted: int) -> None:
    law, size = KINDS[name].law, least_size(KINDS[name].law, wanted)
    assert law(size) >= wanted
    assert size == 1 or law(size - 1) < wanted


@pytest.mark.parametrize("name", KINDS)
def test_both_ways_round_agree(name: str) -> None:
    """The size that so much needs holds so much, at the middle and at both ends of the interval."""
    kind = KINDS[name]
    held = foretold(kind, fit_to(name), fit_to(name).high / 2)[1]
    size = size_needed(kind, held).measured
    assert size.low is not None
    assert size.high is not None
    assert size.low < size.value < size.high
    assert size.value == pytest.approx(fit_to(name).high / 2)
    low, middle, high = (foretold(kind, fit_to(name), one) for one in (size.low, size.value, size.high))
    assert (low[2], middle[1], high[0]) == pytest.approx((held, held, held), rel=0.02)


def test_a_trained_matrix_is_fitted_in_what_theory_says_is_a_power_law() -> None:
    found = asked("linear", width=64)
    N = found.measured.value
    assert N * log(N) == pytest.approx(np.exp(fit_to("linear").intercept) * 64 ** fit_to("linear").exponent)
    assert not found.extrapolated
    assert found.theory == LINEAR.law(64)


def test_an_answer_says_what_it_rests_on() -> None:
    inside, beyond, far = (asked("hebb", width=d) for d in (100, 1024, 256 * 9))
    assert (inside.factor, beyond.factor, far.factor) == pytest.approx((1, 4, 9))
    assert (inside.warning, beyond.warning) == (None, None)
    assert "9 times wider than anything measured" in str(far.warning)
    said = "\n".join(lines_of(beyond))
    assert "extrapolated by a factor of 4.0 in width" in said
    assert f"n = {beyond.fit.n} records of memory.hebb-capacity, width 16 … 256" in said
    assert "inside the range" in "\n".join(lines_of(inside))
    assert json.dumps(far.to_json(), allow_nan=False)
    widths = [asked("hebb", width=d).measured for d in (256, 512, 1024, 2048)]
    spans = [one.high / one.low for one in widths if one.high and one.low]
    assert spans == sorted(spans)


def test_both_given_say_whether_it_fits_and_the_expected_error() -> None:
    errors = [asked("hebb", pairs=N, width=64) for N in (50, 113, 300)]
    assert [one.notes[0] for one in errors] == ["it fits", "it may fit", "it does not fit"]
    assert [one.error for one in errors] == [pytest.approx(hebb_error(N, 64)) for N in (50, 113, 300)]
    assert asked("linear", pairs=100, width=64).error == 0.01
    assert asked("linear", pairs=1000, width=64).error is None


@pytest.mark.parametrize(("N", "d"), [(200, 64), (500, 128), (2000, 64)])
def test_the_expected_error_of_a_hebbian_matrix_is_that_of_a_simulation(N: int, d: int) -> None:
    """Or a little more, up to a half: wrong scores are not quite independent, nor normal."""
    wrong = []
    for seed in range(20):
        X, V = (directions("sphere", N, d, seed, name)[None] for name in ("E", "U"))
        scores = (X @ hebb(X, V).mT @ V.mT)[0]
        wrong.append(float((scores.argmax(1).numpy() != np.arange(N)).mean()))
    assert np.mean(wrong) <= hebb_error(N, d) <= 1.5 * np.mean(wrong)


def test_unseen_tokens_are_counted_exactly() -> None:
    """Against samples of the task itself; and it falls with Hutter's exponent where tokens never run out."""
    task = Zipf(N=50, M=5, alpha=1.5)
    p = power_law(50, 1.5)
    assert p == pytest.approx(task.probabilities)
    missing = [1 - p[np.unique(task.sample(100, seed))].sum() for seed in range(400)]
    assert unseen(p, 100) == pytest.approx(np.mean(missing), rel=0.05)
    many = power_law(10**6, 2)
    rates = exponents(2)
    assert rates is not None
    assert log(unseen(many, 4000) / unseen(many, 1000)) / log(4) == pytest.approx(rates["samples"], abs=0.02)


def test_errors_of_a_width_fall_with_their_exponents() -> None:
    p, rates = power_law(10**5, 2), exponents(2)
    assert rates == {"samples": -0.5, "counts": -0.25, "threshold": -1}
    steep = log(threshold_error(p, 1600) / threshold_error(p, 160)) / log(10)
    flat = log(counts_error(p, 10**7, 5) / counts_error(p, 10**3, 5)) / log(10**4)
    assert (steep, flat) == (pytest.approx(-1, abs=0.05), pytest.approx(-0.25, abs=0.05))
    assert threshold_error(p, 160, 10) > threshold_error(p, 160)
    assert exponents(1) is None


def test_an_error_asks_for_samples_and_a_width_that_reach_it() -> None:
    found = predict("zipf", alpha=2.0, error=0.02)
    assert isinstance(found, Tail)
    again = predict("zipf", alpha=2.0, samples=found.needed["samples"], width=found.needed["width"])
    assert isinstance(again, Tail)
    assert again.errors["unseen"] <= 0.01
    assert again.errors["threshold"] <= 0.01
    assert again.errors["threshold, of samples"] <= 0.02


@pytest.mark.parametrize(
    ("words", "more", "why"),
    [
        ("zipf", {"alpha": 0.0, "samples": 5}, "alpha: must be > 0; got 0"),
        ("zipf", {"alpha": -1.0, "samples": 5}, "alpha: must be > 0"),
        ("zipf", {"samples": 5}, "alpha: is missing"),
        ("zipf", {"alpha": 2.0}, "say samples, width or both"),
        ("zipf", {"alpha": 2.0, "samples": 0}, "samples: must lie between 1"),
        ("zipf", {"alpha": 2.0, "error": 1.5}, "error: must lie between 0 and 1"),
        ("zipf", {"alpha": 2.0, "samples": 5, "pairs": 3}, "pairs: is not asked of zipf"),
        ("zipf", {"alpha": 2.0, "samples": 5, "tokens": 3}, "answers: must lie between 1 and 3"),
        ("hebb", {"width": 0}, "width: must lie between 1"),
        ("hebb", {"pairs": 0.5}, "pairs: must lie between 1"),
        ("hebb", {"pairs": float("nan")}, "pairs: must lie between 1"),
        ("hebb", {"pairs": 5, "alpha": 2.0}, "alpha: is not asked of hebb"),
        ("hebb", {"facts": 5}, "stores pairs"),
        ("hebb", {"width": 5, "units": 5}, "units: a Hebbian matrix.* has none"),
        ("mlp", {"units": 5}, "width: is missing"),
        ("facts", {"facts": (4, 0, 8)}, "R: must lie between 1"),
        ("linear", {}, "nothing is asked"),
        ("liner", {"pairs": 5}, "did you mean linear"),
    ],
)
def test_bad_input_is_told_in_a_sentence(words: str, more: dict[str, Any], why: str) -> None:
    with pytest.raises(EngramError, match=why):
        predict(words, **more)


def test_facts_are_counted_by_their_parameters() -> None:
    found = asked("facts", facts=(16, 16, 8))
    assert (found.store, found.notes) == (256, ())
    assert "not 4" in asked("facts", facts=(16, 16, 4)).notes[0]
    for d in (5, 8, 11, 16, 32):
        assert transformer(d).parameters == Factual(d=d, heads=8, d_h=max(1, d // 8), m=d).parameters
    assert asked("facts", width=32, heads=4, head_width=8, units=0).size == 4 * 4 * 8 * 32


@pytest.mark.parametrize("size", [1, 100, 385, 6144, 6145, 10**6])
def test_a_proposed_model_has_the_size_and_none_that_is_narrower_does(size: int) -> None:
    model, (d, m) = transformer_with(size), mlp_with(size)
    assert model.parameters >= size
    assert model.d == 8 or transformer(model.d - 8).parameters < size
    assert d * m >= size > (d - 1) * 4 * (d - 1)


def test_fact_learn_takes_what_is_proposed_unless_a_size_is_said() -> None:
    model: Any = spec_of_file(COUNTRIES, steps=2).model
    shape = proposed(84)
    assert (model.d, model.heads, model.d_h, model.m) == (shape.d, shape.heads, shape.d_h, shape.m)
    assert foretold(FACTS, fit_to("facts"), model.parameters)[1] >= SPARE * 84
    said: Any = spec_of_file(COUNTRIES, steps=2, width=24, heads=4, units=0).model
    assert (said.d, said.heads, said.d_h, said.m) == (24, 4, 6, 0)
    only: Any = spec_of_file(COUNTRIES, steps=2, width=24).model
    assert (only.d, only.heads, only.d_h, only.m) == (24, 8, 3, 24)


def test_the_command_line_and_python_say_the_same(said: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = said("predict", "pairs", "10000", "--memory", "linear", "--json")
    assert (code, json.loads(out)["predictions"]) == (0, [engram.predict("linear", pairs=10000).to_json()])
    kinds = json.loads(said("predict", "pairs", "--width", "64", "--json")[1])["predictions"]
    assert [one["memory"] for one in kinds] == ["hebb", "linear", "mlp"]
    facts = json.loads(said("predict", "facts", "16", "16", "8", "--json")[1])["predictions"]
    assert facts == [engram.predict("facts", facts=(16, 16, 8)).to_json()]
    tail = json.loads(said("predict", "zipf", "--alpha", "2", "--samples", "100", "--json")[1])["predictions"]
    assert tail == [engram.predict("zipf", alpha=2.0, samples=100).to_json()]
    assert said("predict", "pairs", "0")[::2] == (2, "engram: pairs: must lie between 1 and 1e+15; got 0\n")


def test_the_calculator_does_not_wait_for_torch() -> None:
    code = "import sys, engram; engram.predict('mlp', pairs=100); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize(("times", "outside"), [(1.0, False), (1.5, True)])
def test_the_claim_notices_a_capacity_that_is_not_the_predicted_one(
    monkeypatch: pytest.MonkeyPatch, times: float, outside: bool
) -> None:
    """Each seed is set beside a fit of the others: by the law it lies inside, 1.5 times as much outside."""
    noise = np.random.default_rng(0).normal(scale=0.02, size=(5, 5))
    by_seed = [
        [(float(d), 0.03 * d**2 * np.exp(e)) for d, e in zip((16, 32, 64, 128, 256), of, strict=True)] for of in noise
    ]
    known = [(seed, point) for seed, points in enumerate(by_seed) for point in points[:-1]]
    new = [(seed, (points[-1][0], times * points[-1][1])) for seed, points in enumerate(by_seed)]
    monkeypatch.setattr(prediction, "points_of", lambda kind, runs: (known, new))
    distances = [one.distance for one in prediction.tried(KINDS["hebb"], Runs({}, "quick"))]
    assert len(distances) == 5
    assert all((abs(distance) > 1) == outside for distance in distances)
