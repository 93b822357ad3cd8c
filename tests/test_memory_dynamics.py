"""Gradient descent of a few memories: formulas against loops and autograd, planted weights, and published tables."""

from math import log

import numpy as np
import pytest
import torch
from torch import Tensor

from engram.embeddings import directions
from engram.theory import memory_dynamics as dynamics
from engram.theory.margin_law import gradient_margins, margin_at, repeated_visits, two_tokens
from engram.theory.memory_dynamics import Pairs, follow, matrix_of
from engram.theory.stored_weights import stored_in, weights_of


def problem(N: int = 6, M: int = 3, d: int = 4, seed: int = 0) -> Pairs:
    E, U = (directions("gaussian/d", n, d, seed, f"test.{name}", torch.float64) for name, n in (("E", N), ("U", M)))
    p = torch.arange(1, N + 1, dtype=torch.float64) ** -1.5
    return Pairs(E, U, p / p.sum(), torch.arange(N) % M)


def slow_loss(W: Tensor, pairs: Pairs) -> Tensor:
    """One token after the other."""
    logs = [
        torch.log_softmax(pairs.U @ W @ e, 0)[y] * p for e, y, p in zip(pairs.E, pairs.answers, pairs.p, strict=True)
    ]
    return -torch.stack(logs).sum()


def test_loss_gradient_and_hessian_are_those_of_autograd() -> None:
    pairs = problem()
    W = 2 * directions("gaussian", 4, 4, 1, "test.W", torch.float64)
    asked = W.clone().requires_grad_()
    loss = slow_loss(asked, pairs)
    assert float(dynamics.loss(pairs, dynamics.scores(pairs, W))) == pytest.approx(loss.item(), abs=1e-12)
    assert torch.allclose(dynamics.gradient(pairs, W), torch.autograd.grad(loss, asked)[0], atol=1e-12)
    by_autograd = torch.autograd.functional.hessian(lambda V: slow_loss(V, pairs), W)
    assert torch.allclose(dynamics.hessian(pairs, W), by_autograd.reshape(16, 16), atol=1e-10)  # type: ignore[union-attr]


def test_the_hessian_of_the_paper_stacks_columns() -> None:
    """Σ_x p(x) e_x e_xᵀ ⊗ Cov(u) acts on vec(W) that stacks columns; ours, on rows, is the same up to the order."""
    pairs = problem()
    W = directions("gaussian", 4, 4, 1, "test.W", torch.float64)
    chances = torch.softmax(dynamics.scores(pairs, W), -1)
    printed = torch.zeros(16, 16, dtype=torch.float64)
    for e, p, hat in zip(pairs.E, pairs.p, chances, strict=True):
        mean = hat @ pairs.U
        printed += p * torch.kron(torch.outer(e, e), pairs.U.T @ (hat[:, None] * pairs.U) - torch.outer(mean, mean))
    order = torch.arange(16).reshape(4, 4).T.flatten()
    assert torch.allclose(dynamics.hessian(pairs, W)[order][:, order], printed, atol=1e-12)


@pytest.mark.parametrize("d", [3, 5, 9])
def test_sharpness_is_the_top_eigenvalue(d: int) -> None:
    pairs = problem(d=d)
    W = directions("gaussian", d, d, 1, "test.W", torch.float64)
    top = torch.linalg.eigvalsh(dynamics.hessian(pairs, W))[-1]
    assert float(dynamics.sharpness(pairs, dynamics.scores(pairs, W))) == pytest.approx(float(top), abs=1e-12)


def test_many_problems_at_once_are_one_after_the_other() -> None:
    alone = [problem(seed=seed) for seed in (1, 2, 3)]
    many = Pairs(torch.stack([a.E for a in alone]), torch.stack([a.U for a in alone]), alone[0].p, alone[0].answers)
    W = torch.stack([directions("gaussian", 4, 4, seed, "test.W", torch.float64) for seed in (1, 2, 3)])
    logits = dynamics.scores(many, W)
    for function in (dynamics.loss, dynamics.error, dynamics.sharpness, dynamics.margins):
        each = [function(one, dynamics.scores(one, w)) for one, w in zip(alone, W, strict=True)]
        assert torch.allclose(function(many, logits), torch.stack(each), atol=1e-12)


def test_coefficients_follow_the_descent_of_the_matrix() -> None:
    """W = Σ c(z, k) u_k e_zᵀ, step by step; shares of a batch and rates may change."""
    pairs, rng, W = problem(), np.random.default_rng(0), torch.zeros(4, 4, dtype=torch.float64)
    shares = [torch.from_numpy(rng.dirichlet(np.ones(6))) for _ in range(20)]
    rates = [1.0] * 10 + [7.0] * 10
    for t, C in enumerate(follow(pairs, zip(shares, rates, strict=True))):
        assert torch.allclose(matrix_of(pairs, C), W, atol=1e-10)
        if t < 20:
            W = W - rates[t] * dynamics.gradient(Pairs(pairs.E, pairs.U, shares[t], pairs.answers), W)


def test_error_counts_ties_as_the_first_answer() -> None:
    pairs = problem()
    right = pairs.p[pairs.answers == 0].sum()
    assert float(dynamics.error(pairs, torch.zeros(6, 3, dtype=torch.float64))) == pytest.approx(1 - float(right))


def test_the_mean_of_wrong_tokens_is_taken_over_them_alone() -> None:
    pairs = problem()
    logits = pairs.onehot.clone()
    assert float(dynamics.mean_of_wrong(pairs, logits)) == 0  # none is wrong
    logits[[1, 4]] = logits[[1, 4]].roll(1, -1)
    assert float(dynamics.mean_of_wrong(pairs, logits)) == pytest.approx(float(pairs.p[1] + pairs.p[4]) / 2)


@pytest.mark.parametrize("d", [6, 20])
def test_planted_weights_are_read_off_the_matrix(d: int) -> None:
    """Whether u_f or u_f minus the mean of all answers was written."""
    pairs, q = problem(d=d), torch.tensor([1.0, 0.5, 2.0, 0.0, 3.0, 0.1], dtype=torch.float64)
    values = pairs.U[pairs.answers]
    for written in (values, values - pairs.U.mean(0)):
        W = torch.einsum("n,ni,nj->ij", q, written, pairs.E)
        assert torch.allclose(weights_of(stored_in(W, pairs), pairs.answers), q, atol=1e-10)


def test_where_tokens_are_not_independent_weights_are_seen_through_the_projection() -> None:
    """d < N: of the coefficients only what E can tell apart is in the matrix."""
    pairs = problem(d=4)
    C = torch.from_numpy(np.random.default_rng(0).normal(size=(6, 3)))
    seen = pairs.E @ torch.linalg.pinv(pairs.E) @ C
    assert torch.allclose(stored_in(matrix_of(pairs, C), pairs), seen, atol=1e-10)
    assert not torch.allclose(seen, C, atol=0.1)


@pytest.mark.parametrize(("p", "printed"), [(0.75, 7.309), (0.25, 6.204)])
def test_margins_at_time_1000_are_the_printed_ones(p: float, printed: float) -> None:
    assert margin_at(p, 2, 1000.0) == pytest.approx(printed, abs=5e-4)


@pytest.mark.parametrize("M", [2, 5, 100])
@pytest.mark.parametrize("p", [0.01, 0.5])
def test_margin_solves_its_equation_and_its_ode(M: int, p: float) -> None:
    for t in (0.0, 0.1, 30.0, 1e6):
        m = margin_at(p, M, t)
        assert np.exp(m) + (M - 1) * m - 1 == pytest.approx(p * M * t, rel=1e-9, abs=1e-9)
    h = 1e-4
    slope = (margin_at(p, M, 3 + h) - margin_at(p, M, 3 - h)) / (2 * h)
    assert slope == pytest.approx(p * M / (np.exp(margin_at(p, M, 3.0)) + M - 1), rel=1e-6)


def test_the_margin_law_is_that_of_descent_on_orthonormal_embeddings() -> None:
    E, U = (directions("orthonormal", 4, 7, 3, f"test.{name}", torch.float64) for name in "EU")
    p = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)
    pairs, steps = Pairs(E, U, p, torch.tensor([2, 0, 1, 3])), 30
    *_, C = follow(pairs, [(p, 0.7)] * steps)
    found = dynamics.margins(pairs, dynamics.scores(pairs, matrix_of(pairs, C)))
    assert torch.allclose(found, torch.tensor([gradient_margins(float(x), 4, 0.7, steps)[-1] for x in p]), atol=1e-10)


@pytest.mark.parametrize("a", [-0.5, 0.0, 0.95])
def test_two_tokens_are_the_descent_of_a_matrix(a: float) -> None:
    E = torch.tensor([[1.0, 0.0], [a, (1 - a**2) ** 0.5]], dtype=torch.float64)
    p = torch.tensor([0.75, 0.25], dtype=torch.float64)
    pairs = Pairs(E, torch.eye(2, dtype=torch.float64), p, torch.arange(2))
    path = two_tokens(a, 0.75, 10.0, 12)
    for t, C in enumerate(follow(pairs, [(p, 10.0)] * 12)):
        W = matrix_of(pairs, C)
        logits = dynamics.scores(pairs, W)
        assert np.allclose(path.gamma[t], (W[0] - W[1]).numpy(), atol=1e-10)
        assert path.losses[t] == pytest.approx(float(dynamics.loss(pairs, logits)), abs=1e-12)
        assert path.errors[t] == pytest.approx(float(dynamics.error(pairs, logits)), abs=1e-12)
        assert path.sharpness[t] == pytest.approx(float(dynamics.sharpness(pairs, logits)), abs=1e-12)


def test_the_published_spikes() -> None:
    large, small = two_tokens(0.95, 0.75, 10.0, 60), two_tokens(0.95, 0.75, 1.0, 60)
    assert large.losses[:4] == pytest.approx([0.693, 1.163, 0.498, 0.753], abs=1e-3)
    assert small.losses[[0, 1, 2, 34]] == pytest.approx([0.693, 0.590, 0.556, 0.372], abs=1e-3)
    assert (large.first_perfect, small.first_perfect) == (2, 52)
    assert set(np.round(large.errors[2:35], 2)) >= {0.0, 0.25, 0.75}


@pytest.mark.parametrize(("a", "first", "loss"), [(0.0, 1, 0.00100), (0.5, 4, 0.00202), (-0.5, 1, 0.00067)])
def test_the_published_table_of_overlaps(a: float, first: int, loss: float) -> None:
    path = two_tokens(a, 0.75, 1.0, 1000)
    assert path.first_perfect == first
    assert path.losses[1000] == pytest.approx(loss, abs=1e-5)


def test_a_weight_grows_like_visits_and_then_like_their_logarithm() -> None:
    slow, fast = repeated_visits(1e-6, 10, 100), repeated_visits(1.0, 10, 10_000)
    assert slow == pytest.approx(np.arange(101) * 1e-6 / 1.1, rel=1e-3)
    assert fast[-1] - fast[1000] == pytest.approx(log(10), abs=0.05)
