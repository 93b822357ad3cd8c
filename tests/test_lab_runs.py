"""Runs in the lab are told as `engram runs ls` tells them, and can be searched; every setting of one is shown."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from engram.lab.run_reader import RunReader
from engram.records.about import change, read, with_note, with_tags
from engram.records.faces import faces
from engram.runner.execute import execute
from engram.specs import Train
from lab import Page as Wire
from lab import Served
from pages import look_at, opened, picked, wait


@pytest.fixture
def seen(browser: Browser, lab: Served) -> Iterator[Page]:
    with opened(browser, lab.url) as page:
        yield page


def test_a_run_has_the_words_of_the_list(home: Path, tiny: Callable[..., Train]) -> None:
    run = execute(tiny(steps=2), home).id
    change(home / run, lambda about: with_note(with_tags(about, ["good"]), "the first one"))
    (told,), (face,) = RunReader(home).runs()["runs"], faces(home)
    assert (told["words"], told["tags"], told["note"]) == (face.words, ["good"], "the first one")
    assert told["headline"] == face.headline
    about = RunReader(home).run(run).about
    settings = {entry["name"]: entry["value"] for entry in about["settings"]}
    assert (settings["task.K"], settings["plan.optimiser.lr"], settings["seed"]) == ("3", "0.2", "0")


def test_a_run_of_the_lab_says_what_it_was_made_for(page: Wire, lab: Served) -> None:
    run = page.start(**{"task.K": 2, "plan.steps": 30})
    page.finish(run)
    (purpose,) = read(lab.home / run).made_for
    assert (purpose.experiment, purpose.scale, purpose.settings["task.K"]) == ("birth.joint", "quick", 2)
    fork = page.ask("intervene", run=run, at=10, kind="freeze", fields={"matrix": "W_O2"})["run"]
    assert read(lab.home / fork).made_for == (purpose,)
    assert next(r for r in page.runs()["runs"] if r["id"] == run)["words"].startswith("birth.joint, quick · ")


def test_runs_are_searched_and_their_settings_shown(seen: Page, lab: Served, tiny: Callable[..., Train]) -> None:
    runs = list[str]()
    for seed, tag in ((11, "first"), (12, "kept"), (13, "last")):
        runs.append(execute(tiny(seed=seed, steps=2), lab.home).id)
        change(lab.home / runs[-1], lambda about, tag=tag: with_tags(about, [tag]))
    look_at(seen, lab, runs[0])
    seen.get_by_test_id("run-picker").click()
    entries = seen.get_by_test_id("run-entry")
    wait(lambda: [entry.get_attribute("data-run") for entry in entries.all()][:3] == runs[::-1])  # the newest first
    seen.get_by_test_id("run-search").fill("kept SEED")
    expect(entries).to_have_count(1)
    seen.keyboard.press("Enter")
    wait(lambda: picked(seen) == runs[1])
    panel = seen.get_by_test_id("settings")
    expect(panel).to_contain_text("plan.optimiser.lr")
    expect(panel).to_contain_text(runs[1])
    seen.set_viewport_size({"width": 390, "height": 844})  # a phone: nothing is wider than it
    wait(lambda: seen.evaluate("document.documentElement.scrollWidth <= innerWidth && innerWidth === 390"))
    seen.get_by_test_id("run-picker").click()
    box = seen.get_by_test_id("dialog-runs").bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= 390 - box["width"]
