"""The timeline of the lab: many runs, seeds as bands, a stretch of the steps, and playing."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from engram.records import Record
from engram.runner.execute import execute
from engram.specs import Train
from lab import Served
from pages import lab_of, look_at, opened, wait
from test_drawer import numbers, open_drawer, taken

T_TABLE = 1e-4  # how exact the page has Student's t


@pytest.fixture
def page(browser: Browser, lab: Served) -> Iterator[Page]:
    with opened(browser, lab.url) as page:
        yield page


@pytest.fixture
def seeds(lab: Served, monkeypatch: pytest.MonkeyPatch, tiny: Callable[..., Train]) -> list[Record]:
    monkeypatch.setenv("ENGRAM_HOME", str(lab.home))
    return [execute(tiny(steps=12, seed=seed), lab.home) for seed in range(40, 46)]


def test_runs_that_differ_only_in_seed_are_a_band(
    page: Page, lab: Served, seeds: list[Record], tiny: Callable[..., Train], tmp_path: Path
) -> None:
    """Mean and interval are those of the figures; the legend says which."""
    other = execute(tiny(steps=12, seed=40, lr=0.3), lab.home)
    look_at(page, lab, seeds[0].id)
    drawn = page.get_by_test_id("drawn-runs")
    page.get_by_test_id("all-seeds").click()
    wait(lambda: set(lab_of(page, "view()")["also"]) == {record.id for record in seeds[1:]})
    expect(drawn).to_contain_text("6 seeds: mean and its 95 % interval (Student’s t); thin: this run")
    page.get_by_test_id("more-runs").click()
    page.locator(f"[data-run='{other.id}'] + label input").check()
    page.keyboard.press("Escape")
    wait(lambda: lab_of(page, f"rows('{other.id}')"))
    expect(drawn.locator(".chip")).to_have_count(2)
    open_drawer(page, "timeline")
    found = {title: (cells, values) for title, cells, values in taken(page, "timeline", tmp_path)}
    cells, values = found["Mean of 6 seeds"]
    assert len(cells[0]) > 6
    for name, column in zip(cells[0], numbers(cells[1:]).T, strict=True):
        np.testing.assert_allclose(column, np.asarray(values[name]), rtol=T_TABLE, atol=T_TABLE, err_msg=name)
    page.get_by_test_id("banded").click()
    expect(drawn.locator(".chip")).to_have_count(6)
    drawn.get_by_role("button", name="Do not draw").first.click()
    expect(drawn.locator(".chip")).to_have_count(5)
    page.reload()
    expect(drawn.locator(".chip")).to_have_count(5)


def brushed(page: Page, start: float, end: float) -> None:
    """Drags over the losses, between two shares of their width."""
    over = page.get_by_test_id("timeline-losses").locator(".over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + start * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + (start + end) / 2 * box["width"], y)
    page.mouse.move(box["x"] + end * box["width"], y)
    page.mouse.up()


def test_a_stretch_is_brushed(page: Page, lab: Served, seeds: list[Record]) -> None:
    """With shift or in the zoom mode; otherwise dragging moves the slider. Escape and a double click show all again."""
    look_at(page, lab, f"{seeds[0].id}&step=12")
    wait(lambda: lab_of(page, f"rows('{seeds[0].id}')"))
    unzoom, label = page.get_by_test_id("unzoom"), page.get_by_test_id("step-label")
    page.keyboard.down("Shift")
    brushed(page, 0.25, 0.75)
    page.keyboard.up("Shift")
    expect(unzoom).to_have_text("steps 3–9 ×")
    expect(label).to_contain_text("step 12")
    page.keyboard.press("Escape")
    expect(unzoom).to_be_hidden()
    brushed(page, 0.25, 0.5)
    expect(label).to_contain_text("step 6")
    expect(unzoom).to_be_hidden()
    page.get_by_test_id("zoom").click()
    brushed(page, 0.75, 0.5)
    expect(unzoom).to_have_text("steps 6–9 ×")
    page.get_by_test_id("timeline-losses").locator(".over").dblclick()
    expect(unzoom).to_be_hidden()
    page.keyboard.press("Escape")
    page.keyboard.press("+")
    expect(unzoom).to_have_text("steps 3–9 ×")
    page.keyboard.press("-")
    expect(unzoom).to_be_hidden()


def test_stored_steps_are_played_to_the_end(page: Page, lab: Served, seeds: list[Record]) -> None:
    look_at(page, lab, f"{seeds[1].id}&step=12")
    play, label = page.get_by_test_id("play"), page.get_by_test_id("step-label")
    wait(lambda: lab_of(page, "drawn('memory:W_O2')"))
    page.get_by_test_id("play-speed").select_option("5")
    play.click()  # from the beginning, as it is at the end
    seen = set[str]()
    wait(lambda: seen.add(label.inner_text()) or len(seen) > 2)
    play.click()
    expect(play).to_have_accessible_name("Play the stored steps")
    here = label.inner_text()
    page.wait_for_timeout(600)
    assert label.inner_text() == here
    page.keyboard.press("Escape")
    page.keyboard.press("p")
    expect(label).to_contain_text("step 12")
    expect(play).to_have_accessible_name("Play the stored steps")
