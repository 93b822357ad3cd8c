"""A planted token: the tables of the three steps are the gradients of the model they speak of."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engram.claims.readings import capacity
from engram.errors import EngramError
from engram.laws.planted import phases, signal_and_noise
from engram.learning import planted_steps
from engram.learning.planted_steps import (
    Directions,
    first_step,
    hard_attention,
    learn_planted_token,
    second_step,
    success_rates,
    third_step,
)
from engram.models.stores import OneHead, Outer
from engram.runner.execute import execute
from engram.specs import Search
from engram.tasks import Association
from engram.tasks.planted import PlantedToken
from engram.theory.mean_bias import critical_width

N, T, d, SMALL = 7, 5, 6, 1e-7
TASK = PlantedToken(N=N, T=T, n=40)
AT = Directions.drawn(N, d, 0)
E, U, g = AT.E, AT.U, AT.g
SAMPLE = TASK.training_sample(0)
VALUES = E[torch.from_numpy(SAMPLE.tokens)]
X = torch.cat([VALUES[:, :1] + g, VALUES[:, 1:]], dim=1)  # keys


def loss(V: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    x = torch.einsum("atd,at->ad", VALUES, torch.softmax(X @ w, dim=1))
    return torch.nn.functional.cross_entropy(x @ V.T @ U.T, torch.from_numpy(SAMPLE.labels))


def test_first_values_are_the_gradient_at_zero() -> None:
    V = torch.zeros(d, d, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(loss(V, torch.zeros(d, dtype=torch.float64)), V)
    assert torch.allclose(first_step(SAMPLE, AT), -gradient, atol=1e-12)


@pytest.mark.parametrize("at_once", [planted_steps.AT_ONCE, 3 * T])
def test_attention_is_the_gradient_after_a_small_first_step(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planted_steps, "AT_ONCE", at_once)
    V = first_step(SAMPLE, AT)
    w = torch.zeros(d, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(loss(SMALL * V, w), w)
    assert torch.allclose(second_step(V, SAMPLE, AT), -gradient / SMALL, rtol=1e-5, atol=1e-9)


def test_last_values_are_the_gradient_under_hard_attention() -> None:
    w = second_step(first_step(SAMPLE, AT), SAMPLE, AT)
    V = torch.zeros(d, d, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(loss(V, 1e9 * w), V)
    assert torch.allclose(third_step(w, SAMPLE, AT), -gradient, atol=1e-10)


def test_hard_attention_takes_the_best_key() -> None:
    w = torch.linspace(-1, 1, d, dtype=torch.float64)
    taken, marked = hard_attention(w, SAMPLE, AT)
    best = (X @ w).argmax(1)
    assert torch.equal(marked, best == 0)
    assert torch.equal(E[taken], VALUES[torch.arange(len(X)), best])


def test_balanced_samples_mark_every_token_alike() -> None:
    task = PlantedToken(N=N, T=T, n=3 * N, balanced=True)
    found = task.training_sample(0)
    assert np.bincount(found.tokens[:, 0]).tolist() == [3] * N
    assert np.array_equal(found.labels, task.permutation(0)[found.tokens[:, 0]])
    assert np.array_equal(found.tokens[:, 1:], PlantedToken(N=N, T=T, n=3 * N).training_sample(0).tokens[:, 1:])


def test_a_phase_map_is_made_of_single_measurements() -> None:
    rows = list(phases(draws=2, seed=3, N=16, least=4, most=8, widest=16))
    assert [(row["T"], row["d"]) for row in rows] == [(T, d) for T in (4, 8) for d in (8, 11, 16)]
    apart = [success_rates(PlantedToken(N=16, T=8), 11, 3 + (draw << 32)) for draw in range(2)]
    assert rows[4] == {"T": 8, "d": 11} | {name: np.mean([row[name] for row in apart]) for name in ("label", "mark")}


@pytest.mark.parametrize(("width", "least", "most"), [(2, 0.0, 0.3), (512, 0.97, 1.0)])
def test_wide_models_learn_and_narrow_ones_do_not(width: int, least: float, most: float) -> None:
    assert least <= learn_planted_token(PlantedToken(N=64, T=8), width, 0, OneHead())["accuracy"] <= most


def test_the_permutation_is_that_of_the_seed() -> None:
    a, b = TASK.sample(3, 0, 500), TASK.sample(3, 1, 500)
    assert {*zip(a.tokens[:, 0], a.labels, strict=True)} == {*zip(b.tokens[:, 0], b.labels, strict=True)}
    assert sorted(TASK.permutation(3)) == list(range(N))
    assert PlantedToken(N=64).samples == round(64 * (np.log(64) + 5.1))


@pytest.mark.parametrize("asked", ["label", "mark"])
def test_a_search_finds_the_least_width(asked: Any, home: Path) -> None:
    task, model = PlantedToken(N=64, T=32), OneHead(asked=asked)
    spec = Search(task=task, model=model, target=0.9, bracket=(2, 256), tolerance=0.1)
    found = capacity(execute(spec, home))
    for width, learned in ((0.7 * found, False), (1.4 * found, True)):
        assert (learn_planted_token(task, round(width), 0, model)["accuracy"] > 0.9) == learned
    assert execute(spec, home).id.startswith("search-onehead-n64-t32-s0-")


def test_a_planted_token_is_for_one_head() -> None:
    for task, model in ((PlantedToken(), Outer(d=8)), (Association(), OneHead())):
        with pytest.raises(EngramError, match="belong together"):
            Search(task=task, model=model, bracket=(1, 9))
    with pytest.raises(EngramError, match="set more votes instead"):
        Search(task=PlantedToken(), model=OneHead(), bracket=(1, 9), draws=2)


def test_signal_and_noise_in_attention_follow_their_laws() -> None:
    drawn = list(signal_and_noise(draws=20, seed=0, N=64, T=64))
    assert [row["d"] for row in drawn] == [8, 16, 32, 64, 128, 256]
    assert all(0.7 < row["noise"] < 1.3 for row in drawn)
    assert drawn[-1]["signal"] == pytest.approx(1, abs=0.1)
    assert all(row["noise"] < 0.5 for row in signal_and_noise(draws=20, seed=0, N=64, T=64, balanced=True))


def test_the_critical_width_has_its_exponents_far_from_all_limits() -> None:
    N, T, n = 10**9, 10**6, 10**10  # √N ≪ T, and 16 ≪ d ≪ N
    d = critical_width(N, T, n)
    assert 10**3 < d < 10**7
    assert critical_width(N, 2 * T, n) / d == pytest.approx(2 ** (4 / 3), rel=0.02)
    assert critical_width(N, T, 2 * n) / d == pytest.approx(2 ** (-2 / 3), rel=0.02)
