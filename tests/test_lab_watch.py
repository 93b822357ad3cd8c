"""Watching in the lab, without a browser: pictures, predictions, and what is left of a broken run."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from engram.records import Record
from engram.records.follow import Follower
from engram.records.sealed import seal
from engram.runner.execute import execute
from engram.specs import Train
from lab import Page, Served, served


@pytest.fixture
def home(lab: Served, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ENGRAM_HOME", str(lab.home))
    return lab.home


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
    while page.state["trainer"]["state"] != "idle":  # that, too, is told
        page.hear("state")
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
    stored.write_bytes(seal({name: w * float("nan") for name, w in Record(home / run).snapshot(16).items()}, {}))
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
        began = time.monotonic()
        for other in pages:
            other.say("view", run=run, hz=2.0, pictures=["memory:W_O2"])
        for _ in range(8):
            for other in pages:
                other.hear("tick")
        moments = 2 + 2 * (time.monotonic() - began)  # two a second
        assert 8 <= len(looks) <= len(pages) + moments, "a page is served at once, then one look for all of them"


def test_columns_are_told_when_there_are_more(page: Page, home: Path) -> None:
    """Whoever writes a number into the rows has a curve; what is no number is none."""
    run = page.start()
    page.finish(run)
    page.say("view", run=run, serial=1)
    first = {c["name"]: c for c in page.columns[run]}
    assert first["recall.W_K1.t<64"]["title"] == "W_K1 (t<64)"
    assert {"loss", "step"}.isdisjoint(first), "the loss is that in context"
    with (home / run / "rows.jsonl").open("a") as rows:
        rows.write('{"step": 41, "spectral_norm.W_K1": 3.0, "note": "odd", "sure": true}\n')
    page.hear("columns")
    (new,) = [c for c in page.columns[run] if c["name"] not in first]
    words = {"name": "spectral_norm.W_K1", "group": "spectral norm", "title": "W_K1", "axis": "spectral norm"}
    assert new == words | {"drawn": False}


def test_a_follower_sees_a_run_that_was_cut_back(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir(parents=True)
    rows = folder / "rows.jsonl"
    rows.write_text('{"step": 0}\n{"step": 1}\n{"step": 2}\n{"st')
    follower = Follower(folder)
    assert [row["step"] for row in follower.poll()] == [0, 1, 2]
    rows.write_text('{"step": 0}\n{"step": 1, "new": 1}\n')
    assert list(follower.poll()) == [{"step": 0}, {"step": 1, "new": 1}]
    assert (len(follower.table), follower.table.measured) == (2, ["step", "new"])


def test_what_was_made_for_an_older_view_does_not_count_as_sent(page: Page) -> None:
    """A page drops it: all pictures of the newest view come with a tick of that view."""
    run = page.start()
    page.finish(run)
    pictures = ["memory:W_O2", "memory:W_K2", "memory:W_K1", "attention:1.1", "attention:2.1"]
    for step in range(1, 40):
        for serial in (2 * step, 2 * step + 1):
            page.say("view", run=run, step=step, pictures=pictures, serial=serial)
            time.sleep(0.002 * (step % 8))  # at one moment or another of what is made for the first
        shown: list[str] = []
        while sorted(shown) != sorted(pictures):
            before = len(page.frames)
            serial = page.hear("tick")["serial"]
            shown += [header["picture"] for header, _ in page.frames[before:]] if serial == 2 * step + 1 else []


def test_any_step_of_a_run_at_rest_is_computed(page: Page, home: Path, tiny: Callable[..., Train]) -> None:
    """Asked for, it counts as stored; until then the nearest stored step is shown."""
    run = execute(tiny(seed=77, steps=7), home).id
    page.say("view", run=run, step=6, pictures=["raw:W_O2"], dtype="f4", hz=20.0)
    page.hear("frame")
    assert (page.frames[-1][0]["step"], page.state["computed"]) == (4, [])
    assert page.ask("weights", run=run, step=6)["ok"]
    page.hear("frame")
    assert page.frames[-1][0]["step"] == 6
    assert np.allclose(page.frames[-1][1], Record(home / run).model(6).weights["W_O2"].numpy())
    assert page.state["computed"] == [6]
    assert page.ask("weights", run=run, step=4)["ok"], "what is stored is at hand"
    assert "has the steps 0 … 7" in page.ask("weights", run=run, step=8)["error"]
