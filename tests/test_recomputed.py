"""Whoever has the record files and what `engram ledger --json` prints gets the same verdicts, by other means.

tests/independent.py knows nothing of Engram. From what is printed it decides every claim again; from the files it reads
values of claims of every kind, and decides these from the beginning.
"""

import ast
import json
from collections.abc import Callable
from math import inf, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import independent
from engram.claims.experiment import Experiment
from engram.claims.ledger import Index, ledger
from engram.experiments import find, names
from engram.records.files import COMMITTED
from independent import Record, capacity, curve, log_of_births, verdict

Values = list[float]


@pytest.fixture(scope="module")
def printed() -> dict[str, dict[str, Any]]:
    """Every claim that the committed records decide, through JSON and back."""
    experiments: list[Experiment] = [find(name) for name in names()]
    text = json.dumps([entry.to_json() for entry in ledger(experiments, Index.of([COMMITTED]))])
    return {claim["id"]: claim for claim in json.loads(text)}


@pytest.fixture(scope="module")
def measures(printed: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [measure for claim in printed.values() for measure in claim["measures"]]


def test_the_script_is_independent() -> None:
    source = Path(independent.__file__).read_text()
    imported = {n.module for n in ast.walk(ast.parse(source)) if isinstance(n, ast.ImportFrom)}
    imported |= {name.name for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Import) for name in n.names}
    assert not [name for name in imported if name and name.startswith("engram")]


def assert_decided_alike(values: Values, measure: dict[str, Any]) -> None:
    low, high, word = verdict(values, measure)
    told = [end if v is None else v for v, end in zip(measure["interval"], (-inf, inf), strict=True)]
    atol = 1e-3 if measure["method"] == "beta-binomial" else 1e-12
    np.testing.assert_allclose(told, (low, high), rtol=1e-9, atol=atol, err_msg=measure["name"])
    assert word == measure["verdict"], measure["name"]


def test_intervals_and_verdicts_can_be_redone(measures: list[dict[str, Any]]) -> None:
    for measure in measures:
        assert_decided_alike(measure["values"], measure)


def having(seeds: list[int], **fields: Any) -> list[Record]:
    """The records of these seeds whose Spec has these fields, by seed; task__K is the field K of its task."""

    def field(spec: dict[str, Any], path: str) -> Any:
        for name in path.split("__"):
            spec = spec.get(name) if isinstance(spec, dict) else None  # type: ignore[assignment]
        return spec

    def admit(spec: dict[str, Any]) -> bool:
        return spec["seed"] in seeds and all(field(spec, name) == value for name, value in fields.items())

    return sorted(independent.records(COMMITTED, admit), key=lambda record: record[0]["seed"])


def hebbian(seeds: list[int]) -> list[dict[int, float]]:
    """For each seed the capacity of a Hebbian matrix, by its width."""
    asked = {"model__class": "models.stores.Outer", "task__kind": "identity", "target": 0.99}
    runs = [run for run in having(seeds, **asked) if run[0]["bracket"][1] < 4 * 0.027 * run[0]["model"]["d"] ** 2 + 9]
    return [{run[0]["model"]["d"]: capacity(*run) for run in runs if run[0]["seed"] == seed} for seed in seeds]


def grown(seeds: list[int]) -> Values:
    found = [(np.log([*sizes]), np.log([*sizes.values()])) for sizes in hebbian(seeds)]
    return [float(np.polyfit(d, N, 1)[0]) for d, N in found]


def factors(seeds: list[int]) -> Values:
    return [float(np.exp(np.mean([log(N / d**2) for d, N in sizes.items()]))) for sizes in hebbian(seeds)]


def one_step(seeds: list[int]) -> Values:
    runs = having(seeds, law="one_step_bigram.recalls", sizes={"d": 512}, draws=64)
    return [round(65 * row["recall"]) / 65 for _, rows in runs for row in rows if row["batches"] == 8]


def converged(seeds: list[int]) -> Values:
    flows = [run for run in having([0], law="fact_flow.stages") if run[0]["sizes"].get("until") == 40_000]
    return [flows[0][1][-1]["loss"]]


def drifts(seeds: list[int]) -> Values:
    return [
        max((row["drift"] for row in rows), key=abs) for _, rows in having(seeds, law="fact_flow.conserved", draws=200)
    ]


def over_datasets(seeds: list[int]) -> Values:
    runs = having(seeds, law="learning.denoising.trained", sizes__case="subspace", draws=1000)
    ends = {s["sizes"]["data"]: rows[-1] for s, rows in runs if s["sizes"].get("data") == s["seed"]}
    return [ends[seed]["loss.test"] / ends[seed]["loss.bayes"] for seed in seeds]


def overlaps(seeds: list[int]) -> Values:
    runs = having(seeds, law="hopfield.retrieval", sizes={"d": 1000, "N": 120})
    return [float(np.mean([row["overlap"] for row in rows])) for _, rows in runs]


def joint(seeds: list[int], steps: int) -> list[list[dict[str, Any]]]:
    asked = {"model__class": "models.simplified.Simplified", "task__K": 5, "plan__loss": "in_context"}
    runs = having(seeds, plan__steps=steps, plan__optimiser__lr=0.2, plan__frozen_until={}, **asked, model__d=128)
    return [rows for spec, rows in runs if spec["task"]["T"] == 256 and len(spec["plan"]["trained"]) == 3]


def learned(steps: int) -> Callable[[list[int]], Values]:
    def read(seeds: list[int]) -> Values:
        curves = [curve(rows, "accuracy.in_context") for rows in joint(seeds, steps)]
        return [float(values[at > at[-1] - 30].mean()) for at, values in curves]

    return read


def births(steps: int) -> Callable[[list[int]], Values]:
    return lambda seeds: [log_of_births(rows, "recall.W_K2", "recall.W_O2") for rows in joint(seeds, steps)]


STEPS = {"quick": 400, "paper": 500}
FROM_FILES: dict[tuple[str, str], Callable[[list[int]], Values]] = {
    ("memory.hebb-capacity", "exponent of N in d"): grown,
    ("memory.hebb-constant", "N/d², geometric mean over d"): factors,
    ("birth.one-step-recall", "recall at d=512 after 8 batches"): one_step,
    ("facts.converges", "loss at the end"): converged,
    ("facts.conserved", "largest drift over max w², worst seed"): drifts,
    ("memory.denoising-datasets", "trained: test / Bayes"): over_datasets,
    ("memory.hopfield", "overlap at N = 0.12 d"): overlaps,
}


def test_values_can_be_read_from_the_files(printed: dict[str, dict[str, Any]]) -> None:
    steps = STEPS[printed["birth.learns"]["scale"]]
    by_scale = {
        ("birth.learns", f"in-context accuracy, mean of the last 30 steps up to {steps}"): learned(steps),
        ("birth.output-first", "log of birth step of W_K2 over that of W_O2 (recall > 0.5)"): births(steps),
    }
    methods = set[str]()
    for (id, name), read in {**FROM_FILES, **by_scale}.items():
        measure = next(one for one in printed[id]["measures"] if one["name"] == name)
        values = read(printed[id]["seeds"])
        np.testing.assert_allclose(values, measure["values"], rtol=1e-9, atol=1e-12, err_msg=name)
        assert_decided_alike(values, measure)
        methods.add(measure["method"])
    assert methods >= {"t over seeds", "slopes per seed", "beta-binomial", "worst of seeds", "exact", "t over datasets"}


def test_nothing_random_has_an_interval_without_width(measures: list[dict[str, Any]]) -> None:
    widths = {m["name"]: m["interval"] for m in measures if m["method"] not in independent.POINTS}
    assert [name for name, (low, high) in widths.items() if low is not None and low == high] == []


def test_p_and_distance_say_what_the_interval_says(measures: list[dict[str, Any]]) -> None:
    for measure in measures:
        decided = measure["verdict"] != "inconclusive"
        assert measure["p"] is None or (measure["p"] < 0.025) == decided, measure["name"]
        assert measure["distance"] is None or (abs(measure["distance"]) >= 1) == decided, measure["name"]
        if measure["n"] > 1 and None not in measure["values"]:
            assert (measure["p"] is None) == (measure["method"] in independent.POINTS)
