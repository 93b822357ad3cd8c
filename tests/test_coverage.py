"""Every kind of interval that is printed covers what it says, at 3, 5 and 8 seeds."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from covering import COARSE, SEEDS, SHARES, TRIALS, of_exponent, of_mean, of_share, of_trials
from engram.claims import intervals
from engram.claims.intervals import BetaBinomial


def grid(points: int, correlations: int) -> None:
    intervals.POINTS, intervals.CORRELATIONS = points, correlations
    for cached in (intervals.posterior, intervals._grid):
        cached.cache_clear()


@pytest.fixture
def coarse() -> Iterator[None]:
    fine = intervals.POINTS, intervals.CORRELATIONS
    grid(*COARSE)
    yield
    grid(*fine)


@pytest.mark.parametrize("n", SEEDS)
def test_means_of_normal_values(n: int) -> None:
    assert 0.93 < of_mean(n, 3000) < 0.97


@pytest.mark.parametrize("n", SEEDS)
def test_exponents_with_one_noisy_size(n: int) -> None:
    assert 0.93 < of_exponent(n, 1500) < 0.97


@pytest.mark.parametrize(("n", "trials"), [*product(SEEDS, TRIALS)])
def test_shares_of_few_trials_are_covered_at_least_as_often_as_said(n: int, trials: int, coarse: None) -> None:
    """Up to an intra-class correlation of 0.1; 1500 draws leave an error of 0.006."""
    found = {(p, rho): of_share(n, p, rho, trials, 1500) for p in SHARES for rho in (0.0, 0.1)}
    assert min(found.values()) > 0.93, found


@pytest.mark.parametrize(("n", "trials"), [*product(SEEDS, TRIALS)])
def test_shares_are_covered_less_often_where_seeds_differ_more(n: int, trials: int, coarse: None) -> None:
    found = {p: of_share(n, p, 0.3, trials, 1500) for p in SHARES}
    assert min(found.values()) > 0.87, found


@pytest.mark.parametrize(("n", "p"), [*product(SEEDS, SHARES)])
def test_independent_trials_are_covered_in_at_least_95_of_100(n: int, p: float) -> None:
    assert of_trials(n, p, 5, 1500) > 0.94


def test_a_coarse_grid_says_the_same(coarse: None) -> None:
    """What the simulation uses is what is printed, but for the grid."""
    cases = [([64] * 5, 64), ([60, 64, 51], 64), ([0, 2, 1, 5, 0, 1, 0, 3], 65), ([3, 5, 4], 5)]
    rough = [BetaBinomial.of(hits, [of] * len(hits)).interval for hits, of in cases]
    grid(1000, 80)
    fine = [BetaBinomial.of(hits, [of] * len(hits)).interval for hits, of in cases]
    np.testing.assert_allclose(rough, fine, atol=0.006)
