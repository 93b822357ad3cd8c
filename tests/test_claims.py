"""One function decides: inside the band, outside, or across its edge."""

from math import inf, nan

import numpy as np
import pytest

from engram.claims import Claim, Measure, decide
from engram.claims.claim import t_interval


@pytest.mark.parametrize(
    ("band", "interval", "verdict"),
    [
        ((0.9, inf), (0.91, 0.99), "agrees"),
        ((0.9, inf), (0.85, 0.95), "inconclusive"),
        ((0.9, inf), (0.7, 0.9), "disagrees"),
        ((0, inf), (0.0, 0.0), "disagrees"),  # an ordinal sentence wants more than a tie
        ((-1, 1), (-2, 2), "inconclusive"),
        ((-1, 1), (1, 2), "disagrees"),
        ((-1, 1), (-inf, inf), "inconclusive"),
        ((-1, 1), (nan, nan), "inconclusive"),
        ((-inf, 0.1), (0.05, 0.06), "agrees"),
    ],
)
def test_decide(band: tuple[float, float], interval: tuple[float, float], verdict: str) -> None:
    assert decide(band, interval) == verdict


def test_t_interval_covers_the_mean_in_95_of_100() -> None:
    rng = np.random.default_rng(0)
    intervals = np.array([t_interval(rng.normal(3.0, 2.0, 5).tolist()) for _ in range(4000)])
    covered = np.mean((intervals[:, 0] < 3.0) & (intervals[:, 1] > 3.0))
    assert covered == pytest.approx(0.95, abs=0.012)


def test_one_seed_decides_nothing() -> None:
    measure = Measure.over_seeds("accuracy", [0.99], low=0.5)
    assert measure.interval == (-inf, inf)
    assert measure.verdict == "inconclusive"


def test_a_claim_is_as_good_as_its_worst_measure() -> None:
    good = Measure.over_seeds("a", [1.0, 1.1, 0.9], low=0)
    open_ = Measure.over_seeds("b", [1.0], low=0)
    bad = Measure.exact("c", 0.2, tolerance=0.1)
    assert Claim("x", "", "", (good, good)).verdict == "agrees"
    assert Claim("x", "", "", (good, open_)).verdict == "inconclusive"
    claim = Claim("x", "", "", (good, open_, bad))
    assert claim.verdict == "disagrees"
    assert claim.deciding.name == "c"
