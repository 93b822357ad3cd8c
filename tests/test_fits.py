"""Power laws: an exponent is recovered, and each seed has its own."""

import numpy as np
import pytest

from engram.claims.fits import by_seed, exponent, slope
from engram.errors import EngramError


def test_an_exponent_is_the_mean_of_the_slopes_of_seeds() -> None:
    curves = [[(x, 3 * x**power) for x in (1.0, 2.0, 4.0)] for power in (1.9, 2.0, 2.1)]
    found = exponent("exponent", curves, 1.5, 2.5)
    assert found.values == pytest.approx((1.9, 2.0, 2.1))
    assert (found.method, found.n, found.measured) == ("slopes per seed", 3, pytest.approx(2))
    half = 4.302653 * 0.1 / np.sqrt(3)  # t of two degrees of freedom
    assert found.interval == pytest.approx((2 - half, 2 + half))
    assert found.verdict == "agrees"


def test_a_size_that_not_every_seed_has_is_left_out_and_named() -> None:
    curves = [[(1.0, 1.0), (2.0, 2.0), (4.0, 900.0)], [(1.0, 1.0), (2.0, 2.2)]]
    found = exponent("exponent", curves, 0, 2)
    assert found.values == pytest.approx((1, np.log2(2.2)))
    assert found.estimate.note == "without size 4, which not every seed has"
    assert exponent("exponent", curves[1:] * 2, 0, 2).estimate.note == ""


def test_an_exponent_needs_two_sizes() -> None:
    with pytest.raises(EngramError, match="two sizes that every seed has; got 1"):
        exponent("exponent", [[(1.0, 1.0), (2.0, 2.0)], [(1.0, 1.0)]], 0, 2)
    with pytest.raises(EngramError, match="two sizes"):
        slope([(2.0, 3.0), (2.0, 4.0)])


def test_values_over_seeds_are_turned_into_curves() -> None:
    assert by_seed({8: [1.0, 2.0], 16: [3.0, 4.0]}) == [[(8.0, 1.0), (16.0, 3.0)], [(8.0, 2.0), (16.0, 4.0)]]


def test_one_noisy_size_widens_the_interval() -> None:
    """Pooled means would hide that a seed far off at one size is far off in its slope."""
    rng, x = np.random.default_rng(0), np.array([1.0, 2.0, 4.0, 8.0])
    calm = x * np.exp(0.02 * rng.standard_normal((5, 4)))
    noisy = calm * np.exp([0, 0, 0, 0.5] * rng.standard_normal((5, 4)))
    widths = [
        np.ptp(exponent("", [list(zip(x, y, strict=True)) for y in seeds], 0, 2).interval) for seeds in (calm, noisy)
    ]
    assert widths[1] > 5 * widths[0]
