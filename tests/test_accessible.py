"""The page of the lab and all that opens over it, looked at by axe: nothing serious or critical stands in the way."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from engram.lab.whole import whole_report
from engram.learning import Adam, Plan
from engram.models.factual import Factual
from engram.records import Record
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.events import Freeze
from engram.tasks.facts import OwnFacts
from lab import Served
from pages import PATIENCE, lab_of, look_at, wait
from test_alone import alone

AXE = Path(__file__).parent.parent / "web/node_modules/axe-core/axe.min.js"
PANELS = ("timeline", "wall", "attention", "circuit", "spectrum", "theory", "branches", "settings")
RUN = """() => axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations
  .filter((v) => ["serious", "critical"].includes(v.impact))
  .flatMap((v) => v.nodes.map((node) => `${v.id}: ${node.html.slice(0, 160)} | ${node.failureSummary}`)))"""


@pytest.fixture(scope="module")
def axe() -> str:
    """A policy of the page forbids foreign scripts; what a test evaluates is none of its own."""
    if not AXE.exists():
        if os.environ.get("CI"):
            pytest.fail("no axe-core in CI: `npm ci` in web/ installs it")
        pytest.skip("no axe-core: `npm ci` in web/ installs it")
    return AXE.read_text(encoding="utf-8")


@pytest.fixture
def run(lab: Served, monkeypatch: pytest.MonkeyPatch, tiny: Callable[..., Train]) -> Record:
    """With a fork and another seed."""
    monkeypatch.setenv("ENGRAM_HOME", str(lab.home))
    whole = tiny(steps=20, seed=71)
    for other in (tiny(steps=20, seed=72), whole.model_copy(update={"events": (Freeze(step=3, matrix="W_O2"),)})):
        execute(other, lab.home)
    return execute(whole, lab.home)


@pytest.fixture(params=["light", "dark"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, color_scheme=request.param)
    page = context.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    yield page
    context.close()


def wrong(page: Page, axe: str) -> list[Any]:
    page.evaluate(axe)
    return page.evaluate(RUN)


def seen(page: Page, *panels: str) -> None:
    """A panel that was never on the screen has asked for nothing."""
    for panel in panels:
        page.locator(f"#panel-{panel}").scroll_into_view_if_needed()
        page.wait_for_timeout(150)


def test_the_whole_page(page: Page, axe: str, lab: Served, run: Record) -> None:
    look_at(page, lab, f"{run.id}&step=16")
    wait(lambda: lab_of(page, "drawn('memory:W_O2')"))
    seen(page, *PANELS)
    expect(page.get_by_test_id("circuit-graph")).to_be_visible()
    page.get_by_test_id("part-L2H1").click()
    page.get_by_test_id("all-seeds").click()
    page.get_by_test_id("shows-less").first.click()
    for button in page.locator(".data").all():
        button.click()
    page.get_by_test_id("python").first.click()
    expect(page.get_by_test_id("code")).to_be_visible()
    assert wrong(page, axe) == []


@pytest.mark.parametrize("key", ["n", "r", "?"])
def test_what_opens_over_it(page: Page, axe: str, lab: Served, run: Record, key: str) -> None:
    look_at(page, lab, run.id)
    wait(lambda: lab_of(page, "drawn('memory:W_O2')"))
    page.keyboard.press(key)
    expect(page.locator("dialog[open]")).to_be_visible()
    if key == "n":
        expect(page.get_by_test_id("start")).to_be_visible()
    assert wrong(page, axe) == []


def test_facts(page: Page, axe: str, lab: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_HOME", str(lab.home))
    facts = tuple((f"s{i}", "r", f"a{i % 2}") for i in range(4))
    model = Factual(d=8, heads=2, d_h=4, m=8, answers=2)
    plan = Plan(optimiser=Adam(lr=3e-3), steps=4, batch=8, trained=model.trainable, loss="answer")
    record = execute(Train(task=OwnFacts(facts=facts, T=8), model=model, plan=plan), lab.home)
    look_at(page, lab, record.id)
    page.locator("[data-fact='2']").click()
    seen(page, "wall", "facts")
    assert wrong(page, axe) == []


def test_a_run_that_is_not_there(page: Page, axe: str, lab: Served, run: Record) -> None:
    look_at(page, lab, "bigram-of-nobody")
    expect(page.get_by_test_id("missing")).to_be_visible()
    assert wrong(page, axe) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_file(browser: Browser, axe: str, run: Record, tmp_path: Path, scheme: str) -> None:
    with alone(browser, whole_report("A", [(run, [])], []), tmp_path, color_scheme=scheme) as shown:
        wait(lambda: lab_of(shown, "drawn('memory:W_O2')"))
        assert wrong(shown, axe) == []
