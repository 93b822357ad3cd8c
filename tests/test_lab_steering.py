"""Steering on the page, in a real browser: freezing, forking, interventions, settings, a head taken away."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from engram.records import Record
from lab import MINE, SCALE, Served, own_run
from pages import lab_of, look_at, opened, pause, picked, start, steps, wait


@pytest.fixture
def page(browser: Browser, lab: Served) -> Iterator[Page]:
    with opened(browser, lab.url) as page:
        yield page


def test_freezing_forks_and_the_recall_stops(page: Page, lab: Served) -> None:
    run = start(page)
    wait(lambda: steps(page, run) > 10)
    page.get_by_test_id("intervention-kind").select_option("freeze")
    page.get_by_test_id("intervention-matrix").select_option("W_O2")
    page.get_by_test_id("intervention-apply").click()
    fork = wait(lambda: (found := picked(page)) != run and found)
    (event,) = Record(lab.home / fork).train.events
    wait(lambda: steps(page, fork) > event.step + 25)
    columns = lab_of(page, f"rows('{fork}')")
    recalls = [
        value
        for step, value in zip(columns["step"], columns["recall.W_O2"], strict=True)
        if step >= event.step and value is not None
    ]
    assert len(recalls) > 3
    assert len(set(recalls)) == 1
    assert steps(page, run) >= event.step, "both curves are there"
    expect(page.get_by_test_id(f"branch-{fork}")).to_contain_text("freeze W_O2")
    page.get_by_test_id(f"branch-{run}").click()
    expect(page.get_by_test_id("run-picker")).to_have_attribute("data-run", run)


def test_an_intervention_that_the_page_has_never_heard_of(page: Page, lab: Served) -> None:
    """The server says what it asks for: a choice, numbers, a switch."""
    run = own_run(lab.home, MINE + SCALE)
    look_at(page, lab, run)
    page.get_by_test_id("go-on").click()
    wait(lambda: steps(page, run) > 10)
    pause(page)
    page.get_by_test_id("intervention-kind").select_option("Scale a matrix")
    expect(page.get_by_test_id("intervention-answer")).to_contain_text("multiplied by a factor")
    expect(page.get_by_test_id("intervention-factor")).to_have_value("2")
    page.get_by_test_id("intervention-factor").fill("-3")
    page.get_by_test_id("intervention-apply").click()
    expect(page.locator("label", has=page.get_by_test_id("intervention-factor"))).to_contain_text("must be positive")
    page.get_by_test_id("intervention-matrix").select_option("W_K2")
    page.get_by_test_id("intervention-factor").fill("0.5")
    page.get_by_test_id("intervention-sign").select_option("turned")
    page.get_by_test_id("intervention-forget").check()
    page.get_by_test_id("intervention-apply").click()
    fork = wait(lambda: (found := picked(page)) != run and found)
    expect(page.get_by_test_id("events")).to_contain_text("scale W_K2 by 0.5")
    (event,) = Record(lab.home / fork).train.events
    assert event.model_dump(exclude={"step"}) == {
        "matrix": "W_K2", "factor": 0.5, "times": 1, "sign": "turned", "forget": True
    }  # fmt: skip


def test_settings_have_the_values_of_the_run(page: Page, lab: Served) -> None:
    """What is offered depends on what was chosen before; what is wrong stands beside the value."""
    run = start(page)
    wait(lambda: steps(page, run) > 5)
    page.get_by_test_id("intervention-kind").select_option("change")
    value = page.get_by_test_id("intervention-value")
    expect(value).to_have_value("0.2")
    page.get_by_test_id("intervention-field").select_option("task.K")
    expect(value).to_have_value("3")
    value.fill("1000")
    page.get_by_test_id("intervention-apply").click()
    expect(page.locator("label", has=value)).to_contain_text("needs more than")
    page.get_by_test_id("intervention-field").select_option("task.triggers")
    value.select_option("fixed")
    page.get_by_test_id("intervention-apply").click()
    fork = wait(lambda: (found := picked(page)) != run and found)
    assert [event.sentence for event in Record(lab.home / fork).train.events] == ["set task.triggers to fixed"]


def test_an_own_sequence_and_a_head_that_is_taken_away(page: Page) -> None:
    run = start(page)
    wait(lambda: steps(page, run) > 5)
    pause(page)
    page.get_by_test_id("sequence-input").fill("to be or to b")
    table = page.get_by_test_id("predictions")
    page.get_by_test_id("attention:2.1").scroll_into_view_if_needed()
    wait(lambda: (lab_of(page, "drawn('attention:2.1')") or {}).get("shape") == [13, 13])
    before = wait(table.inner_text)
    page.get_by_test_id("ablate-2.1").check()
    wait(lambda: table.inner_text() != before)
    page.get_by_test_id("ablate-2.1").uncheck()
    wait(lambda: table.inner_text() == before)
    page.get_by_test_id("sequence-input").fill("naïve")
    expect(page.get_by_test_id("sequence-problem")).to_contain_text("ï")
