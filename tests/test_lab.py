"""The lab without a browser: watching, steering, forking, replaying; and what must not happen."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import save_file
from websockets.sync.client import connect

from engram.api import recheck
from engram.cli import main
from engram.lab.desk import Desk
from engram.records import Record
from engram.records.follow import Follower
from lab import Page, Served, served


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
    run = page.start(**{"plan.steps": 400})
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


def test_pictures_are_those_of_the_record(page: Page, home: Path) -> None:
    run = page.start()
    page.finish(run)
    page.say("view", run=run, step=16, pictures=["memory:W_O2", "raw:W_K1", "attention:2.1"], dtype="f4")
    for _ in range(3):
        page.hear("frame")
    found = {header["picture"]: (header, values) for header, values in page.frames}
    model = Record(home / run).model(16)
    w = model.weights
    expected = w["E"] @ w["W_V2"].T @ w["W_O2"].T @ w["U"].T
    assert found["memory:W_O2"][0]["step"] == 16
    assert np.allclose(found["memory:W_O2"][1], expected.numpy(), atol=1e-5)
    assert np.allclose(found["raw:W_K1"][1], w["W_K1"].numpy())
    assert np.allclose(found["attention:2.1"][1].sum(axis=1), 1, atol=1e-5)
    page.say("view", run=run, step=16, minus=16, pictures=["memory:W_O2"])
    page.hear("frame")
    assert np.abs(page.frames[-1][1]).max() == 0
    cell = page.ask("cell", run=run, step=16, picture="memory:W_O2", row=3, column=3)
    assert cell["score"] == pytest.approx(float(expected[3, 3]), abs=1e-5)
    assert cell["rank"] == 1 + int((expected[3] > expected[3, 3]).sum())


def test_an_own_sequence_and_the_split_of_its_predictions(page: Page, home: Path) -> None:
    run = page.start()
    page.finish(run)
    whole = page.ask("sequence", run=run, text="to be or to be")
    assert whole["marks"][:5] == ["t", "o", "␣", "b", "e"]
    model = Record(home / run).model()
    logits = model(whole["tokens"]).logits[0]
    lead = logits.max(dim=1).values - logits.mean(dim=1)
    assert np.allclose(np.sum(list(whole["parts"].values()), axis=0), lead.numpy(), atol=1e-2)
    ablated = page.ask("sequence", run=run, text="to be or to be", ablate=[[2, 1]])
    assert not np.any(ablated["parts"]["head2"])
    assert ablated["predictions"] != whole["predictions"]
    page.say("sequence", id=99, run=run, text="naïve")
    assert "'ï' is not in the vocabulary" in page.hear("answer")["error"]


def test_what_a_page_reads_comes_with_its_pictures(page: Page, home: Path) -> None:
    """Rows, state, predictions and pictures of one moment, then a tick; and nothing is told twice."""
    run = page.start()
    page.finish(run)
    page.say(
        "view", run=run, step=16, pictures=["attention:2.1"], reads=True, tokens=[1, 2, 1], ablate=[[2, 1]], serial=7
    )
    reading = page.hear("reading")
    assert page.hear("tick")["serial"] == 7
    header, values = page.frames[-1]
    assert (header["step"], values.shape) == (reading["step"], (3, 3)) == (16, (3, 3))
    asked = page.ask("sequence", run=run, step=16, tokens=[1, 2, 1], ablate=[[2, 1]])
    same = ("tokens", "marks", "asked", "predictions", "parts", "probabilities")
    assert {name: reading[name] for name in same} == {name: asked[name] for name in same}
    with pytest.raises(TimeoutError):
        page.hear("tick", timeout=1.5)


def test_a_text_is_tokens_before_there_are_weights(page: Page, home: Path) -> None:
    run = page.start()
    page.finish(run)
    for file in (home / run / "snapshots").iterdir():
        file.unlink()
    time.sleep(0.1)  # the lab looks at most so often
    assert page.ask("tokens", run=run, text="to be")["tokens"][0] == page.ask("tokens", run=run, text="t")["tokens"][0]
    page.say("sequence", id=5, run=run, text="to be")
    assert "no weights" in page.hear("answer")["error"]


def test_a_model_that_diverged_is_shown(page: Page, home: Path) -> None:
    """A prediction that is no number is told as none, and what comes after it comes."""
    run = page.start(**{"plan.steps": 3000})
    page.until(run, 20)
    page.ask("control", op="pause")
    stored = home / run / "snapshots" / "000016.safetensors"
    save_file({name: w * float("nan") for name, w in Record(home / run).snapshot(16).items()}, stored)
    page.say("view", run=run, step=16, pictures=["memory:W_O2"], reads=True)
    assert page.hear("reading")["probabilities"][0] is None
    page.say("view", run=run, step=4, pictures=["memory:W_O2"], reads=True)
    assert 0 <= page.hear("reading")["probabilities"][0] <= 1


def test_what_can_be_read_of_a_broken_run_is_shown(page: Page, home: Path) -> None:
    broken = page.start(**{"plan.steps": 3000})
    page.until(broken, 20)
    other = page.start()
    page.finish(other)
    rows = home / broken / "rows.jsonl"
    rows.write_bytes(rows.read_bytes().replace(b'"step"', b'"st', 3))
    with served(home) as again, again.page() as fresh:
        fresh.say("view", run=other, also=[broken, "no-such-run"], pictures=["memory:W_O2"])
        said = [fresh.hear("error")["message"] for _ in range(2)]
        assert any("rows.jsonl" in message for message in said)
        assert any("no-such-run" in message for message in said)
        fresh.hear("tick")
        assert len(fresh.rows[other]) == 41
        assert fresh.state["state"] == "finished"
        fresh.say("view", run=broken, pictures=["memory:W_O2"])
        fresh.hear("frame")
        assert fresh.frames[-1][0]["run"] == broken


def test_pages_share_one_look(lab: Served, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """What watching costs a training must not grow with the number of pages."""
    run = page.start(**{"plan.steps": 3000})
    looks: list[float] = []
    look = Follower.look_for_weights
    monkeypatch.setattr(Follower, "look_for_weights", lambda self: (looks.append(time.monotonic()), look(self))[1])
    with ExitStack() as stack:
        pages = [stack.enter_context(lab.page()) for _ in range(5)]
        for other in pages:
            other.say("view", run=run, hz=2.0, pictures=["memory:W_O2"])
        for _ in range(8):
            for other in pages:
                other.hear("tick")
        assert 8 <= len(looks) <= 20, "one for a moment, and not one for each page"


def test_ten_interventions_at_random_steps_are_replayed_to_the_byte(page: Page, home: Path) -> None:
    """Now, later, and in the past; and in the middle of it the trainer is killed."""
    run = page.start(**{"plan.steps": 400})
    page.ask("control", op="limit", value=100)
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
        page.until(run, len(Record(home / run).rows) + int(rng.integers(1, 5)))
        last = max((event.step for event in Record(home / run).train.events if event.step < 390), default=0)
        at = {None: None, "later": 390, "before": last + 1}[when]
        answer = page.ask("intervene", run=run, kind=kind, fields=fields, at=at)
        assert answer["ok"], answer
        run = answer["run"]
        if i == 5:
            kill_the_trainer(home)
            assert page.ask("start", run=run)["ok"]
            page.ask("control", op="limit", value=100)
    page.ask("control", op="limit", value=0)
    page.finish(run)
    record = Record(home / run)
    assert len(record.train.events) == 9, "what was planned for later is not part of a past that was changed"
    found = recheck(record, len(record.rows))
    assert found["ok"], found
    assert "to the byte" in found["message"]
    with pytest.raises(SystemExit) as end:
        main(["replay", run, "--check", "--json"])
    assert end.value.code == 0


def kill_the_trainer(home: Path) -> None:
    found = subprocess.run(["pgrep", "-f", f"engram.lab.trainer {home}"], capture_output=True, text=True, check=False)
    os.kill(int(found.stdout.split()[0]), signal.SIGKILL)
    _wait(lambda: not Desk(home).staffed())


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
    ("change", {"field": "model.d", "value": 8}, "field", "what can change here is"),
    ("change", {"field": "task.corpus", "value": "/dev/zero"}, "field", "what can change here is"),
    ("ablate", {"layer": 3, "head": 1}, "head", "no head"),
    ("reset", {"matrix": "W_O2", "to": 9999}, "to", "are not stored; the nearest"),
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
    assert page.ask("control", op="step", value=5)["ok"]
    _wait(lambda: Desk(home).now()["state"] == "paused")
    assert len(Record(home / run).rows) == rows + 5
    assert paused["ok"]
    assert page.ask("control", op="limit", value=2)["ok"]
    assert page.ask("control", op="resume")["ok"]
    time.sleep(2)
    assert rows + 5 < len(Record(home / run).rows) <= rows + 5 + 6, "full speed would be many times that"
    assert page.ask("control", op="limit", value=0)["ok"]


def _wait(done: object, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not done():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_run_outlives_its_server(tmp_path: Path) -> None:
    """The server is killed; training goes on to the end, and a new server shows it."""
    home = tmp_path / "runs"
    code = "import sys; from engram.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "lab", "--no-browser", "--json"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | {"ENGRAM_HOME": str(home)}, text=True)
    assert server.stdout is not None
    url = json.loads(server.stdout.readline())["url"]
    address = url.replace("http", "ws").replace("/?", "/ws?")
    _wait(lambda: _answers(address))
    with connect(address, max_size=None) as ws:
        first = Page(ws)
        run = first.start(**{"plan.steps": 250})
        first.until(run, 3)
    server.kill()
    server.communicate()
    _wait(lambda: Record(home / run).finished, 150)
    _wait(lambda: not Desk(home).staffed())
    with served(home) as again, again.page() as second:
        second.finish(run)
        assert len(second.rows[run]) == 251


def _answers(address: str) -> bool:
    try:
        with connect(address):
            return True
    except OSError:
        return False


def test_a_trainer_that_is_killed_loses_nothing_that_was_saved(page: Page, home: Path) -> None:
    """Killed while it trains: the run is cut back to its state, and a fork further on finds its way."""
    run = page.start(**{"plan.steps": 400})
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
    _wait(lambda: Desk(home).now()["state"] == "failed")
    spec.write_bytes(content)
    assert page.ask("control", op="resume")["ok"]
    page.until(run, len(Record(home / run).rows) + 3)


def test_a_follower_sees_a_run_that_was_cut_back(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir(parents=True)
    rows = folder / "rows.jsonl"
    rows.write_text('{"step": 0}\n{"step": 1}\n{"step": 2}\n{"st')
    follower = Follower(folder)
    assert [row["step"] for row in follower.poll()] == [0, 1, 2]
    rows.write_text('{"step": 0}\n{"step": 1, "new": 1}\n')
    follower.poll()
    assert follower.rows == [{"step": 0}, {"step": 1, "new": 1}]


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
