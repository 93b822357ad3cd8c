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
