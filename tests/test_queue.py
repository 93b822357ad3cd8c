"""The queue: in which order, what is skipped, what is left and for how long; killed, it goes on to the same bytes."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from engram.claims.experiment import Experiment, Labelled, Scale, Seeds, checks
from engram.claims.registration import registration
from engram.cli.main import main
from engram.engines.local import Local, cores
from engram.errors import EngramError
from engram.experiments import find, names
from engram.queue import RAISED, Look, Queue, planned
from engram.records import Record
from engram.records.bundle import bundle
from engram.records.shelf import all_records
from engram.records.writer import Writer
from engram.runner.execute import environment
from engram.specs import Check, Spec, Train
from engram.specs.spec import run_id

Tiny = Callable[..., Train]


def experiment(name: str, times: str = "", least: int = 2, **specs: Any) -> Experiment:
    """One Check for each width and seed; `once` are Specs of no seed."""
    widths, once = specs.get("widths", (4,)), specs.get("once", [])
    module = ModuleType(name)

    def listed(scale: Scale, seeds: Seeds) -> Labelled:
        return {d: checks("lemmas.closed_forms", seeds, A=5, M=5, d=d) for d in widths} | (
            {"once": once} if once else {}
        )

    vars(module).update(TIMES=times, SEEDS={"smoke": least, "quick": least, "paper": least}, specs=listed)
    return Experiment(name, module, "")


def queue(home: Path, *experiments: Experiment, scales: tuple[Scale, ...] = ("smoke",)) -> Queue:
    return Queue(planned(experiments, scales, 60)[0], [home])


@pytest.fixture
def all_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Experiments of these tests, under fresh seeds."""
    monkeypatch.setattr("engram.queue.seeds_of", lambda one, scale: range(10_000, 10_000 + one.least_seeds(scale)))
    monkeypatch.setattr("engram.queue.unregistered", lambda *about: None)


def look_after(waiting: Queue) -> Look:
    waiting.run(lambda line: None)
    return waiting.look()


def test_every_experiment_says_what_a_seed_takes() -> None:
    minutes = {(name, scale): find(name).minutes(scale) for name in names() for scale in ("quick", "paper")}
    assert all(0 < found <= 60 for (_, scale), found in minutes.items() if scale == "quick")
    assert minutes["birth.fig9", "quick"] == pytest.approx(minutes["birth.fig9", "paper"], rel=0.5)  # the same runs
    assert all(minutes[name, "quick"] < 1.5 * minutes[name, "paper"] for name in names())
    assert {"birth.one-layer", "memory.mlp-trained"} <= {name for name in names() if minutes[name, "paper"] >= 60}
    with pytest.raises(EngramError, match="does not say what a seed takes at paper scale"):
        experiment("mine", "quick 2 s a seed").minutes("paper")


def test_quick_comes_before_paper_and_the_cheapest_first(all_registered: None) -> None:
    known = [
        experiment("a", "quick 2 min a seed, paper 59 min a seed"),
        experiment("b", "quick 20 s a seed, paper 1 h a seed"),
        experiment("c", "quick 1 s a seed; paper days a seed", least=3),
        experiment("d", "quick and paper 30 s a seed"),
    ]
    jobs, left_out = planned(known, ["quick", "paper"], 60)
    order = [("c", "quick", 3), ("b", "quick", 2), ("d", "quick", 2), ("a", "quick", 2), ("d", "paper", 2)]
    order.append(("a", "paper", 2))
    assert [(*job.name, job.seed) for job in jobs] == [(name, s, 10_000 + i) for name, s, n in order for i in range(n)]
    assert [(one["experiment"], one["why"]) for one in left_out] == [
        ("b", "a seed takes 60 min"),
        ("c", "a seed takes 2880 min"),
    ]


def test_only_what_is_registered_as_it_is_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh seeds are not spent on a claim that nobody has written down."""
    one = find("memory.one-step")
    seeds = range(10_000, 10_004)
    form = replace(registration()[one.name], n={"quick": len(seeds)})
    now = form.forms("quick", [run_id(spec) for spec in one.specs("quick", seeds)])
    forms = {claim: {"quick": digest} for claim, digest in now.items()}
    monkeypatch.setitem(registration(), one.name, form)
    monkeypatch.setattr("engram.queue.forms_at", lambda file: forms)
    jobs, left_out = planned([one], ["quick", "paper"], 60)
    assert [job.seed for job in jobs] == [*seeds]
    assert left_out == [{"experiment": one.name, "scale": "paper", "why": "not registered"}]
    monkeypatch.setitem(registration(), one.name, replace(form, n={"quick": 5}))
    jobs, left_out = planned([one], ["quick"], 60)
    assert (jobs, left_out[0]["why"]) == ([], "not registered in its present form: engram register")


def test_the_queue_of_engram_says_of_every_experiment_whether_it_runs() -> None:
    jobs, left_out = planned(map(find, names()), ["quick", "paper"], 60)
    known = [job.name for job in jobs], [(one["experiment"], one["scale"]) for one in left_out]
    assert {*known[0], *known[1]} == {(name, scale) for name in names() for scale in ("quick", "paper")}
    assert not {*known[0]} & {*known[1]}
    assert all(job.seed >= 10_000 for job in jobs)
    assert [job.scale for job in jobs] == sorted((job.scale for job in jobs), reverse=True)


def test_what_is_recorded_is_skipped_and_what_is_shared_runs_once(home: Path, tmp_path: Path) -> None:
    """Recorded here, or in a bundle of another home; that of an experiment with the same Specs counts for both."""
    shelf, a, b = tmp_path / "shelf", experiment("a", widths=(4, 5)), experiment("b", widths=(5, 6), least=3)
    (recorded,) = Local(tmp_path / "other").run(a.specs("smoke", [0])[:1], lambda spec, row: None).records
    bundle([recorded], shelf / "a-smoke.zip")
    waiting = Queue(planned([a, b], ["smoke"], 60)[0], [home, shelf])
    assert look_counts(waiting.look()) == {"done": 1, "running": 0, "left": 7, "failed": 0}
    assert look_counts(look_after(waiting)) == {"done": 8, "running": 0, "left": 0, "failed": 0}
    assert recorded.id not in {record.id for record in all_records(home)}
    rows = {row["experiment"]: row for row in waiting.look().to_json()["queue"]}
    assert (rows["a"]["done"], rows["b"]["done"]) == (4, 6)
    stamps = {record.id: record.folder.stat().st_mtime_ns for record in all_records(home)}
    waiting.run(lambda line: pytest.fail("nothing was left"))
    assert {record.id: record.folder.stat().st_mtime_ns for record in all_records(home)} == stamps


def look_counts(look: Look) -> dict[str, Any]:
    return {name: value for name, value in look.to_json()["total"].items() if name != "hours"}


def test_failures_are_listed_and_stop_nothing(home: Path, tiny: Tiny) -> None:
    """One diverges, one raises, the record of one is damaged; only the one that raised is tried again."""
    damaged = Check(law="lemmas.closed_forms", sizes={"A": 5, "M": 5, "d": 7})
    raises = Check(law="lemmas.closed_forms", sizes={"A": 5, "M": 5, "d": -1})
    diverges = tiny(steps=60, lr=1e9)
    (record,) = Local(home).run([damaged], lambda spec, row: None).records
    (record.folder / "rows.jsonl").write_text("{}\n")
    waiting, said = queue(home, experiment("a", once=[damaged, raises, diverges])), list[str]()
    waiting.run(said.append)
    found = waiting.look().to_json()
    assert (found["total"]["done"], found["total"]["failed"], found["total"]["left"]) == (2, 3, 0)
    why = {one["run"]: one["why"] for one in found["failed"]}
    assert "does not match the digest" in why[run_id(damaged)]
    assert "not finite" in why[run_id(diverges)]
    assert run_id(raises) in why
    assert sum(line.startswith("failed: ") for line in said) == 2
    said.clear()
    waiting.run(said.append)
    assert [line.split(": ")[1] for line in said if line.startswith("failed: ")] == [run_id(raises)]
    (home / RAISED).write_text("[1")
    with pytest.raises(EngramError, match=r"queue.json cannot be read; remove it"):
        waiting.look()


def test_hours_left_are_those_of_other_seeds_else_what_the_file_says(
    home: Path, tiny: Tiny, all_registered: None
) -> None:
    once = tiny(seed=3)
    waiting = queue(home, experiment("a", "quick 1 min a seed", widths=(4, 5), once=[once]), scales=("quick",))
    four, five = ([*job.specs] for job in waiting.jobs)
    seconds = waiting.look().seconds_left
    assert seconds == {id: 60.0 for id in {*four, *five}}  # a minute on two cores is shared by the Specs of the seed
    assert waiting.look().to_json()["total"]["hours"] == round(5 * 60 / cores() / 3600, 2)
    Local(home).run([waiting.jobs[0].specs[four[0]]], lambda spec, row: None)
    (home / four[0] / "timing.jsonl").write_text('{"step": 0, "seconds": 300.0}\n')
    (home / five[1]).mkdir()
    (home / five[1] / "timing.jsonl").write_text('{"step": 0, "seconds": 20.0}\n{"step": 1, "sec')
    assert waiting.look().seconds_left == {four[1]: 60.0, run_id(once): 60.0, five[0]: 300.0, five[1]: 40.0}


def test_a_run_of_another_command_is_waited_for(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts as running; once that command is over, whatever it left is run."""
    waiting = queue(home, experiment("a"))
    held = next(iter(waiting.jobs[0].specs.values()))
    writer, looks = Writer(held, home, environment("cpu", "none")), list[dict[str, Any]]()
    writer.__enter__()

    def sleep(seconds: float) -> None:
        looks.append(look_counts(waiting.look()))
        writer.__exit__(None, None, None)

    monkeypatch.setattr("engram.queue.time.sleep", sleep)
    monkeypatch.setattr("engram.queue.PATIENCE", 0.0)
    assert look_counts(look_after(waiting)) == {"done": 2, "running": 0, "left": 0, "failed": 0}
    assert looks == [{"done": 1, "running": 1, "left": 0, "failed": 0}]


def test_packing_adds_to_bundles_and_keeps_what_they_have(home: Path, tmp_path: Path) -> None:
    shelf, a = tmp_path / "shelf", experiment("a", widths=(4, 5))
    b = experiment("b", widths=(5, 6))
    old = Local(tmp_path / "other").run(a.specs("smoke", [7]), lambda spec, row: None).records
    bundle(old, shelf / "a-smoke.zip")
    before = {record.id: record.rows for record in all_records(shelf)}
    waiting = queue(home, a, b)
    unfinished = [*waiting.jobs[-1].specs][-1]
    Local(home).run([s for id, s in every(waiting).items() if id != unfinished], lambda spec, row: None)
    assert waiting.pack(shelf) == {"a-smoke.zip": 4, "b-smoke.zip": 1}
    found = {record.id: record for record in all_records(shelf)}
    assert set(found) == {*before, *every(waiting)} - {unfinished}
    assert all(found[id].rows == rows for id, rows in before.items())
    assert all(record.finished and record.rows == Record(home / id).rows
               for id, record in found.items() if id not in before)  # fmt: skip
    content = {path.name: path.read_bytes() for path in shelf.iterdir()}
    assert waiting.pack(shelf) == {}
    assert {path.name: path.read_bytes() for path in shelf.iterdir()} == content
    Local(home).run([every(waiting)[unfinished]], lambda spec, row: None)
    assert waiting.pack(shelf) == {"b-smoke.zip": 1}
    assert len(all_records(shelf)) == len(found) + 1
    (shelf / "b-smoke.zip").write_bytes(content["b-smoke.zip"][:-30])
    with pytest.raises(EngramError, match=r"b-smoke.zip cannot be read as a zip"):
        waiting.pack(shelf)


def every(waiting: Queue) -> dict[str, Spec]:
    return {id: spec for job in waiting.jobs for id, spec in job.specs.items()}


def test_commands_answer_in_one_object(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered = list[int]()
    monkeypatch.setattr("os.nice", lowered.append)
    with pytest.raises(SystemExit, match="0"):
        main(["queue", "run", "memory.one-step", "--scales", "smoke", "--json"])
    total = json.loads(capsys.readouterr().out)["total"]
    assert (lowered, total["done"], total["left"], total["hours"]) == ([19], len(all_records(home)), 0, 0)
    with pytest.raises(SystemExit, match="0"):
        main(["queue", "pack", "memory.one-step", "--scales", "smoke", "--into", "packed", "--json"])
    packed = json.loads(capsys.readouterr().out)
    assert packed["added"] == {"memory.one-step-smoke.zip": total["done"]}
    assert packed["bytes"] == (tmp_path / "packed/memory.one-step-smoke.zip").stat().st_size
    with pytest.raises(SystemExit, match="0"):
        main(["queue", "state", "birth.one-layer", "birth.fig10"])
    out = " ".join(capsys.readouterr().out.split())
    assert find("birth.fig10").minutes("paper") < 60 < find("birth.one-layer").minutes("paper")
    assert re.search(r"left out \(a seed takes \d+ min\): birth.one-layer paper", out)
    assert re.search(r"\d+ runs: \d+ done, 0 running, (\d+) left, 0 failed; about .* the queue is not running$", out)
