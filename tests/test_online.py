"""Memories trained online: the kernel against torch, step by step; what is drawn; what overflows."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.errors import EngramError
from engram.learning.online import KINDS, Online, initial, train, train_plainly
from engram.native import kernel
from engram.tasks.zipf import Zipf

WAYS = list(product(KINDS, ("SGD", "sign"), (False, True)))
needs_kernel = pytest.mark.skipif(kernel() is None, reason="no C++ compiler: torch is the only path")


def both(how: Online, task: Zipf, steps: int, dtype: torch.dtype, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores of torch and of the kernel after every step, until one of them overflows."""
    first, tokens = initial(task, how.kind, how.d, seed, dtype), task.sample(steps * how.batch, seed)
    looks = [how.batch * t for t in range(steps + 1)]
    return train_plainly(how, task, first, tokens, looks), train(how, task, first, tokens, looks)


@needs_kernel
@pytest.mark.parametrize(("kind", "optimiser", "layernorm"), WAYS)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    d=st.integers(1, 80),
    N=st.integers(5, 40),
    M=st.integers(1, 5),
    batch=st.integers(1, 48),
    lr=st.floats(0.01, 3),
    seed=st.integers(0, 99),
)
def test_the_kernel_is_torch_step_by_step(kind: Any, optimiser: Any, layernorm: bool, **size: Any) -> None:
    """Signs are compared at small rates: where a softmax has saturated, a gradient is nothing but rounding."""
    lr = size["lr"] if optimiser == "SGD" else size["lr"] / 30
    how = Online(kind=kind, optimiser=optimiser, layernorm=layernorm, d=size["d"], lr=lr, batch=size["batch"])
    task = Zipf(N=size["N"], M=size["M"], alpha=1.2)
    plain, fast = both(how, task, 8, torch.float64, size["seed"])
    atol = 1e-10 * max(1.0, float(np.nanmax(np.abs(plain))))
    np.testing.assert_allclose(fast, plain, rtol=0, atol=atol)


@needs_kernel
@pytest.mark.parametrize(("kind", "optimiser", "layernorm"), WAYS)
def test_in_float32_it_is_torch_to_four_digits(kind: Any, optimiser: Any, layernorm: bool) -> None:
    lr = 1.0 if optimiser == "SGD" else 0.02
    how = Online(kind=kind, optimiser=optimiser, layernorm=layernorm, d=100, lr=lr, batch=16)
    plain, fast = both(how, Zipf(), 12, torch.float32)
    np.testing.assert_allclose(fast, plain, rtol=0, atol=1e-4 * max(1.0, float(np.abs(plain).max())))


@needs_kernel
def test_what_overflows_answers_0_from_then_on() -> None:
    how, task = Online(kind="learned", lr=100.0, d=50, batch=16), Zipf()
    plain, fast = both(how, task, 40, torch.float32)
    assert np.isnan(plain[-1]).any()
    assert np.isnan(fast[-1]).all()
    assert task.error(plain[-1]) == task.error(fast[-1]) == pytest.approx(0.358608, abs=1e-6)


def test_a_batch_that_does_not_divide_the_samples_is_refused() -> None:
    how, task = Online(batch=16), Zipf()
    with pytest.raises(EngramError, match="100 samples are not a whole number of batches of 16"):
        train(how, task, initial(task, "matrix", 100, 0), task.sample(100, 0), [96])


def test_tokens_that_are_not_there_are_refused() -> None:
    task = Zipf(N=10)
    with pytest.raises(EngramError, match="must lie in 0 … 9"):
        train(Online(batch=1, d=4), task, initial(task, "matrix", 4, 0), np.array([10]), [1])


def test_the_population_error_is_that_of_a_loop() -> None:
    task = Zipf(N=7, M=3, alpha=1.5)
    scores = np.random.default_rng(0).normal(size=(4, 7, 3))
    p = [(z + 1) ** -1.5 for z in range(7)]
    for one, found in zip(scores, task.error(scores), strict=True):
        wrong = sum(p[z] for z in range(7) if max(range(3), key=lambda k, z=z: one[z][k]) != z % 3)
        assert found == pytest.approx(wrong / sum(p))
    assert task.error(np.zeros((7, 3))) == pytest.approx(1 - sum(p[0::3]) / sum(p))  # equal scores answer 0


def test_samples_follow_the_law_and_begin_alike() -> None:
    task = Zipf(N=20, M=4, alpha=1.1)
    many = task.sample(200_000, 3)
    counts = np.bincount(many, minlength=20)
    expected = 200_000 * task.probabilities
    assert ((counts - expected) ** 2 / expected).sum() < 43.8  # chi-squared, 19 degrees of freedom, 0.1 %
    assert (task.sample(50, 3) == many[:50]).all()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [({"alpha": 0.0}, "alpha"), ({"alpha": -1.0}, "alpha"), ({"M": 6, "N": 5}, "at most 5 answers"), ({"N": 0}, "N")],
)
def test_zipf_refuses_what_is_no_law(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Zipf(**wrong)
