"""What is said before runs begin: how long they take where they would be computed, and a budget for it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from engram.cli.main import main
from engram.engines.choosing import Where
from engram.engines.local import Local, cores
from engram.engines.ray_cluster import Ray
from engram.records.shelf import all_records
from engram.sweeps.cost import Needs, costs_of


def test_no_plan_is_shorter_than_its_longest_run_or_than_all_cores_at_work() -> None:
    many = Local(workers=4, threads=1)
    for seconds, at_once in (([5.0, 1.0, 1.0], 4), ([3.0] * 8, 2), ([], 3)):
        told = many.wall(seconds, at_once)
        assert told == max([0.0, *seconds, sum(seconds) / at_once])
    assert Local().wall([10.0]) == 10.0 / cores()  # alone, it has all of them
    assert Local(workers=1).side_by_side() == 1
    assert Local(threads=cores()).side_by_side() == 1
    assert Ray(workers=1).side_by_side() == 1


def test_a_plan_names_core_hours_disk_and_how_many_run_at_a_time() -> None:
    told = costs_of(Needs([1800.0, 1800.0], 12e6), Where(workers=1)).words
    assert told == "about 60 min, 1 run at a time (1.0 core-hours, 12 MB of records)"


@pytest.mark.parametrize("command", [("run", "birth.joint"), ("sweep", "birth.joint", "--set", "task.K=1,3")])
def test_nothing_is_begun_that_takes_longer_than_the_budget(home: Path, capsys: Any, command: Sequence[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([*command, "--set", "plan.steps=20000", "--budget", "30s"])
    assert stop.value.code == 2
    assert "times what was given" in capsys.readouterr().err
    assert all_records(home) == []


@pytest.mark.parametrize("command", [("run", "birth.joint"), ("sweep", "birth.joint", "--set", "task.K=1,3")])
def test_hours_are_asked_for(home: Path, capsys: Any, command: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engram.engines.ahead.LONG", 1.0)
    with pytest.raises(SystemExit) as stop:
        main([*command, "--set", "plan.steps=20000"])
    assert stop.value.code == 2
    assert "begin? Not interactive: add --yes" in capsys.readouterr().err
    assert all_records(home) == []


def test_a_budget_is_a_time(home: Path, capsys: Any) -> None:
    for wrong in ("2", "h", "-2h", "0s", "2 weeks"):
        with pytest.raises(SystemExit) as stop:
            main(["run", "birth.joint", "--scale", "smoke", f"--budget={wrong}"])
        assert stop.value.code == 2
        assert "--budget" in capsys.readouterr().err
