"""A planted token: the tables of the three steps are the gradients of the model they speak of."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from engram.embeddings import directions
from engram.execute import execute
from engram.learning.planted_steps import (
    Attention,
    Overlaps,
    attended,
    attention,
    first_values,
    last_values,
    planted,
    scores,
)
from engram.models.one_head import OneHead
from engram.models.stores import Outer
from engram.records import Search
from engram.records.readings import capacity
from engram.tasks import Association
from engram.tasks.planted import PlantedToken

N, T, d, SMALL = 7, 5, 6, 1e-7
TASK = PlantedToken(N=N, T=T, n=40)
E, U = (directions("gaussian/d", N, d, 0, f"planted.{name}", torch.float64) for name in "EU")
g = directions("gaussian/d", 1, d, 0, "planted.mark", torch.float64)[0]
OVERLAPS = Overlaps.of(N, d, 0)
SAMPLE = TASK.sample(0, 0, TASK.samples)
VALUES = E[torch.from_numpy(np.column_stack([SAMPLE.marked, SAMPLE.others]))]
X = torch.cat([VALUES[:, :1] + g, VALUES[:, 1:]], dim=1)  # keys


def loss(V: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    x = torch.einsum("atd,at->ad", VALUES, torch.softmax(X @ w, dim=1))
    return torch.nn.functional.cross_entropy(x @ V.T @ U.T, torch.from_numpy(SAMPLE.labels))


def on_vectors(M: torch.Tensor) -> torch.Tensor:
    return U.T @ M @ E


def test_first_values_are_the_gradient_at_zero() -> None:
    V = torch.zeros(d, d, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(loss(V, torch.zeros(d, dtype=torch.float64)), V)
    assert torch.allclose(on_vectors(first_values(SAMPLE, N)), -gradient, atol=1e-12)


def test_attention_is_the_gradient_after_a_small_first_step() -> None:
    values = first_values(SAMPLE, N)
    w = torch.zeros(d, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(loss(SMALL * on_vectors(values), w), w)
    found = attention(values, SAMPLE, OVERLAPS)
    assert torch.allclose(E.T @ found.a + found.b * g, -gradient / SMALL, rtol=1e-5, atol=1e-9)


def test_last_values_are_the_gradient_under_hard_attention() -> None:
    found = attention(first_values(SAMPLE, N), SAMPLE, OVERLAPS)
    w = (E.T @ found.a + found.b * g) * 1e9
    V = torch.zeros(d, d, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(loss(V, w), V)
    assert torch.allclose(on_vectors(last_values(found, SAMPLE, OVERLAPS)), -gradient, atol=1e-10)


def test_scores_are_products_of_vectors() -> None:
    M, found = first_values(SAMPLE, N), Attention(torch.arange(N, dtype=torch.float64), 2.0)
    assert torch.allclose(scores(M, OVERLAPS), U @ on_vectors(M) @ E.T, atol=1e-12)
    taken, marked = attended(found, SAMPLE, OVERLAPS)
    best = (X @ (E.T @ found.a + found.b * g)).argmax(1)
    assert torch.equal(marked, best == 0)
    assert torch.equal(E[taken], VALUES[torch.arange(len(X)), best])


@pytest.mark.parametrize(("width", "least", "most"), [(2, 0.0, 0.3), (512, 0.97, 1.0)])
def test_wide_models_learn_and_narrow_ones_do_not(width: int, least: float, most: float) -> None:
    assert least <= planted(PlantedToken(N=64, T=8), width, 0, OneHead())["accuracy"] <= most


def test_the_permutation_is_that_of_the_seed() -> None:
    a, b = TASK.sample(3, 0, 500), TASK.sample(3, 1, 500)
    assert {*zip(a.marked, a.labels, strict=True)} == {*zip(b.marked, b.labels, strict=True)}
    assert sorted(TASK.permutation(3)) == list(range(N))
    assert PlantedToken(N=64).samples == round(64 * (np.log(64) + 5.1))


@pytest.mark.parametrize("asked", ["label", "mark"])
def test_a_search_finds_the_least_width(asked: Any, home: Path) -> None:
    task, model = PlantedToken(N=64, T=32), OneHead(asked=asked)
    spec = Search(task=task, model=model, target=0.9, bracket=(2, 256), tolerance=0.1)
    found = capacity(execute(spec, home))
    for width, learned in ((0.7 * found, False), (1.4 * found, True)):
        assert (planted(task, round(width), 0, model)["accuracy"] > 0.9) == learned
    assert execute(spec, home).id.startswith("search-onehead-n64-t32-s0-")


def test_a_planted_token_is_for_one_head() -> None:
    for task, model in ((PlantedToken(), Outer(d=8)), (Association(), OneHead())):
        with pytest.raises(ValidationError, match="a planted token is for OneHead"):
            Search(task=task, model=model, bracket=(1, 9))
    with pytest.raises(ValidationError, match="ask for more votes instead"):
        Search(task=PlantedToken(), model=OneHead(), bracket=(1, 9), draws=2)
