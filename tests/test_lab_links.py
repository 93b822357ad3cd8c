"""Links that bring back what was seen, and a server that has fallen silent."""

import threading
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from engram.learning import Adam, Plan
from engram.models.factual import Factual
from engram.records import Record
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.events import Freeze
from engram.tasks.facts import OwnFacts
from lab import Served
from pages import lab_of, look_at, opened, wait


@pytest.fixture
def page(browser: Browser, lab: Served) -> Iterator[Page]:
    with opened(browser, lab.url) as page:
        yield page


@pytest.fixture
def run(lab: Served, monkeypatch: pytest.MonkeyPatch, tiny: Callable[..., Train]) -> Record:
    monkeypatch.setenv("ENGRAM_HOME", str(lab.home))
    return execute(tiny(steps=20, seed=61), lab.home)


@pytest.fixture
def fork(run: Record, lab: Served) -> Record:
    frozen = run.train.model_copy(update={"events": (Freeze(step=3, matrix="W_O2"),)})
    return execute(frozen, lab.home)


def test_a_link_brings_back_the_view(browser: Browser, page: Page, lab: Served, run: Record, fork: Record) -> None:
    look_at(page, lab, f"{run.id}&step=16")
    page.get_by_test_id(f"compare-{fork.id}").click()
    page.get_by_test_id("minus").first.fill("8")
    page.keyboard.press("Enter")
    page.locator("#panel-circuit").scroll_into_view_if_needed()
    page.get_by_test_id("part-L2H1").click()
    page.locator("#panel-spectrum").scroll_into_view_if_needed()
    page.get_by_test_id("spectrum-W_K2").click()
    page.locator("#panel-settings .fold").click()
    page.get_by_test_id("copy-link").click()
    link = wait(lambda: "fold" in (found := page.evaluate("location.href")) and "matrix" in found and found)
    with opened(browser, link) as other:
        wait(lambda: lab_of(other, "view()"))
        view = wait(lambda: (found := lab_of(other, "view()")) and found["minus"] == 8 and found)
        assert (view["run"], view["step"], view["minus_run"], view["shows"]) == (run.id, 16, fork.id, "run")
        expect(other.locator("#panel-settings .fold")).to_have_attribute("aria-expanded", "false")
        other.locator("#panel-circuit").scroll_into_view_if_needed()
        expect(other.get_by_test_id("part-L2H1")).to_have_attribute("aria-pressed", "true")
        expect(other.get_by_test_id("trial")).to_be_visible()
        other.locator("#panel-spectrum").scroll_into_view_if_needed()
        expect(other.get_by_test_id("spectrum-W_K2")).to_have_attribute("aria-pressed", "true")
        other.get_by_test_id(f"branch-{fork.id}").click()  # of another run something else is chosen
        wait(lambda: "matrix" not in other.evaluate("location.hash"))


def test_a_link_names_a_fact(page: Page, lab: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_HOME", str(lab.home))
    facts = tuple((f"s{i}", "r", f"a{i % 2}") for i in range(4))
    model = Factual(d=8, heads=2, d_h=4, m=8, answers=2)
    plan = Plan(optimiser=Adam(lr=3e-3), steps=4, batch=8, trained=model.trainable, loss="answer")
    record = execute(Train(task=OwnFacts(facts=facts, T=8), model=model, plan=plan), lab.home)
    look_at(page, lab, f"{record.id}&fact=2")
    expect(page.locator("[data-fact='2']")).to_have_attribute("aria-selected", "true")


def test_what_an_address_says_wrongly_is_ignored_in_words(page: Page, lab: Served, run: Record) -> None:
    look_at(page, lab, f"{run.id}&step=soon&shows=all&fold=<b>&minus=-3&b=%00")
    said = page.get_by_test_id("notice")
    expect(said).to_contain_text("step=soon, shows=all, fold=<b>, minus=-3, b=")
    wait(lambda: (lab_of(page, "view()") or {}).get("run") == run.id)
    expect(page.get_by_test_id("shows-a").first).to_have_attribute("aria-pressed", "true")
    look_at(page, lab, f"{run.id}&step=8&b=nobody&shows=less")
    expect(page.get_by_test_id("shows-a").first).to_have_attribute("aria-pressed", "true")


def test_a_server_that_falls_silent_is_noticed(page: Page, lab: Served, run: Record) -> None:
    """It takes connections, as a frozen one does, and says nothing."""
    look_at(page, lab, run.id)
    wait(lambda: lab_of(page, f"rows('{run.id}')"))
    thaw = threading.Event()
    (connection, *_) = list(lab.server.server_state.connections)
    connection.loop.call_soon_threadsafe(thaw.wait)
    try:
        expect(page.get_by_test_id("banner")).to_contain_text("onnection")
    finally:
        thaw.set()
    expect(page.get_by_test_id("banner")).to_be_hidden()
    page.get_by_test_id("scrubber").fill("8")
    wait(lambda: (lab_of(page, "drawn('memory:W_O2')") or {}).get("step") == 8)
