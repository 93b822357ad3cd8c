"""The lab without a browser: watching, steering, forking, replaying; and what must not happen."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from websockets.sync.client import connect

from engram.api import recheck
from engram.cli.main import main
from engram.lab.mailbox import Mailbox
from engram.records import Record
from lab import Page, Served, answers, served


@pytest.fixture
def home(lab: Served, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ENGRAM_HOME", str(lab.home))
    return lab.home


def test_a_run_is_started_watched_and_finished(page: Page, home: Path) -> None:
    run = page.start()
    page.finish(run)
    record = Record(home / run)
    assert record.finished
    for row in record.rows:
        assert told(page.rows[run][row["step"]]) == told(row)
    assert not (home / run / "live.safetensors").exists()
    listed = {line["id"]: line for line in page.runs()["runs"]}
    assert listed[run]["state"] == "finished"


def told(row: dict) -> dict:
    """What was measured in a row."""
    return {name: value for name, value in row.items() if value is not None}


def test_a_frozen_matrix_stops_and_both_branches_are_there(page: Page, home: Path) -> None:
    run = page.start(**{"plan.steps": 3000})
    page.until(run, 5)
    answer = page.ask("intervene", run=run, kind="freeze", fields={"matrix": "W_O2"})
    assert answer["ok"], answer
    fork, step = answer["run"], answer["step"]
    assert fork != run
    page.until(fork, step + 20)
    page.ask("control", op="pause")
    child, parent = Record(home / fork), Record(home / run)
    assert child.rows[:step] == parent.rows[:step]
    assert len({row["recall.W_O2"] for row in child.rows[step:] if "recall.W_O2" in row}) == 1
    lines = {line["id"]: line for line in page.runs()["runs"]}
    assert lines[fork]["family"] == lines[run]["family"]
    assert lines[fork]["events"] == [{"step": step, "what": "freeze W_O2"}]
    assert (home / fork / "events.jsonl").read_text().count('"op": "intervene"') == 1


def test_ten_interventions_at_random_steps_are_replayed_to_the_byte(page: Page, home: Path) -> None:
    """Now, later, and in the past, while it runs and while it rests; and in the middle of it the trainer is killed."""
    page.ask("control", op="limit", value=4)  # what runs has half a minute for ten interventions
    run = page.start(**{"plan.steps": 200})
    rng = np.random.default_rng(0)
    events = [
        ("freeze", {"matrix": "W_O2"}, None),
        ("noise", {"matrix": "W_K1", "size": 0.3}, None),
        ("change", {"field": "plan.optimiser.lr", "value": 0.05}, None),
        ("unfreeze", {"matrix": "W_O2"}, "later"),
        ("truncate", {"matrix": "W_K2", "rank": 4}, None),
        ("ablate", {"layer": 1, "head": 1}, None),
        ("reset", {"matrix": "W_K2", "to": 4}, None),
        ("restore", {"layer": 1, "head": 1}, None),
        ("change", {"field": "task.K", "value": 2}, None),
        ("noise", {"matrix": "W_O2", "size": 0.1}, "before"),
    ]
    for i, (kind, fields, when) in enumerate(events):
        take_steps(page, home, int(rng.integers(1, 5)))
        page.until(run, len(Record(home / run).rows) - 1)
        if i % 2:
            page.ask("control", op="resume")
        last = max((event.step for event in Record(home / run).train.events if event.step < 190), default=0)
        at = {None: None, "later": 190, "before": last + 1}[when]
        answer = page.ask("intervene", run=run, kind=kind, fields=fields, at=at)
        assert answer["ok"], answer
        run = answer["run"]
        if i == 5:
            kill_the_trainer(home)
            page.ask("control", op="limit", value=4)
            assert page.ask("start", run=run)["ok"]
    page.ask("control", op="limit", value=0)
    page.ask("control", op="resume")
    page.finish(run)
    record = Record(home / run)
    assert len(record.train.events) == 9, "what was planned for later is not part of a past that was changed"
    found = recheck(record, len(record.rows))
    assert found["ok"], found
    assert "to the byte" in found["message"]
    with pytest.raises(SystemExit) as end:
        main(["replay", run, "--check", "--json"])
    assert end.value.code == 0


def take_steps(page: Page, home: Path, steps: int) -> None:
    """Then it rests."""
    assert page.ask("control", op="step", value=steps)["ok"]
    _wait(lambda: Mailbox(home).status()["state"] == "paused")


def kill_the_trainer(home: Path) -> None:
    found = subprocess.run(["pgrep", "-f", f"engram.lab.trainer {home}"], capture_output=True, text=True, check=False)
    os.kill(int(found.stdout.split()[0]), signal.SIGKILL)
    _wait(lambda: not Mailbox(home).has_trainer())


def test_an_intervention_in_the_past_forks_there(page: Page, home: Path) -> None:
    run = page.start()
    page.finish(run)
    refused = page.ask("intervene", run=run, kind="freeze", fields={"matrix": "W_O2"})
    assert refused["error"] == "at: the run has ended; say at which step"
    answer = page.ask("intervene", run=run, kind="truncate", at=17, fields={"matrix": "W_O2", "rank": 1})
    page.finish(answer["run"])
    child, parent = Record(home / answer["run"]), Record(home / run)
    assert child.rows[:17] == parent.rows[:17]
    assert child.rows[18] != parent.rows[18]
    assert recheck(child, 41)["ok"]
    assert np.linalg.matrix_rank(child.snapshot(17)["W_O2"].numpy(), tol=1e-4) == 1


REFUSED = [
    ("freeze", {"matrix": "W_V1"}, "matrix", "is not trained"),
    ("unfreeze", {"matrix": "W_O2"}, "matrix", "is not frozen"),
    ("truncate", {"matrix": "W_O2", "rank": -1}, "rank", "greater than or equal to 0"),
    ("noise", {"matrix": "W_O2"}, "size", "needs this field"),
    ("change", {"field": "task.K", "value": 1000}, "task.K", "needs more than"),
    ("change", {"field": "model.d", "value": 8}, "field", "cannot change on the way"),
    ("change", {"field": "task.corpus", "value": "/dev/zero"}, "field", "cannot change on the way"),
    ("ablate", {"layer": 3, "head": 1}, "head", "no head"),
    ("reset", {"matrix": "W_O2", "to": 9999}, "to", "are not stored; the nearest"),
    ("melt", {"matrix": "W_O2"}, "kind", "no intervention 'melt'; allowed: freeze, unfreeze, reset"),
]


def test_what_cannot_be_done_is_said_beside_its_field(page: Page) -> None:
    run = page.start(**{"plan.steps": 4000})
    for kind, fields, field, message in REFUSED:
        answer = page.ask("intervene", run=run, kind=kind, fields=fields)
        assert not answer["ok"]
        assert message in answer["error"]
        assert answer["field"] == field


def test_a_start_that_makes_no_sense_names_its_field(page: Page) -> None:
    for settings_, field in (({"task.K": 0}, "task.K"), ({"plan.steps": "many"}, "plan.steps"), ({"seed": 3}, "seed")):
        answer = page.ask("start", preset="birth.joint", settings=settings_)
        assert not answer["ok"]
        assert answer["field"] == field, answer


def test_pause_step_resume_and_limit(page: Page, home: Path) -> None:
    run = page.start(**{"plan.steps": 3000})
    page.until(run, 3)
    paused = page.ask("control", op="pause")
    rows = len(Record(home / run).rows)
    take_steps(page, home, 5)
    assert len(Record(home / run).rows) == rows + 5
    assert paused["ok"]
    assert page.ask("control", op="limit", value=2)["ok"]
    began = time.monotonic()
    assert page.ask("control", op="resume")["ok"]
    _wait(lambda: len(Record(home / run).rows) >= rows + 5 + 4)
    assert time.monotonic() - began > 1.4, "two a second; at full speed four take a moment"
    assert page.ask("control", op="limit", value=0)["ok"]


def _wait(done: object, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not done():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_run_outlives_its_server(tmp_path: Path) -> None:
    """The server is killed; training goes on to the end, and a new server shows it."""
    home = tmp_path / "runs"
    code = "import sys; from engram.cli.main import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "lab", "--no-browser", "--json"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | {"ENGRAM_HOME": str(home)}, text=True)
    assert server.stdout is not None
    url = json.loads(server.stdout.readline())["url"]
    address = url.replace("http", "ws").replace("/?", "/ws?")
    _wait(lambda: answers(address))
    with connect(address, max_size=None) as ws:
        first = Page(ws)
        run = first.start(**{"plan.steps": 250})
        first.until(run, 3)
    server.kill()
    server.communicate()
    _wait(lambda: Record(home / run).finished, 150)
    _wait(lambda: not Mailbox(home).has_trainer())
    with served(home) as again, again.page() as second:
        second.finish(run)
        assert len(second.rows[run]) == 251


def test_a_trainer_that_is_killed_loses_nothing_that_was_saved(page: Page, home: Path) -> None:
    """Killed while it trains: the run is cut back to its state, and a fork further on finds its way."""
    run = page.start(**{"plan.steps": 3000})
    page.until(run, 10)
    page.ask("control", op="pause")
    saved = Record(home / run).rows
    page.ask("control", op="resume")
    page.until(run, len(saved) + 30)
    seen = dict(page.rows[run])
    kill_the_trainer(home)
    answer = page.ask("intervene", run=run, kind="noise", fields={"matrix": "W_O2", "size": 0.1}, at=len(saved) + 20)
    assert answer["ok"], answer
    page.until(answer["run"], len(saved) + 25)
    assert page.ask("start", run=run)["ok"], "another trainer takes over"
    page.rows.clear()  # the run was cut back
    page.until(run, len(saved) + 35)
    page.ask("control", op="pause")  # what the page was told is on disk then
    rows = Record(home / run).rows
    assert rows[: len(saved)] == saved
    assert [told(seen[i]) for i in range(len(saved) + 30)] == [told(row) for row in rows[: len(saved) + 30]]
    assert Record(home / answer["run"]).rows[: len(saved) + 20] == rows[: len(saved) + 20]


def test_a_failed_run_can_go_on(page: Page, home: Path) -> None:
    run = page.start(**{"plan.steps": 3000})
    page.until(run, 3)
    page.ask("control", op="pause")
    spec = home / run / "spec.json"
    content = spec.read_bytes()
    spec.write_bytes(b"{}")
    page.ask("control", op="resume")
    _wait(lambda: Mailbox(home).status()["state"] == "failed")
    spec.write_bytes(content)
    assert page.ask("control", op="resume")["ok"]
    page.until(run, len(Record(home / run).rows) + 3)


def test_stop_saves_what_goes_on_without_a_page(page: Page, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = page.start(**{"plan.steps": 4000})
    page.until(run, 2)
    for code, told in ((0, f"stopped {run}"), (2, "no training goes on")):
        with pytest.raises(SystemExit) as end:
            main(["lab", "--stop"])
        assert end.value.code == code
        out = capsys.readouterr()
        assert told in out.out + out.err
    assert Record(home / run).ended is None
    assert (home / run / "state.safetensors").exists()
