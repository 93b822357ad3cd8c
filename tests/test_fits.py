"""Power laws: an exponent is recovered, and its interval covers what it says."""

import numpy as np
import pytest

from engram.claims.fits import fit_points, fit_power_law
from engram.errors import EngramError


def test_a_power_law_through_single_points_has_the_interval_of_its_residuals() -> None:
    exact = fit_points([(x, 3 * x**2.0) for x in (1.0, 2.0, 4.0, 8.0)])
    assert exact.exponent == pytest.approx(2)
    rough = fit_points([(x, x * f) for x, f in ((1.0, 1.1), (2.0, 0.9), (4.0, 1.1), (8.0, 0.9))])
    assert rough.interval[0] < rough.exponent < rough.interval[1]
    with pytest.raises(EngramError, match="three sizes"):
        fit_points([(1.0, 2.0), (2.0, 3.0), (2.0, 4.0)])


def test_power_law_is_recovered() -> None:
    rng = np.random.default_rng(0)
    exact = fit_power_law({x: [3 * x**2.0] * 4 for x in (1.0, 2.0, 4.0)})
    assert exact.exponent == pytest.approx(2)
    assert exact.interval == pytest.approx((2, 2))
    noisy = fit_power_law({x: list(3 * x**2.0 * np.exp(0.1 * rng.standard_normal(5))) for x in (1.0, 2.0, 4.0, 8.0)})
    assert noisy.interval[0] < 2 < noisy.interval[1]
    assert noisy.interval[1] - noisy.interval[0] < 0.2
    assert fit_power_law({1.0: [1.0], 2.0: [2.0]}).interval == (-np.inf, np.inf)
    left_out = fit_power_law({1.0: [1.0, 1.1], 2.0: [2.0, 2.2], 4.0: [9.0]})
    assert (left_out.n, left_out.exponent) == (2, pytest.approx(1))
    with pytest.raises(EngramError, match="two sizes"):
        fit_power_law({1.0: [1.0, 2.0]})


def test_interval_of_an_exponent_covers_what_it_says() -> None:
    rng, x = np.random.default_rng(1), (1.0, 2.0, 4.0, 8.0)
    hits = 0
    for _ in range(100):
        low, high = fit_power_law({size: list(size * np.exp(0.1 * rng.standard_normal(5))) for size in x}).interval
        hits += low < 1 < high
    assert 88 <= hits <= 100
