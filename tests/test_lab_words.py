"""The lab says what is so: roles that probes confirm, why a run diverged, and nothing old under a new text."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from engram.errors import EngramError
from engram.facts.learn import spec_of_file
from engram.lab.pictures import memories_at, own_sequence
from engram.lab.protocol import View
from engram.lab.roles import roles
from engram.lab.run_reader import RunReader
from engram.models import Model, Simplified
from engram.models.construct import plant
from engram.records import Record
from engram.records.weights import initial_weights
from engram.runner.execute import execute
from engram.specs import Train
from engram.tasks import Bigram
from lab import Page as Wire
from lab import Served, picture_of
from pages import lab_of, opened, wait

COUNTRIES = Path(__file__).parent.parent / "examples" / "countries.csv"


@pytest.fixture
def seen(browser: Browser, lab: Served, tiny: Callable[..., Train]) -> Iterator[Page]:
    execute(tiny(seed=21, steps=2), lab.home)
    with opened(browser, f"{lab.url}#run=nobody-s0-0123456789") as page:
        yield page


def test_a_head_has_the_role_that_probes_confirm(tiny: Callable[..., Train]) -> None:
    spec = tiny().model_copy(update={"model": Simplified(d=256)})
    begun = initial_weights(spec)
    assert [head["role"] for head in roles(spec, Model(spec.model, begun))] == [None, None]
    planted = plant(Simplified(d=256), spec.task.N, spec.task.T, spec.seed, sharpness=100.0)
    found = roles(spec, Model(spec.model, planted))
    assert [(head["layer"], head["role"]) for head in found] == [(1, "previous-token head"), (2, "induction head")]
    assert all(head["share"] > 0.5 for head in found)


def test_a_run_that_diverged_says_why(home: Path, tiny: Callable[..., Train]) -> None:
    spec = tiny(lr=1e30, steps=20)
    with pytest.raises(EngramError, match="not finite"):
        execute(spec, home)
    reader = RunReader(home)
    (run,) = reader.runs()["runs"]
    now = reader.seen(run["id"]).now({})
    assert now["state"] == "diverged"
    assert "the loss is not finite at step" in now["why"]
    assert "plan.optimiser.lr" in now["why"]


def test_facts_are_answered_by_name(home: Path) -> None:
    run = execute(spec_of_file(COUNTRIES, steps=2, width=8), home).id
    reader = RunReader(home)
    known = {entry["name"]: entry for entry in reader.seen(run).about["pictures"]}["memory:W_F"]
    place = known["rows"].index("France capital")
    assert known["columns"][known["right"][place]] == "Paris"
    _, sent = reader.frame(View(t="view", run=run), "memory:W_F", 2)
    header, _ = picture_of(sent)
    weights = Record(home / run).model()
    (memory,) = (m for m in memories_at(Record(home / run).train, weights.weights) if m.name == "W_F")
    assert header["best"] == memory.scores().argmax(dim=1).tolist()


def test_every_position_can_be_looked_at(tiny: Callable[..., Train]) -> None:
    spec = tiny().model_copy(update={"task": Bigram(K=3, T=200)})
    assert own_sequence(spec).shape == (200,)


def test_paused_the_pictures_are_those_of_the_slider(page: Wire) -> None:
    run = page.start(**{"plan.steps": 3000})
    page.until(run, 5)
    at = page.ask("control", op="pause")["step"]
    page.frames.clear()
    page.say("view", run=run, hz=20.0, pictures=["memory:W_O2"], rows_from={run: 0})
    while not (page.state.get("live") == at and page.frames and page.frames[-1][0]["step"] == at):
        page.hear("tick")
    assert max(page.rows[run]) == at - 1  # the step that it stands before has no row yet


def test_nothing_old_stands_under_a_new_text(seen: Page) -> None:
    expect(seen.get_by_test_id("missing")).to_contain_text("There is no run nobody-s0-0123456789 here")
    seen.get_by_test_id("run-entry").first.click()
    text, maps = seen.get_by_test_id("sequence-input"), seen.get_by_test_id("maps")
    text.fill("to be")
    wait(lambda: (lab_of(seen, "drawn('attention:1.1')") or {}).get("shape") == [5, 5])
    expect(seen.get_by_test_id("head-1.1")).to_contain_text("layer 1, head 1")
    expect(seen.get_by_test_id("predictions")).to_be_visible()
    text.fill("to bé")
    expect(seen.get_by_test_id("sequence-problem")).to_contain_text("not in the vocabulary")
    expect(seen.get_by_test_id("sequence-problem")).to_contain_text("below is “to be”")
    expect(maps.locator("canvas").first).to_be_visible()
    expect(seen.get_by_test_id("predictions")).to_be_visible()
    text.fill("to")
    wait(lambda: (lab_of(seen, "drawn('attention:1.1')") or {}).get("shape") == [2, 2])
    expect(maps.locator("canvas").first).to_be_visible()
    for words in ("same scale for all", "show small scores", "keep this scale", "rescale"):
        expect(seen.locator("#panel-wall")).to_contain_text(words)
