"""Costs: what is stated was measured, slices add up to whole runs, and a run is not spread over cores."""

import json
import re
from collections.abc import Callable
from itertools import count
from math import log
from pathlib import Path
from typing import Any

import pytest

from engram.claims.costs import CORES, Known, identity, known
from engram.claims.experiment import DAYS, Scale, checks
from engram.cli.main import main
from engram.costs import flops
from engram.costs.cost import Cost, TooLong, size_of, within
from engram.costs.estimate import spread
from engram.costs.measure import _line, alike, of_draws
from engram.costs.rows import total
from engram.costs.searches import of_search
from engram.costs.sizes import extrapolated
from engram.costs.trainings import of_training
from engram.experiments import find, names
from engram.learning.reference import gradients
from engram.runner.execute import execute
from engram.specs import Check, Search, Train

Tiny = Callable[..., Train]
SCALES: tuple[Scale, ...] = ("quick", "paper")
README = (Path(__file__).parent.parent / "README.md").read_text()


@pytest.mark.parametrize("name", names())
def test_every_experiment_has_a_cost_and_states_it(name: str) -> None:
    experiment = find(name)
    for scale in SCALES:
        found = experiment.known(scale)
        if found is None:  # until `make costs` has measured it, its file says what it takes
            assert experiment.minutes(scale) > 0
            continue
        assert found.seconds + found.once > 0 or found.missing
        assert found.longest <= found.seconds + found.once
        assert experiment.minutes(scale) == pytest.approx(found.minutes or DAYS)
        assert found.words in experiment.times or None in map(experiment.known, SCALES)
        assert sum(found.runs.values()) <= 1.01 * (found.seconds + found.once)  # those that only differ in seeds once


@pytest.mark.parametrize("name", ["birth.joint", "memory.one-step", "facts.capacity"])
def test_each_run_is_told_by_its_own_cost(name: str) -> None:
    experiment = find(name)
    measured = experiment.known("quick")
    assert measured is not None
    for spec in experiment.specs("quick", [7]):
        assert experiment.seconds_of(spec, "quick", 1) == measured.runs[identity(spec)]


TIMES = {"20 seconds": 20, "half a minute": 30, "a minute": 60, "two minutes": 120, "a few minutes": 180}


def test_times_in_the_readme_are_those_of_the_data() -> None:
    """Where a line names an experiment, within a factor of 1.5; `engram birth --text` is real.birth."""
    named = {"make birth": "birth.joint", "engram birth --text": "real.birth"}
    for words, name in named.items():
        (line,) = (line for line in README.splitlines() if line.startswith(words) or f"engram {words}" in line)
        stated = next(seconds for time, seconds in TIMES.items() if time in line)
        found = known(name, "quick")
        assert found is not None
        assert abs(log(stated / (found.seconds / CORES + STARTING))) < log(1.5), line


def test_the_question_of_the_readme_is_asked_for_long_enough() -> None:
    """Its time is that of one run, on one core, of so many steps."""
    (line,) = (line for line in README.splitlines() if line.startswith("engram run birth.joint"))
    (spec,), found = find("birth.joint").specs("quick", [0]), known("birth.joint", "quick")
    steps = int(re.findall(r"plan.steps=(\d+)", line)[0])
    stated = next(seconds for time, seconds in TIMES.items() if time in line)
    assert isinstance(spec, Train)
    assert found is not None
    assert abs(log(stated / (found.seconds * steps / spec.steps + STARTING))) < log(1.5)


STARTING = 8.0  # seconds of a command besides its runs: Python, figures, a report


def test_a_slice_tells_the_bytes_of_the_whole_record(tiny: Tiny, home: Path) -> None:
    spec = tiny(steps=60)
    assert of_training(spec).bytes == pytest.approx(size_of(execute(spec, home).folder), rel=0.05)


def test_seconds_and_flops_grow_with_steps(tiny: Tiny) -> None:
    short, long = of_training(tiny(steps=999)), of_training(tiny(steps=9_999))
    assert long.flops == pytest.approx(10 * (short.flops or 0), rel=0.01)
    assert long.seconds > 2 * short.seconds


def test_frozen_matrices_make_steps_cheaper_until_they_thaw(tiny: Tiny) -> None:
    free, frozen = (tiny(steps=100, frozen_until=until) for until in ({}, {"W_K1": 50, "W_K2": 50}))
    assert (of_training(frozen).flops or 0) < (of_training(free).flops or 0)


def test_products_of_a_batch_are_those_of_two_small_ones_multiplied_out(tiny: Tiny) -> None:
    spec = tiny(steps=4, batch=5)
    w, names = spec.model.init(spec.task.N, spec.task.T, 0), spec.plan.trained
    batch = spec.task.sample(0, 0, 5)
    counted = flops.counted(lambda: gradients(spec.model, w, batch, spec.plan.loss, names))
    assert flops.of_step(spec, w, names) == pytest.approx(counted)


def test_what_costs_nothing_makes_no_difference(tiny: Tiny) -> None:
    spec = tiny(steps=4)
    faster = spec.plan.model_copy(update={"optimiser": spec.plan.optimiser.model_copy(update={"lr": 0.5})})
    assert alike(spec) == alike(spec.model_copy(update={"seed": 3, "plan": faster}))
    assert alike(spec) != alike(tiny(steps=5))


def test_a_line_through_two_numbers_of_draws() -> None:
    points = {4: Cost(3.0, None, 100.0, "whole"), 8: Cost(5.0, None, 200.0, "whole")}
    assert _line(points, 100) == Cost(51.0, None, 2500.0, "slices")


def test_a_cheap_check_is_run_whole() -> None:
    (spec,) = checks("lemmas.closed_forms", [0], draws=3, A=5, M=5, d=4)
    cost = of_draws(spec)
    assert cost is not None
    assert cost.how == "whole"


def check(d: int, M: int) -> Check:
    return checks("lemmas.closed_forms", [0], A=5, M=M, d=d)[0]


def test_a_power_law_in_two_sizes_is_found_again() -> None:
    grid = [check(d, M) for d in (4, 8, 16) for M in (5, 50)]
    law = [(spec, Cost(2e-3 * spec.sizes["d"] ** 2 * spec.sizes["M"], None, 10.0, "whole")) for spec in grid]
    found = extrapolated(check(64, 500), law)
    assert found is not None
    assert found.seconds == pytest.approx(2e-3 * 64**2 * 500, rel=1e-6)
    assert (found.how, found.bytes) == ("sizes", 10.0)
    assert extrapolated(check(64, 500), law[:1]) is None


def test_a_search_costs_what_its_trials_do() -> None:
    spec = find("memory.linear-trained").specs("smoke", [0])[0]
    assert isinstance(spec, Search)
    once, twice = (of_search(spec, [(8, 100)] * n) for n in (1, 2))
    assert (twice.flops, once.how) == (2 * (once.flops or 0), "slices")


def test_what_takes_too_long_is_stopped_by_its_own_seconds() -> None:
    with pytest.raises(TooLong), within(0.05):
        _ = [x for x in count() if x < 0]
    with within(30):
        pass


def cost_of(seconds: float, once: float, runs: dict[str, float]) -> Known:
    return Known(seconds, once, max(runs.values()), None, 0.0, 1.0, runs, [])


def test_no_run_is_spread_over_cores() -> None:
    each = cost_of(60.0, 30.0, {"a": 40.0, "b": 20.0, "c": 30.0})
    few, many = spread(each, seeds=10, cores=2), spread(each, seeds=10, cores=1000)
    assert (few.seconds, few.wall, few.bottleneck) == (630.0, 315.0, "total")
    assert (many.wall, many.bottleneck) == (40.0, "longest")


def test_runs_that_experiments_share_count_once() -> None:
    one, other, scale = find("birth.fig4-left"), find("birth.fig5"), "paper"
    left, right = cost_of(60.0, 0.0, {"a": 40.0, "b": 20.0}), cost_of(40.0, 0.0, {"a": 40.0})
    alone = total([(one, scale, left)], scale, 2)
    assert total([(one, scale, left), (other, scale, right)], scale, 2) == alone


def test_the_command_answers_in_one_object(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        main(["cost", "birth.fig3", "--scale", "quick", "--cores", "4", "--json"])
    (row,) = json.loads(capsys.readouterr().out)["costs"]
    found = known("birth.fig3", "quick")
    assert found is not None
    assert (row["experiment"], row["seconds_a_seed"], row["cores"]) == ("birth.fig3", found.seconds, 4)
    assert row["wall_seconds"] == pytest.approx(max(found.longest, row["core_hours"] * 900), rel=0.01)


def test_the_page_is_written_from_the_data(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        main(["cost", "--markdown"])
    page = capsys.readouterr().out
    assert page == (Path(__file__).parent.parent / "docs/costs.md").read_text()
    assert {line.split(" | ")[0].removeprefix("| ") for line in page.splitlines() if re.match(r"\| \w+\.", line)} == {
        *names()
    }
