"""The drawer of every panel: its CSV holds the numbers, and its Python, run as it is copied, gives the same."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from drawers import numbers, open_drawer, settled, taken
from engram.lab.whole import page as page_of
from engram.learning import SGD, Plan
from engram.models import Layer, Transformer
from engram.records import Record
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.events import Freeze
from engram.tasks import Bigram
from lab import Served
from pages import lab_of, look_at, opened, wait

EXACT, FIVE_DIGITS = 1e-6, 6e-6  # of numbers that 32 bits hold; of probabilities as the page tells them


@pytest.fixture
def at_home(lab: Served, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is copied from the page is run where the lab has its runs."""
    monkeypatch.setenv("ENGRAM_HOME", str(lab.home))
    return lab.home


@pytest.fixture
def page(browser: Browser, lab: Served) -> Iterator[Page]:
    with opened(browser, lab.url) as page:
        yield page


@pytest.fixture
def run(at_home: Path, tiny: Callable[..., Train]) -> Record:
    spec = tiny(steps=20, seed=77)
    execute(spec, at_home)
    return execute(spec.model_copy(update={"events": (Freeze(step=9, matrix="W_O2"),)}), at_home)


def test_curves_matrices_and_predictions_are_the_same_in_python(
    page: Page, lab: Served, run: Record, tmp_path: Path
) -> None:
    look_at(page, lab, f"{run.id}&step=16")
    settled(page)
    for panel in ("timeline", "wall", "attention"):
        open_drawer(page, panel)
    for _, cells, values in taken(page, "timeline", tmp_path):  # of the branch, and of its parent
        for name, column in zip(cells[0], numbers(cells[1:]).T, strict=True):
            np.testing.assert_array_equal(column, np.asarray(values[name], dtype=float))
    for basis in ("raw", "memory"):
        page.get_by_test_id(f"basis-{basis}").click()
        settled(page)
        found = {title: (numbers(cells), values) for title, cells, values in taken(page, "wall", tmp_path)}
        assert len(found) >= 3
        for cells, values in found.values():
            np.testing.assert_allclose(cells, values, rtol=EXACT, atol=EXACT)
    page.get_by_test_id("shows-less").first.click()
    page.get_by_test_id("ablate-1.1").check()
    page.get_by_test_id("sequence-input").fill("to be or not to be")
    wait(lambda: lab_of(page, "view()")["tokens"] and lab_of(page, "view()")["minus"] == 0)
    settled(page)
    for panel in ("wall", "attention"):
        found = list(taken(page, panel, tmp_path))
        assert len(found) >= 3
        for title, cells, values in found:
            off = FIVE_DIGITS if title == "Predictions" else EXACT
            np.testing.assert_allclose(numbers(cells), values, rtol=EXACT, atol=off, err_msg=title)


@pytest.mark.parametrize("way", ["less", "b"])
def test_another_run_is_the_same_in_python(
    page: Page, lab: Served, run: Record, tiny: Callable[..., Train], tmp_path: Path, way: str
) -> None:
    """A run of another seed, which would have another sequence of its own."""
    far = execute(tiny(steps=10, seed=79), lab.home)
    look_at(page, lab, f"{run.id}&step=16")
    settled(page)
    page.get_by_test_id(f"shows-{way}").first.click()
    page.get_by_test_id("other-run").first.select_option(far.id)
    wait(lambda: (lab_of(page, "view()")["minus_run"], lab_of(page, "view()")["minus"]) == (far.id, 10))
    settled(page)
    for panel in ("wall", "attention"):
        open_drawer(page, panel)
        for title, cells, values in taken(page, panel, tmp_path):
            off = FIVE_DIGITS if title == "Predictions" else EXACT
            np.testing.assert_allclose(numbers(cells), values, rtol=EXACT, atol=off, err_msg=title)


def test_words_are_the_same_in_python(page: Page, lab: Served, run: Record, tmp_path: Path) -> None:
    look_at(page, lab, run.id)
    settled(page)
    for panel in ("interventions", "branches", "settings"):
        open_drawer(page, panel)
    ((_, cells, values),) = taken(page, "interventions", tmp_path)
    assert cells[1:] == [[str(step), what] for step, what in values]
    ((_, cells, values),) = taken(page, "branches", tmp_path)
    assert [(row[0], int(row[2])) for row in cells[1:]] == values
    ((_, cells, values),) = taken(page, "settings", tmp_path)
    text = {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
    assert {name: value for name, value in cells[1:]} == text


def test_scores_of_heads_are_the_same_in_python(page: Page, lab: Served, at_home: Path, tmp_path: Path) -> None:
    model = Transformer(d=16, hidden=16, layers=(Layer(heads=4, feed_forward="mlp"),) * 2, norm="pre")
    plan = Plan(optimiser=SGD(lr=0.2), steps=4, batch=4, trained=model.names, loss="all")
    record = execute(Train(task=Bigram(K=3, T=110), model=model, plan=plan, seed=78), at_home)
    look_at(page, lab, record.id)
    expect(page.get_by_test_id("composition-graph")).to_be_visible()
    for panel in ("heads", "composition"):
        open_drawer(page, panel)
    ((_, cells, values),) = taken(page, "heads", tmp_path)
    assert [row[0] for row in cells[1:]] == [name for name, *_ in values]
    for row, (_, *scores) in zip(cells[1:], values, strict=True):
        np.testing.assert_allclose([float(cell) for cell in row[1:3]], scores, atol=1e-4)
    ((_, cells, values),) = taken(page, "composition", tmp_path)
    assert [(row[0], row[1], float(row[2])) for row in cells[1:]] == values
    with page.expect_download() as download:
        page.locator("#panel-composition [data-testid=picture]").click()
    download.value.save_as(tmp_path / "x.svg")
    assert "<svg" in (tmp_path / "x.svg").read_text(encoding="utf-8")


def same(row: list[str], value: tuple[Any, ...]) -> bool:
    """Cells and what Python has; what was not measured is an empty cell."""
    return all(
        cell == ("" if x is None else x) or float(cell) == pytest.approx(x, rel=1e-5)
        for cell, x in zip(row, value, strict=True)
    )


def test_parts_and_singular_values_are_the_same_in_python(page: Page, lab: Served, run: Record, tmp_path: Path) -> None:
    look_at(page, lab, f"{run.id}&step=16")
    for panel, several in (("circuit", 2), ("spectrum", 1), ("theory", 1)):
        page.locator(f"#panel-{panel}").scroll_into_view_if_needed()
        open_drawer(page, panel)
        expect(page.locator(f"#panel-{panel} .drawer li").filter(has=page.get_by_test_id("csv"))).to_have_count(several)
        for title, cells, values in taken(page, panel, tmp_path):
            assert len(cells) > 3, title
            if values is not None:  # the sizes of theory have a command in place of Python
                assert all(same(row[: len(value)], value) for row, value in zip(cells[1:], values, strict=True)), title


def test_in_a_file_numbers_are_within_what_is_said(
    browser: Browser, home: Path, tiny: Callable[..., Train], tmp_path: Path
) -> None:
    """Curves are exact; of a picture there are 256 levels."""
    record = execute(tiny(steps=20), home)
    (tmp_path / "r.html").write_text(page_of("A", [record]), encoding="utf-8")
    with opened(browser, (tmp_path / "r.html").as_uri()) as page:
        settled(page)
        for panel in ("timeline", "wall", "attention"):
            open_drawer(page, panel)
        ((_, cells, values),) = taken(page, "timeline", tmp_path)
        for name, column in zip(cells[0], numbers(cells[1:]).T, strict=True):
            np.testing.assert_array_equal(column, np.asarray(values[name], dtype=float))
        for panel in ("wall", "attention"):
            notes = page.locator(f"#panel-{panel} .drawer li small").all_inner_texts()
            for note, (title, cells, values) in zip(notes, taken(page, panel, tmp_path), strict=False):
                said = re.search(r"within ±(\S+)", note)
                off = FIVE_DIGITS if title == "Predictions" else 1.1 * float(said[1]) if said else 0.0
                assert np.abs(numbers(cells) - np.asarray(values)).max() <= off, title


def test_what_cannot_be_taken_away_is_refused(lab: Served, run: Record) -> None:
    """A question for a picture that there is not, or of a run that there is not, has an answer that says why."""
    with lab.page() as page:
        for asked in ({"picture": "memory:W_X"}, {"picture": "attention:9.9"}, {"picture": "raw:W_O2", "run": "none"}):
            answer = page.ask("array", **({"run": run.id} | asked))
            assert not answer["ok"]
            assert "no picture" in answer["error"] or "no run" in answer["error"]


def test_pictures_are_files(page: Page, lab: Served, run: Record, tmp_path: Path) -> None:
    look_at(page, lab, run.id)
    settled(page)
    open_drawer(page, "wall")
    open_drawer(page, "timeline")
    for panel in ("wall", "timeline"):
        with page.expect_download() as download:
            page.locator(f"#panel-{panel} [data-testid=picture]").first.click()
        download.value.save_as(tmp_path / "x.png")
        assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
        assert download.value.suggested_filename.startswith(run.id)
