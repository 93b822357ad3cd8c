"""Two classes in the plane: the minimiser of the cross-entropy, that of the 0/1 error, and paths between them."""

import numpy as np
import pytest

from engram.theory.forgetting import Plane, best_errors, cross_entropy, descend_loss, error_at, minimise_cross_entropy


def plane(N: int, draws: int = 50, alpha: float = 1.0) -> Plane:
    return Plane.drawn(N, alpha, draws, seed=3)


def test_three_tokens_are_separable_three_times_in_four() -> None:
    """Wendel: n points lie in a half plane with probability n / 2^(n−1)."""
    separable = best_errors(plane(3, draws=4000)) == 0
    assert separable.mean() == pytest.approx(3 / 4, abs=0.03)
    assert (best_errors(plane(2)) == 0).all()


def test_no_direction_errs_less_than_the_best() -> None:
    drawn = plane(8)
    angles = np.linspace(0, 2 * np.pi, 1000, endpoint=False)
    tried = np.stack([error_at(drawn, np.tile([np.cos(x), np.sin(x)], (50, 1))) for x in angles])
    assert (tried.min(0) >= best_errors(drawn) - 1e-12).all()
    assert np.isclose(tried.min(0), best_errors(drawn)).mean() > 0.9  # narrow best sectors may lie between two tries


def test_the_minimiser_of_the_cross_entropy_is_one() -> None:
    drawn = plane(30)
    gamma = minimise_cross_entropy(drawn)
    lowest, rng = cross_entropy(drawn, gamma), np.random.default_rng(0)
    for scale in (1e-3, 1e-1, 10):
        assert (cross_entropy(drawn, gamma + scale * rng.normal(size=gamma.shape)) >= lowest - 1e-12).all()


def test_where_all_can_be_right_the_cross_entropy_ends_there() -> None:
    drawn = plane(3, draws=200)
    separable = best_errors(drawn) == 0
    assert (error_at(drawn, minimise_cross_entropy(drawn))[separable] == 0).all()


def test_small_steps_on_the_population_never_raise_the_loss() -> None:
    drawn = plane(10, alpha=2.0)
    path = np.stack(list(descend_loss(drawn, np.array([7.5, 2.5]), 0.1, 200)))
    losses = np.stack([cross_entropy(drawn, gamma) for gamma in path])
    assert (np.diff(losses, axis=0) <= 1e-12).all()
