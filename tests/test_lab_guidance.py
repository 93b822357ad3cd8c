"""The page tells a person where they are: between stored steps, beside branches, among presets and settings."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from engram.lab.presets import listed, presets
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.events import Freeze
from lab import Served
from pages import lab_of, look_at, opened, wait

Tiny = Callable[..., Train]


@pytest.fixture
def page(browser: Browser, lab: Served) -> Iterator[Page]:
    with opened(browser, lab.url) as page:
        yield page


def test_the_step_that_the_slider_rests_on_is_computed(page: Page, lab: Served, tiny: Tiny) -> None:
    run = execute(tiny(seed=31, steps=7), lab.home).id
    look_at(page, lab, run)
    wait(lambda: (lab_of(page, "drawn('memory:W_O2')") or {}).get("step") == 7)
    page.get_by_test_id("scrubber").fill("6")
    wait(lambda: (lab_of(page, "drawn('memory:W_O2')") or {}).get("step") == 6)
    expect(page.get_by_test_id("step-note")).to_have_text("pinned")
    page.goto("about:blank")
    page.goto(f"{lab.url}#run={run}&step=99999")
    expect(page.get_by_test_id("step-label")).to_have_text("step 7 of 7")


def test_a_fork_has_its_parent_beside_it(page: Page, lab: Served, tiny: Tiny) -> None:
    """Also in a page that was opened later."""
    parent = tiny(seed=32, steps=3)
    first = execute(parent, lab.home).id
    fork = execute(parent.model_copy(update={"events": (Freeze(step=2, matrix="W_O2"),)}), lab.home).id
    look_at(page, lab, fork)
    ticks = page.locator(f"li:has([data-testid='branch-{first}']) input")
    expect(ticks).to_be_checked()
    ticks.uncheck()
    page.reload()
    expect(ticks).not_to_be_checked()


def test_presets_are_told_apart_in_words() -> None:
    words = {name: preset.words for name, preset in presets().items()}
    assert words["birth.fig2 1"] == "2 layers, fixed triggers"
    assert words["birth.fig4-left 1"] == "K=1 fixed, most frequent", "the label of the file"
    assert all(text.count(",") <= 2 and len(text) < 60 for text in words.values())
    first = listed()[0]
    assert first["name"] == "birth.joint"
    assert first["seconds"] > 1
    assert {field["name"]: field["meaning"] for field in first["fields"]}["task.T"] == "length of a sequence"


def test_settings_that_were_changed_come_first(page: Page, lab: Served, tiny: Tiny) -> None:
    look_at(page, lab, execute(tiny(seed=33, steps=2), lab.home).id)
    rest = page.get_by_test_id("settings-rest")
    expect(rest).to_contain_text("settings at their defaults")
    expect(rest.locator("dt", has_text="plan.dtype")).to_be_hidden()
    expect(page.get_by_test_id("settings").locator("dt", has_text="plan.steps")).to_be_visible()
