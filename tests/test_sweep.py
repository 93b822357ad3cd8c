"""Sweeps: each setting is a group of its own, whatever is combined, paired, shared or left out."""

import csv
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engram
from engram.cli.main import main
from engram.costs.trainings import of_training
from engram.engines.local import Local
from engram.errors import EngramError
from engram.experiments import find
from engram.learning import SGD
from engram.records import Record
from engram.records.shelf import all_records
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.spec import run_id
from engram.sweeps import Planned, plan_sweep, sweep
from engram.sweeps.cells import points, read_axes
from engram.sweeps.cost import needs
from engram.sweeps.sweep import run_sweep


def test_words_become_axes_and_commas_within_brackets_stay() -> None:
    words = ["model.d=16,32", 'plan.trained=["E","U"],["U"]', "plan.loss=all", 'task.x={"a": [1, 2]},"b,c"']
    assert read_axes(words) == {
        "model.d": [16, 32],
        "plan.trained": [["E", "U"], ["U"]],
        "plan.loss": ["all"],
        "task.x": [{"a": [1, 2]}, "b,c"],
    }


def test_a_grid_has_every_combination_and_a_zip_the_pairs() -> None:
    axes = {"a": [1, 2], "b": ["x", "y"], "c": [0]}
    assert [tuple(point.values()) for point in points(axes)] == [(1, "x", 0), (1, "y", 0), (2, "x", 0), (2, "y", 0)]
    assert [tuple(point.values()) for point in points(axes, zipped=True)] == [(1, "x", 0), (2, "y", 0)]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["task.K"], "write FIELD=VALUE,VALUE"),
        (["task.K="], "write FIELD=VALUE,VALUE"),
        (["task.K=1,,3"], "a value is missing"),
        (["task.K=1,3,1"], "1 is given twice"),
        (["task.K=1", "task.K=3"], "named twice"),
        (["task.N=1,3"], "no such field"),
        (["task.K=1,2,3", "model.d=8,16"], "equally many values"),
        ([], "at least one field"),
    ],
)
def test_odd_sweeps_are_refused_before_anything_runs(words: list[str], why: str) -> None:
    with pytest.raises(EngramError, match=why):
        plan_sweep("birth.joint", read_axes(words), "smoke", zipped=len(words) == 2)


def test_labels_that_the_swept_field_tells_apart_become_one() -> None:
    """birth.fig3 differs in what is frozen; set to one value, its five labels are the same runs."""
    planned = plan_sweep("birth.fig3", {"plan.frozen_until": [{}, {"W_K1": 3}]}, "smoke", 2)
    assert [cell.words for cell in planned.cells] == ["joint · frozen_until={}", "joint · frozen_until={'W_K1': 3}"]


def ran(planned: Planned, home: Path) -> Planned:
    """All its runs, in this process: starting others takes longer than they do."""
    for spec in planned.specs:
        with suppress(EngramError):
            execute(spec, home)
    return planned


def test_each_setting_has_a_mean_by_itself_and_what_diverged_is_named(tiny: Callable[..., Train], home: Path) -> None:
    spec = tiny(steps=20)
    planned = ran(plan_sweep(spec, {"plan.optimiser": [SGD(lr=0.01), SGD(lr=1e38)], "model.d": [8, 64]}, seeds=3), home)
    swept = run_sweep(planned, ["loss"])
    calm, wild = [row for row in swept.rows if row["n"]], [row for row in swept.rows if not row["n"]]
    assert [row["settings"]["model.d"] for row in calm] == [row["settings"]["model.d"] for row in wild] == [8, 64]
    for row in calm:
        records = [Record(home / id) for id in row["runs"]]
        assert {r.train.model.d for r in records} == {row["settings"]["model.d"]}  # type: ignore[attr-defined]
        assert [r.spec.seed for r in records] == row["seeds"] == [0, 1, 2]
        ends = [np.mean([x["loss"] for x in r.rows if x["step"] >= 18]) for r in records]
        assert row["metrics"]["loss"]["mean"] == pytest.approx(np.mean(ends))
    assert all("not finite" in why for row in wild for why in row["failed"].values())
    assert all(row["metrics"]["loss"]["mean"] is None for row in wild)
    head, names, *lines = repr(swept).splitlines()
    assert head == f"<sweep of {spec.title}: 4 settings, 6 runs>"
    assert names.split() == ["plan.optimiser", "model.d", "loss", "loss,", "low", "loss,", "high", "seeds"]
    assert lines[0].startswith("SGD lr=0.01 ")
    assert lines[-1].split()[-4:] == ["–", "–", "–", "0"]


def test_the_figure_has_the_swept_fields_as_axes(tiny: Callable[..., Train], home: Path) -> None:
    axes = {"model.d": [8, 64], "plan.optimiser.lr": [0.1, 0.2]}
    swept = run_sweep(ran(plan_sweep(tiny(steps=4), axes, seeds=2), home), ["loss"])
    drawn = json.loads(next(path for path in swept.figures if path.suffix == ".json").read_text())
    (panel,) = drawn["panels"]
    assert panel["x"] == "model.d"
    lines = {line["label"]: line for line in panel["lines"] if not line["label"].endswith("seeds")}
    assert list(lines) == ["plan.optimiser.lr = 0.1", "plan.optimiser.lr = 0.2"]
    means = [row["metrics"]["loss"]["mean"] for row in swept.rows if row["settings"]["plan.optimiser.lr"] == 0.2]
    assert lines["plan.optimiser.lr = 0.2"]["y"] == pytest.approx(means, abs=1e-3)
    assert [line["x"] for line in lines.values()] == [[8, 64], [8, 64]]
    seeds = [line for line in panel["lines"] if line["label"] == "plan.optimiser.lr = 0.1, seeds"]
    assert sorted(set(seeds[0]["x"])) == [8, 64]  # aside in the picture only


def test_an_interval_says_what_can_be_wherever_it_is_read(tiny: Callable[..., Train], home: Path) -> None:
    """Of three seeds it is cut where a share or a loss cannot be; of two there is none."""
    axes, metrics = {"model.d": [8]}, ["loss", "recall.W_O2"]
    three = run_sweep(ran(plan_sweep(tiny(steps=4), axes, seeds=3), home), metrics)
    two = run_sweep(plan_sweep(tiny(steps=4), axes, seeds=2), metrics)
    (row,), (line,) = three.rows, three.table
    for name in metrics:
        found = row["metrics"][name]
        assert (line[f"{name}, low"], line[f"{name}, high"]) == (found["low"], found["high"])
        assert 0 <= found["low"] <= found["mean"] <= found["high"]
    assert row["metrics"]["recall.W_O2"]["high"] <= 1
    assert {end for found in two.rows[0]["metrics"].values() for end in (found["low"], found["high"])} == {None}
    assert list(two.table[0]) == ["model.d", *metrics, "seeds"]


def test_the_table_is_written_as_measured(tiny: Callable[..., Train], home: Path, tmp_path: Path) -> None:
    axes = {"model.d": [8, 16], "plan.optimiser": [SGD(lr=0.1)]}
    swept = run_sweep(ran(plan_sweep(tiny(steps=4), axes, seeds=2), home), ["loss", "accuracy.in_context"])
    lines = list(csv.DictReader(swept.csv.read_text().splitlines()))
    assert list(lines[0]) == ["model.d", "plan.optimiser", "seed", "metric", "value"]
    assert [(x["model.d"], x["seed"]) for x in lines if x["metric"] == "loss"] == [
        ("8", "0"), ("8", "1"), ("16", "0"), ("16", "1"),
    ]  # fmt: skip
    assert [float(x["value"]) for x in lines[:2]] == swept.rows[0]["metrics"]["loss"]["values"]
    assert json.loads(lines[0]["plan.optimiser"])["lr"] == 0.1
    assert swept.to_csv(tmp_path / "mine.csv").read_bytes() == swept.csv.read_bytes()
    assert swept.to_json()["csv"] == str(swept.csv)


def test_a_sweep_goes_on_where_it_was_stopped_and_runs_nothing_twice(tiny: Callable[..., Train], home: Path) -> None:
    spec = tiny(steps=4)
    (first,) = sweep(spec, {"model.d": [8]}, seeds=1).records
    planned = plan_sweep(spec, {"model.d": [8, 16]}, seeds=2)
    assert [run_id(one) for one in planned.left] == [run_id(one) for one in planned.specs if run_id(one) != first.id]
    ran(planned, home)
    assert len(all_records(home)) == 4
    assert plan_sweep(spec, {"model.d": [8, 16]}, seeds=2).left == []


def test_what_is_left_is_estimated_from_a_few_steps(tiny: Callable[..., Train], home: Path) -> None:
    spec, longer = tiny(steps=10), tiny(steps=10_000)
    nothing, two = needs([[], []], "auto", home), needs([[longer, longer]], "auto", home)
    assert nothing is not None
    assert (nothing.seconds, nothing.bytes) == ([], 0)
    assert 0 < of_training(spec).seconds < of_training(longer).seconds
    assert two is not None
    assert len(two.seconds) == 2
    assert two.seconds[0] == two.seconds[1] > of_training(longer).seconds / 6
    assert two.bytes == pytest.approx(2 * of_training(longer).bytes, rel=0.01)


def said(capsys: Any, *words: str) -> dict[str, Any]:
    with pytest.raises(SystemExit) as stop:
        main([*words, "--json"])
    assert stop.value.code == 0
    return json.loads(capsys.readouterr().out)


def test_the_command_plans_runs_and_tells_the_same(home: Path, capsys: Any) -> None:
    words = ["sweep", "birth.joint", "--set", "task.K=1,3", "--set", "model.d=8,16", "--zip", "--scale", "smoke"]
    planned = said(capsys, *words, "--dry-run")
    assert [cell["settings"] for cell in planned["cells"]] == [
        {"task.K": 1, "model.d": 8},
        {"task.K": 3, "model.d": 16},
    ]
    assert (planned["runs"], planned["left"]) == (2, 2)
    assert 0 < planned["seconds"] <= planned["core_seconds"]
    assert planned["bytes"] > 0
    assert planned["at_once"] == Local().side_by_side()
    assert all_records(home) == []
    ran(plan_sweep("birth.joint", {"task.K": [1, 3], "model.d": [8, 16]}, "smoke", zipped=True), home)
    swept = said(capsys, *words)
    assert [row["runs"] for row in swept["rows"]] == [cell["runs"] for cell in planned["cells"]]
    assert all(Path(path).exists() for path in swept["figures"])


def test_python_has_it_too() -> None:
    assert engram.sweep is sweep


OWN = """
from engram import SGD, Bigram, Plan, Simplified, Train

def specs(scale, seeds):
    plan = Plan(optimiser=SGD(lr=0.1), steps=3, batch=2)
    return {f"d={d}": [Train(task=Bigram(K=3, T=16), model=Simplified(d=d), plan=plan, seed=seed) for seed in seeds]
            for d in (8, 16)}
"""


def test_a_file_with_labels_and_no_figure_gets_one_by_labels(home: Path) -> None:
    """And curves of each label by itself: no mean is taken over different settings."""
    Path("mine.py").write_text(OWN)
    experiment = find("./mine.py")
    for spec in experiment.specs("smoke", [0, 1]):
        execute(spec, home)
    result = engram.run("./mine.py", "smoke", 2)
    drawn = [json.loads(path.read_text()) for path in result.figures if path.suffix == ".json"]
    assert len(drawn) == 3
    loss = drawn[0]["panels"][-1]
    ends = [np.mean([record.last("loss") for record in result.records[i : i + 2]]) for i in (0, 2)]
    assert any(line["y"] == pytest.approx(ends, abs=1e-3) for line in loss["lines"] if len(line["y"]) == 2)
