"""One function decides: inside the band, outside, or across its edge."""

from math import inf, nan

import numpy as np
import pytest
from scipy.stats import t

from engram.claims import Claim, Measure, decide
from engram.claims.multiplicity import adjusted, claim_p, false_verdicts, holm
from engram.claims.readings import counted, least_share
from engram.errors import EngramError


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


def test_seeds_that_all_say_the_same_have_the_resolution_or_no_interval() -> None:
    same = Measure.over_seeds("bits", [2.0, 2.0, 2.0], high=7)
    assert (same.interval, same.verdict) == ((-inf, inf), "inconclusive")
    known = Measure.over_seeds("bits", [2.0, 2.0, 2.0], high=7, resolution=1.0)
    assert (known.interval, known.verdict) == (pytest.approx((1, 3)), "agrees")
    assert Measure.over_seeds("bits", [0.0, 0.0], high=7).verdict == "inconclusive"
    assert "all 3 seeds say the same" in same.estimate.remark
    assert not known.estimate.remark


def test_a_share_always_has_a_width() -> None:
    """All hits do not show that all would be; fewer trials and fewer seeds show less."""
    lows = [Measure.share("recall", [m] * n, m).interval for n, m in ((3, 5), (3, 64), (5, 64), (8, 64))]
    assert [low for low, _ in lows] == sorted(low for low, _ in lows)
    assert all(low < 0.98 and high == 1 for low, high in lows)
    assert Measure.share("recall", [0] * 5, 64).interval[0] == 0
    assert Measure.share("recall", [64], 64, low=0.5).verdict == "inconclusive"  # one seed
    apart = Measure.share("drawn", [25] * 5, 25, low=0.95, independent=True)
    assert apart.interval == (pytest.approx(0.025 ** (1 / 125)), 1)
    assert apart.p == pytest.approx(0.95**125)


def test_counts_are_taken_back_from_shares() -> None:
    assert counted([0.5, 63 / 64], 64) == [32, 63]
    with pytest.raises(EngramError, match="is no share of 64 trials"):
        counted([0.505], 64)
    assert least_share({"a": 1.0, "b": 1.0, "c": 1.0}, {"a": 32, "b": 6, "c": 32}) == (6, 6)
    assert least_share({"a": 0.5, "b": 1.0}, {"a": 32, "b": 6}) == (16, 32)


def test_the_worst_of_seeds_says_so() -> None:
    worst = Measure.worst("error", [1e-12, -3e-12, 2e-12], 1e-10)
    assert (worst.measured, worst.n, worst.method, worst.p) == (-3e-12, 3, "worst of seeds", None)
    assert Claim("x", "", "", (worst,)).n == 3
    assert Measure.worst("error", [1e-12, nan], 1e-10).verdict == "inconclusive"
    assert Measure.worst("error", [1e-12, -1e-9], 1e-10).verdict == "disagrees"


def test_datasets_are_counted_and_not_their_seeds() -> None:
    found = Measure.over_datasets("error", [[1.0, 1.2], [1.1, 1.1], [0.9, 1.1]], 0.5, 1.5)
    assert (found.n, found.values, found.estimate.counts) == (3, pytest.approx((1.1, 1.1, 1.0)), "datasets")


def test_p_is_that_of_the_edge_and_decides_as_the_interval_does() -> None:
    inside = Measure.over_seeds("a", [1.0, 1.2, 1.4], low=0.5, high=3)
    assert inside.p == pytest.approx(t.sf((1.2 - 0.5) / (0.2 / 3**0.5), 2))
    assert inside.distance == pytest.approx(0.7 / (inside.interval[1] - 1.2))
    below = Measure.over_seeds("a", [1.0, 1.2, 1.4], low=2.0)
    assert (below.verdict, below.p) == ("disagrees", pytest.approx(t.sf(0.8 / (0.2 / 3**0.5), 2)))
    assert below.distance is not None
    assert below.distance <= -1
    for edge in (0.2, 0.6, 0.69, 0.71, 0.9, 1.2, 1.6, 1.69, 1.71, 2.0):
        for measure in (
            Measure.over_seeds("", inside.values, low=edge),
            Measure.over_seeds("", inside.values, high=edge),
        ):
            assert measure.p is not None
            assert (measure.p < 0.025) == (measure.verdict != "inconclusive")
    for hits, edge in (([64] * 5, 0.9), ([64] * 5, 0.95), ([60, 50, 58], 0.99), ([60, 50, 58], 0.95)):
        measure = Measure.share("", hits, 64, low=edge)
        assert measure.p is not None
        assert (measure.p < 0.025) == (measure.verdict != "inconclusive")
    assert Measure.exact("c", 0.2, tolerance=0.1).p is None


def test_holm_is_that_of_the_textbook() -> None:
    assert holm([0.01, None, 0.04, 0.03]) == pytest.approx([0.03, None, 0.06, 0.06], nan_ok=True)
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_claim_has_the_p_of_all_its_measures() -> None:
    sure, less = (Measure.over_seeds("", values, low=0) for values in ([1.0, 1.1, 0.9], [1.0, 1.5, 0.5]))
    against = Measure.over_seeds("", [1.0, 1.1, 0.9], low=5)
    exact = Measure.exact("", 0.0, 1.0)
    both, bad = Claim("x", "", "", (sure, less, exact)), Claim("y", "", "", (sure, against))
    assert claim_p(both) == less.p
    assert against.p is not None
    assert claim_p(bad) == pytest.approx(2 * against.p)
    assert claim_p(Claim("z", "", "", (exact,))) is None
    assert claim_p(Claim("z", "", "", (sure, Measure.exact("", 2.0, 1.0)))) is None  # no chance decided this
    assert adjusted([both, bad])[1] == pytest.approx(min(2 * 2 * against.p, 1))


def test_false_verdicts_are_as_many_as_chance_makes() -> None:
    """Numbers on the edge of an open band: who agrees is wrong, and a flat prior, which expects few there, is too."""
    rng = np.random.default_rng(0)
    claims = [Claim("", "", "", (Measure.over_seeds("", rng.normal(0, 1, 5).tolist(), low=0),)) for _ in range(2000)]
    wrong, found = sum(claim.verdict == "agrees" for claim in claims), false_verdicts(claims)
    assert found.decided / 2000 == pytest.approx(0.05, abs=0.015)
    assert found.expected < wrong / 10
    assert found.at_most == pytest.approx(wrong, abs=3 * wrong**0.5)
    clear = false_verdicts([Claim("", "", "", (Measure.over_seeds("", [9.0, 9.1, 8.9], low=0),))] * 10)
    assert (clear.decided, round(clear.expected, 3), round(clear.at_most, 3)) == (10, 0.0, 0.0)
    assert false_verdicts([]).decided == 0
