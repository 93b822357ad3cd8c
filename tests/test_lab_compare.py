"""Two runs, A and B, side by side: pictures of A, of B, and A − B, on the wire, on the page and in a file."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Tab

from engram.lab.whole import whole_report
from engram.learning import SGD, Plan
from engram.models import Simplified
from engram.records import Record
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.events import Freeze
from engram.tasks import Bigram
from lab import Page, Served
from pages import lab_of, look_at, opened, wait
from test_alone import alone


@pytest.fixture
def runs(lab: Served, monkeypatch: pytest.MonkeyPatch, tiny: Callable[..., Train]) -> tuple[Record, Record]:
    """A run and its fork."""
    monkeypatch.setenv("ENGRAM_HOME", str(lab.home))
    whole = tiny(steps=20, seed=91)
    frozen = whole.model_copy(update={"events": (Freeze(step=3, matrix="W_O2"),)})
    return execute(whole, lab.home), execute(frozen, lab.home)


@pytest.fixture
def narrow(lab: Served, monkeypatch: pytest.MonkeyPatch) -> Record:
    """A run whose matrices have another shape."""
    monkeypatch.setenv("ENGRAM_HOME", str(lab.home))
    plan = Plan(optimiser=SGD(lr=0.2), steps=8, batch=4)
    return execute(Train(task=Bigram(K=3, T=24), model=Simplified(d=8), plan=plan, seed=92), lab.home)


@pytest.fixture
def tab(browser: Browser, lab: Served) -> Iterator[Tab]:
    with opened(browser, lab.url) as tab:
        yield tab


def scores(record: Record, step: int) -> np.ndarray:
    return record.model(step).memories["W_O2"].scores().float().numpy()


def attention(record: Record, step: int, of: Record) -> np.ndarray:
    """On the sequence that training of another run never saw."""
    tokens = of.train.task.sample(of.train.seed, 2**41, 1).tokens[0]
    return record.model(step)(tokens).attention[1][0, 0].float().detach().numpy()


def test_another_run_is_subtracted(page: Page, runs: tuple[Record, Record], narrow: Record) -> None:
    a, b = runs
    names = ["memory:W_O2", "raw:W_K2", "attention:2.1"]
    page.say("view", run=a.id, step=16, minus=8, minus_run=b.id, pictures=names, dtype="f4", serial=3)
    page.hear("tick")
    found = {header["picture"]: (header, values) for header, values in page.frames}
    header, values = found["memory:W_O2"]
    assert (header["run"], header["step"], header["minus_run"], header["minus"]) == (a.id, 16, b.id, 8)
    np.testing.assert_allclose(values, scores(a, 16) - scores(b, 8), atol=1e-5)
    np.testing.assert_allclose(found["attention:2.1"][1], attention(a, 16, a) - attention(b, 8, a), atol=1e-5)
    assert b.id in page.about, "the page knows its shapes"
    cell = page.ask("cell", run=a.id, step=16, minus=8, minus_run=b.id, picture="memory:W_O2", row=3, column=5)
    assert cell["score"] == pytest.approx(float(values[3, 5]), abs=1e-5)
    refused = page.ask("array", run=a.id, step=16, minus=8, minus_run=narrow.id, picture="raw:W_O2")
    assert refused["error"] == f"minus_run: raw:W_O2 is 16 × 16 in {a.id}, but 8 × 8 in {narrow.id}"
    assert "no run" in page.ask("array", run=a.id, step=16, minus=8, minus_run="none", picture="raw:W_O2")["error"]


def test_the_other_run_is_shown(page: Page, runs: tuple[Record, Record]) -> None:
    """Pictures and predictions of B, on the sequence of A; rows and state stay those of A."""
    a, b = runs
    asked: dict[str, Any] = {"minus": 8, "minus_run": b.id, "shows": "other", "reads": True}
    page.say("view", run=a.id, step=16, pictures=["memory:W_O2", "attention:2.1"], dtype="f4", **asked)
    reading = page.hear("reading")
    page.hear("tick")
    found = {header["picture"]: (header, values) for header, values in page.frames}
    assert {(header["run"], header["step"], header["minus"]) for header, _ in found.values()} == {(b.id, 8, None)}
    np.testing.assert_allclose(found["memory:W_O2"][1], scores(b, 8), atol=1e-5)
    np.testing.assert_allclose(found["attention:2.1"][1], attention(b, 8, a), atol=1e-5)
    assert (reading["run"], reading["step"]) == (b.id, 8)
    assert page.state["run"] == a.id, "told last"


def hi(tab: Tab, name: str = "memory:W_O2") -> float:
    return (lab_of(tab, f"drawn('{name}')") or {"hi": -1})["hi"]


def near(value: Any) -> Any:
    """A picture has 256 levels."""
    return pytest.approx(float(value), rel=0.02, abs=1e-3)


def test_a_b_and_their_difference_on_the_page(tab: Tab, lab: Served, runs: tuple[Record, Record]) -> None:
    a, b = runs
    look_at(tab, lab, f"{a.id}&step=16")
    wait(lambda: hi(tab) == near(scores(a, 16).max()))
    tab.get_by_test_id(f"compare-{b.id}").click()
    expect(tab.get_by_test_id("shows-less").first).to_have_attribute("aria-pressed", "true")
    expect(tab.get_by_test_id("other-run").first).to_have_value(b.id)
    wait(lambda: hi(tab) == near((scores(a, 16) - scores(b, 16)).max()))
    expect(tab.locator("#panel-wall .atstep").first).to_have_text("step 16 − B, step 16")
    tab.get_by_test_id("minus").first.fill("9")
    tab.keyboard.press("Enter")
    expect(tab.get_by_test_id("other-step").first).to_have_text("B is at step 8, the stored step before 9.")
    wait(lambda: hi(tab) == near((scores(a, 16) - scores(b, 8)).max()))
    tab.get_by_test_id("memory:W_O2").hover(position={"x": 60, "y": 60})
    expect(tab.get_by_test_id("matrix-tooltip")).to_contain_text("score")
    tab.get_by_test_id("shows-b").first.click()
    wait(lambda: hi(tab) == near(scores(b, 8).max()))
    expect(tab.locator("#panel-wall .atstep").first).to_have_text("B, step 8")
    wait(lambda: hi(tab, "attention:2.1") == near(attention(b, 8, a).max()))
    tab.get_by_test_id(f"branch-{b.id}").click()  # A and B change places
    expect(tab.get_by_test_id("other-run").first).to_have_value(a.id)
    wait(lambda: hi(tab) == near(scores(a, 8).max()))
    tab.get_by_test_id("shows-a").first.click()
    wait(lambda: hi(tab) == near(scores(b, 16).max()))


def test_what_has_another_shape_is_refused_in_words(
    tab: Tab, lab: Served, runs: tuple[Record, Record], narrow: Record
) -> None:
    look_at(tab, lab, f"{runs[0].id}&step=16")
    wait(lambda: hi(tab) > 0)
    tab.get_by_test_id("basis-raw").click()
    tab.get_by_test_id("shows-less").first.click()
    tab.get_by_test_id("other-run").first.select_option(narrow.id)
    refused = tab.locator("#panel-wall [data-testid=refused]")
    expect(refused.first).to_have_text("There is no A − B: the picture of A is 16 × 16, that of B 8 × 8.")
    tab.get_by_test_id("basis-memory").click()  # of as many tokens, whatever the width
    expect(refused).to_have_count(0)
    wait(lambda: lab_of(tab, "drawn('memory:W_O2')"))
    expect(tab.locator("#panel-wall .atstep").first).to_have_text("step 16 − B, step 8")
    tab.get_by_test_id("shows-b").first.click()
    tab.get_by_test_id("basis-raw").click()
    wait(lambda: (lab_of(tab, "drawn('raw:W_O2')") or {}).get("shape") == [8, 8])


def test_a_file_compares_the_runs_that_it_holds(
    browser: Browser, runs: tuple[Record, Record], narrow: Record, tmp_path: Path
) -> None:
    a, b = runs
    html = whole_report("A", [(record, []) for record in (b, narrow, a)], [])
    with alone(browser, html, tmp_path) as tab:
        wait(lambda: hi(tab) > 0)
        tab.get_by_test_id(f"branch-{a.id}").click()
        tab.get_by_test_id(f"compare-{b.id}").click()
        wait(lambda: hi(tab) == near((scores(a, 20) - scores(b, 20)).max()))
        wait(lambda: hi(tab, "attention:2.1") <= 1)
        tab.get_by_test_id("memory:W_O2").hover(position={"x": 60, "y": 60})
        expect(tab.get_by_test_id("matrix-tooltip")).to_contain_text("±")
        tab.get_by_test_id("shows-b").first.click()
        wait(lambda: hi(tab) == near(scores(b, 20).max()))
        tab.get_by_test_id("shows-less").first.click()
        tab.get_by_test_id("other-run").first.select_option(narrow.id)
        expect(tab.locator("#panel-attention [data-testid=refused]").first).to_contain_text("a sequence of its own")
