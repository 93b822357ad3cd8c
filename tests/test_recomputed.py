"""Whoever has only what `engram ledger --json` prints gets the same intervals and verdicts, by other means."""

import json
from functools import cache
from math import inf, pi, sqrt
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, betabinom, t

from engram.claims.experiment import Experiment
from engram.claims.ledger import Index, ledger
from engram.experiments import find, names
from engram.records.files import COMMITTED

Interval = tuple[float, float]


@pytest.fixture(scope="module")
def measures() -> list[dict[str, Any]]:
    """Of every claim that the committed records decide, through JSON and back."""
    experiments: list[Experiment] = [find(name) for name in names()]
    printed = json.dumps({"claims": [entry.to_json() for entry in ledger(experiments, Index.of([COMMITTED]))]})
    return [measure for claim in json.loads(printed)["claims"] for measure in claim["measures"]]


def student(measure: dict[str, Any]) -> Interval:
    values, n = np.array(measure["values"]), measure["n"]
    if np.ptp(values) < 1e-12 * np.abs(values).max():
        half = measure["resolution"] or inf
        return values[0] - half, values[0] + half
    low, high = t.interval(0.95, n - 1, values.mean(), values.std(ddof=1) / sqrt(n))
    return float(low), float(high)


def exact_binomial(measure: dict[str, Any]) -> Interval:
    """Clopper and Pearson by quantiles of beta distributions."""
    of = sum(measure["out_of"])
    k = round(sum(v * m for v, m in zip(measure["values"], measure["out_of"], strict=True)))
    low, high = beta.ppf(0.025, k, of - k + 1), beta.ppf(0.975, k + 1, of - k)
    return 0.0 if k == 0 else float(low), 1.0 if k == of else float(high)


THETA, RHO = (np.arange(900) + 0.5) / 900, beta.ppf((np.arange(300) + 0.5) / 300, 1, 5)


@cache
def log_pmf(k: int, m: int) -> np.ndarray:
    """Of k hits of m at each θ and ρ; many seeds of many measures have the same."""
    p = np.sin(THETA * pi / 2)[:, None] ** 2
    return betabinom.logpmf(k, m, p * (1 - RHO) / RHO, (1 - p) * (1 - RHO) / RHO)


def beta_binomial(measure: dict[str, Any]) -> Interval:
    """The posterior of p, summed over even quantiles of both priors: arcsine for p, Beta(1, 5) for ρ."""
    hits = [round(v * m) for v, m in zip(measure["values"], measure["out_of"], strict=True)]
    logs = sum(log_pmf(k, m) for k, m in zip(hits, measure["out_of"], strict=True))
    mass = np.exp(logs - np.max(logs)).sum(axis=1)
    low, high = np.interp([0.025, 0.975], np.cumsum(mass) / mass.sum(), np.sin((THETA + 0.5 / 900) * pi / 2) ** 2)
    return 0.0 if not any(hits) else float(low), 1.0 if hits == measure["out_of"] else float(high)


def alone(measure: dict[str, Any]) -> Interval:
    worst = max(measure["values"], key=abs)
    return worst, worst


METHODS = {
    "t over seeds": student,
    "t over datasets": student,
    "slopes per seed": student,
    "beta-binomial": beta_binomial,
    "exact binomial": exact_binomial,
    "worst of seeds": alone,
    "exact": alone,
}


ALONE = ("exact", "worst of seeds", "exact binomial")  # kinds for which one seed suffices


def verdict(measure: dict[str, Any], interval: Interval) -> str:
    low, high = (open_ if edge is None else edge for edge, open_ in zip(measure["predicted"], (-inf, inf), strict=True))
    inside = low < interval[0] and interval[1] < high
    outside = interval[1] <= low or interval[0] >= high
    return "agrees" if inside else "disagrees" if outside else "inconclusive"


def test_intervals_and_verdicts_can_be_redone(measures: list[dict[str, Any]]) -> None:
    assert {measure["method"] for measure in measures} <= set(METHODS)
    for measure in measures:
        if None in measure["values"]:  # a seed that never got there
            assert measure["verdict"] == "inconclusive"
            continue
        single = measure["n"] == 1 and measure["method"] not in ALONE
        found = (-inf, inf) if single else METHODS[measure["method"]](measure)
        printed = [open_ if v is None else v for v, open_ in zip(measure["interval"], (-inf, inf), strict=True)]
        atol = 1e-3 if measure["method"] == "beta-binomial" else 1e-12
        np.testing.assert_allclose(printed, found, rtol=1e-9, atol=atol, err_msg=measure["name"])
        assert verdict(measure, found) == measure["verdict"], measure["name"]


def test_nothing_random_has_an_interval_without_width(measures: list[dict[str, Any]]) -> None:
    widths = {m["name"]: m["interval"] for m in measures if m["method"] not in ("exact", "worst of seeds")}
    assert [name for name, (low, high) in widths.items() if low is not None and low == high] == []


def test_p_and_distance_say_what_the_interval_says(measures: list[dict[str, Any]]) -> None:
    for measure in measures:
        decided = measure["verdict"] != "inconclusive"
        assert measure["p"] is None or (measure["p"] < 0.025) == decided, measure["name"]
        assert measure["distance"] is None or (abs(measure["distance"]) >= 1) == decided, measure["name"]
        if measure["n"] > 1 and None not in measure["values"]:
            assert (measure["p"] is None) == (measure["method"] in ("exact", "worst of seeds"))
