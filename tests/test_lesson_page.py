"""A lesson in a real browser: its links move the page, its answers wait for a prediction, its text stays text."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from engram.lab.lesson import lesson
from engram.runner.execute import execute
from lab import Served, served
from pages import lab_of, opened, picked, wait

SMALL = "set: task.T=24\nset: task.K=3\nset: model.d=16\nset: plan.batch=4\n"
TEXT = f"""---
title: Mine <b>& yours</b>
run: first
preset: birth.joint
set: plan.steps=16
{SMALL}
run: second
preset: birth.joint
seed: 1
set: plan.steps=12
{SMALL}
---

<img src=x onerror=alert(1)> **<script>alert(2)</script>** [<i>go</i>](engram:step=8&matrix=W_O2) and
[the second](engram:run=second&step=4&head=2.1) with [a sequence](engram:text=abab&step=last), loss {{loss@8}},
[the circuit](engram:step=8&part=L2H1), [the end](engram:step=last&panel=timeline), other {{second:loss@last}}.

:::choice
Which <u>one</u>?
- ( ) this
- (x) that <b>here</b>
:::answer
Because of <em>HTML</em>: [look](engram:step=4&panel=settings).
:::

:::number
What is the loss at step 8?
= loss@8 within 0.5
:::answer
It was {{loss@8}}.
:::
"""

IN_SIGHT = """() => {
  const top = (what) => document.querySelector(what).getBoundingClientRect().top;
  return top(".lesson") - top("figure.anchored");
}"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("lab") / "runs", lessons=[lesson("mine", TEXT).checked()]) as found:
        yield found


@pytest.fixture
def page(browser: Browser, own: Served) -> Iterator[Page]:
    with opened(browser, f"{own.url}#lesson=mine") as page:
        yield page


def trained(own: Served, number: int = 0) -> str:
    return execute(lesson("mine", TEXT).runs[number].spec, own.home).id


def shown(page: Page) -> int | None:
    return (lab_of(page, "drawn('memory:W_O2')") or {}).get("step")


def test_a_run_that_is_not_there_is_trained_from_the_lesson(page: Page, own: Served) -> None:
    expect(page.get_by_test_id("lesson-run-second")).to_contain_text("not trained yet")
    page.get_by_role("button", name="the second").click()
    expect(page.get_by_test_id("notice")).to_contain_text("“second” is not trained yet")
    page.get_by_test_id("train-second").click()
    expect(page.get_by_test_id("lesson-run-second")).to_contain_text("12 steps, finished")
    assert picked(page) == lesson("mine", TEXT).runs[1].to_json()["run"]


def test_links_move_the_page(page: Page, own: Served) -> None:
    first, second = trained(own), trained(own, 1)
    page.reload()
    page.get_by_role("button", name="<i>go</i>").click()
    wait(lambda: shown(page) == 8)
    assert picked(page) == first
    expect(page.locator("figure.anchored canvas")).to_have_attribute("data-testid", "memory:W_O2")
    page.get_by_role("button", name="the second").click()
    wait(lambda: picked(page) == second)
    expect(page.get_by_test_id("step-label")).to_contain_text("step 4")
    expect(page.locator("figure.anchored [data-testid='head-2.1']")).to_be_visible()
    page.get_by_role("button", name="a sequence").click()
    expect(page.get_by_test_id("sequence-input")).to_have_value("abab")
    expect(page.get_by_test_id("step-label")).to_contain_text("step 16")
    page.get_by_role("button", name="the circuit").click()
    expect(page.get_by_test_id("part-L2H1")).to_have_attribute("aria-pressed", "true")
    page.locator("#panel-timeline .fold").click()
    page.get_by_role("button", name="the end").click()
    expect(page.locator("#panel-timeline .fold")).to_have_attribute("aria-expanded", "true")


def test_an_answer_waits_for_a_prediction(page: Page, own: Served) -> None:
    """By keyboard alone; what was predicted outlives a reload, and can be taken back."""
    run = trained(own)
    page.reload()
    wait(lambda: picked(page) == run)
    expect(page.get_by_text("Because of")).to_have_count(0)
    expect(page.get_by_test_id("predict-0")).to_be_disabled()
    page.get_by_test_id("choice-0-0").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("verdict-0")).to_contain_text("Not as you predicted")
    expect(page.get_by_test_id("answer-0")).to_contain_text("Because of <em>HTML</em>")
    expect(page.get_by_test_id("lesson-done")).to_contain_text("1 of 2")
    page.reload()
    expect(page.get_by_test_id("answer-0")).to_be_visible()
    page.get_by_test_id("answer-0").get_by_text("Predict again").click()
    expect(page.get_by_test_id("answer-0")).to_be_hidden()
    page.get_by_test_id("number-1").fill("many")
    expect(page.get_by_test_id("predict-1")).to_be_disabled()
    page.get_by_test_id("number-1").fill("99")
    page.keyboard.press("Enter")
    wait(lambda: "it is" in page.get_by_test_id("verdict-1").inner_text())
    loss = lab_of(page, f"rows('{run}')")["loss"][8]
    assert f"{loss:.2f}" == f"{float(page.get_by_test_id('answer-1').get_by_test_id('lesson-value').inner_text()):.2f}"


def test_html_in_a_lesson_is_shown_as_text(page: Page) -> None:
    text = page.get_by_test_id("lesson")
    for said in ("Mine <b>& yours</b>", "<img src=x onerror=alert(1)>", "<script>alert(2)</script>", "<i>go</i>"):
        expect(text).to_contain_text(said)
    assert page.locator(".lesson :is(img, script, i, u, em)").count() == 0


def test_it_is_folded_closed_and_found_again(page: Page) -> None:
    page.get_by_test_id("lesson-fold").click()
    expect(page.locator("#lesson-body")).to_be_hidden()
    page.reload()
    expect(page.get_by_test_id("lesson-fold")).to_have_attribute("aria-expanded", "false")
    page.get_by_test_id("lesson-close").click()
    expect(page.get_by_test_id("lesson")).to_have_count(0)
    page.keyboard.press("t")
    page.get_by_test_id("dialog-lessons").get_by_test_id("lesson-birth").click()
    expect(page.get_by_test_id("lesson")).to_contain_text("The birth of an induction head")
    wait(lambda: "lesson=birth" in page.evaluate("location.hash"))


def test_at_the_width_of_a_telephone_panels_stay_in_reach(page: Page, own: Served) -> None:
    trained(own)
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    page.get_by_role("button", name="<i>go</i>").click()
    wait(lambda: shown(page) == 8)
    body = page.get_by_test_id("lesson").bounding_box()
    assert body is not None
    assert body["width"] == 390
    wait(lambda: page.evaluate(IN_SIGHT) > 200)  # the picture is above the lesson, and not under it
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
