"""The page of the lab in a real browser, against a real server and a real training."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, FloatRect, Page, expect

from engram.records import Record
from lab import MINE, Served, own_run
from pages import lab_of, look_at, opened, pause, picked, start, steps, wait


@pytest.fixture
def page(browser: Browser, lab: Served) -> Iterator[Page]:
    with opened(browser, lab.url) as page:
        yield page


def test_a_run_is_started_and_its_curve_moves(page: Page, lab: Served) -> None:
    run = start(page)
    seen = wait(lambda: steps(page, run))
    wait(lambda: steps(page, run) > seen + 5)
    wait(lambda: lab_of(page, "drawn('memory:W_O2')") and lab_of(page, "drawn('attention:2.1')"))
    drawn = lab_of(page, "drawn('memory:W_O2')")
    assert drawn["shape"] == [65, 65]
    wait(lambda: lab_of(page, "drawn('memory:W_O2')")["step"] > drawn["step"])
    expect(page.get_by_test_id("timeline-losses").locator("canvas").first).to_be_visible()


def test_nothing_is_drawn_that_looks_the_same(page: Page) -> None:
    """A picture is drawn for a frame of its own, not for every frame that comes."""
    run = start(page)
    wait(lambda: lab_of(page, "drawn('memory:W_O2')") and lab_of(page, "drawn('attention:2.1')"))
    names, came = lab_of(page, "view()")["pictures"], lab_of(page, "frames()")
    before = sum(lab_of(page, f"drawn('{name}')")["count"] for name in names)
    wait(lambda: lab_of(page, "frames()") > came + 15)
    drawings = sum(lab_of(page, f"drawn('{name}')")["count"] for name in names) - before
    assert len(names) >= 4
    assert drawings <= lab_of(page, "frames()") - came
    assert run


def test_what_is_wrong_is_said_beside_its_field(page: Page) -> None:
    page.get_by_test_id("new-run").click()
    wait(lambda: page.get_by_test_id("preset").input_value() == "birth.joint")
    page.get_by_test_id("field-task.K").fill("0")
    page.get_by_test_id("start").click()
    expect(page.get_by_test_id("field-error-task.K")).to_contain_text("must be positive")


TESTED = MINE.replace("seed=seed)", 'seed=seed, tests={"short": Repeat(L=6)})')


def test_whatever_is_measured_can_be_drawn(page: Page, lab: Served) -> None:
    """A file of one's own brings columns of its own: off at first, and remembered when they are wanted."""
    run = own_run(lab.home, TESTED, **{"plan.attention_every": 5})
    look_at(page, lab, run)
    page.get_by_test_id("go-on").click()
    wait(lambda: "test.short.loss.in_context" in (lab_of(page, f"rows('{run}')") or {}))
    timeline = page.locator("#panel-timeline")
    expect(timeline).to_contain_text("accuracy in context")
    expect(timeline).to_contain_text("W_K1 (t<64)")
    expect(page.get_by_test_id("timeline-loss on tests")).to_be_hidden()
    assert [b.inner_text() for b in page.locator(".further button").all()] == [
        "attention", "loss on tests", "accuracy on tests"
    ]  # fmt: skip
    page.get_by_test_id("more-loss on tests").click()
    page.reload()
    expect(page.get_by_test_id("timeline-loss on tests").locator("canvas").first).to_be_visible()
    expect(timeline).to_contain_text("Loss on tests (nats)")
    expect(timeline).to_contain_text("short: loss in context")
    page.get_by_test_id("more-loss on tests").click()
    expect(page.get_by_test_id("timeline-loss on tests")).to_be_hidden()


def test_the_noise_is_in_the_mlp(page: Page) -> None:
    """Probabilities on clean text are drawn without being asked for, and a truncation is marked in them."""
    page.get_by_test_id("new-run").click()
    option = page.locator("option[value='context.noisy-recall']")
    expect(option).to_have_text("context.noisy-recall · the noise is in the MLP")
    page.get_by_test_id("preset").select_option("context.noisy-recall")
    for name, value in {"task.T": 24, "model.d": 16, "plan.steps": 8, "plan.batch": 4}.items():
        page.get_by_test_id(f"field-{name}").fill(str(value))
    page.get_by_test_id("start").click()
    expect(page.get_by_test_id("state")).to_have_attribute("data-state", "finished")
    curves = page.get_by_test_id("timeline-probability on clean text")
    expect(curves.locator("canvas").first).to_be_visible()
    page.get_by_test_id("intervention-kind").select_option("truncate")
    page.get_by_test_id("intervention-matrix").select_option("W_I2")
    page.get_by_test_id("intervention-rank").fill("0")
    page.get_by_test_id("intervention-when").select_option("at")
    page.get_by_test_id("intervention-at").fill("5")
    page.get_by_test_id("intervention-apply").click()
    expect(page.locator("#panel-interventions")).to_contain_text("truncate W_I2 to rank 0")
    page.get_by_test_id("more-probability on clean text").click()
    expect(curves).to_be_hidden()


def test_a_run_that_has_ended_says_so_where_the_step_is_asked(page: Page, lab: Served) -> None:
    look_at(page, lab, own_run(lab.home, MINE, **{"plan.steps": 3}))
    page.get_by_test_id("go-on").click()
    expect(page.get_by_test_id("state")).to_have_attribute("data-state", "finished")
    page.get_by_test_id("intervention-apply").click()
    expect(page.locator(".when")).to_contain_text("the run has ended; say at which step")


def test_scrubbing_while_it_runs_moves_nothing_else(page: Page) -> None:
    run = start(page)
    wait(lambda: steps(page, run) > 60)
    scrubber = page.get_by_test_id("scrubber")
    for step in (30, 0, 60, 16):
        scrubber.fill(str(step))
        wait(lambda step=step: (lab_of(page, "drawn('memory:W_O2')") or {}).get("step") == step)
        expect(page.get_by_test_id("step-label")).to_contain_text(f"step {step}")
    expect(page.get_by_test_id("follow-live")).to_have_attribute("aria-pressed", "false")
    seen = steps(page, run)
    wait(lambda: steps(page, run) > seen + 10)
    assert scrubber.input_value() == "16"
    page.get_by_test_id("follow-live").click()
    wait(lambda: int(scrubber.input_value()) > 60)


def middle_of(box: FloatRect | None) -> tuple[float, float]:
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_the_mouse_is_where_the_thumb_is(page: Page) -> None:
    run = start(page)
    wait(lambda: steps(page, run) > 60)
    pause(page)
    thumb, scrubber = page.locator(".thumb"), page.get_by_test_id("scrubber")
    box = page.locator(".track").bounding_box()
    assert box is not None
    page.mouse.click(box["x"], box["y"] + box["height"] / 3)
    expect(scrubber).to_have_value("0")
    scrubber.fill("37")
    for _ in range(2):
        page.mouse.click(*middle_of(thumb.bounding_box()))
        expect(scrubber).to_have_value("37")


def test_a_run_that_grows_moves_nothing_under_the_mouse(page: Page) -> None:
    """The track ends at a round number that grows with the run, but not while a hand is there."""
    run = start(page, **{"plan.steps": 20_000, "plan.batch": 4})
    wait(lambda: steps(page, run) > 5)
    pause(page)
    scrubber = page.get_by_test_id("scrubber")
    scrubber.fill("5")
    x, y = middle_of(page.locator(".thumb").bounding_box())
    page.mouse.move(x, y)
    page.mouse.down()
    reach = int(scrubber.get_attribute("max") or 0)
    page.keyboard.press("Space")  # it goes on
    wait(lambda: steps(page, run) > reach + 5)
    page.mouse.move(x + 1, y)
    page.mouse.move(x, y)
    expect(scrubber).to_have_value("5")
    expect(scrubber).to_have_attribute("max", str(reach))
    page.mouse.up()
    page.mouse.move(0, 0)
    expect(scrubber).not_to_have_attribute("max", str(reach))


def test_a_reload_continues_where_it_was(page: Page) -> None:
    run = start(page)
    wait(lambda: steps(page, run) > 40)
    page.get_by_test_id("scrubber").fill("16")
    page.get_by_test_id("sequence-input").fill("hello")
    wait(lambda: "step=16" in page.evaluate("location.hash"))  # written when the hand rests
    page.reload()
    expect(page.get_by_test_id("run-picker")).to_have_attribute("data-run", run)
    expect(page.get_by_test_id("step-label")).to_contain_text("step 16")
    expect(page.get_by_test_id("sequence-input")).to_have_value("hello")
    wait(lambda: (lab_of(page, "drawn('memory:W_O2')") or {}).get("step") is not None)


def test_a_lost_connection_is_said_and_found_again(lab: Served, page: Page) -> None:
    run = start(page)
    wait(lambda: steps(page, run) > 5)
    token, file = lab.token, lab.home / "lab" / "token"
    file.write_text("nobody knows this token")  # a browser that plays offline may not notice that it is
    lab.drop()
    expect(page.get_by_test_id("banner")).to_contain_text("onnection")
    page.get_by_test_id("scrubber").fill("3")
    expect(page.get_by_test_id("step-label")).to_contain_text("step 3")
    seen = steps(page, run)
    file.write_text(token)
    expect(page.get_by_test_id("banner")).to_be_hidden()
    wait(lambda: steps(page, run) > seen)
    columns = lab_of(page, f"rows('{run}')")
    assert columns["step"] == list(range(len(columns["step"]))), "no row is missing, none came twice"


def test_dark_mode(page: Page) -> None:
    def ground() -> str:
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    light = ground()
    page.get_by_test_id("theme").click()
    wait(lambda: ground() != light)
    page.reload()
    wait(lambda: ground() != light)


CLOSE_AND_PRESS_F = """() => {
  document.querySelector("dialog[open]").close();
  dispatchEvent(new KeyboardEvent("keydown", { key: "f" }));
}"""


def focused(page: Page) -> str:
    return page.evaluate("document.activeElement?.dataset.testid ?? ''")


def test_by_keyboard_alone(page: Page, lab: Served) -> None:
    run = start(page)
    wait(lambda: steps(page, run) > 40)
    page.keyboard.press("Escape")  # from the button that was pressed last
    page.keyboard.press("Space")
    expect(page.get_by_test_id("state")).to_have_attribute("data-state", "paused")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_test_id("follow-live")).to_have_attribute("aria-pressed", "false")
    here = int(page.get_by_test_id("scrubber").input_value())
    page.keyboard.press("ArrowLeft")
    assert int(page.get_by_test_id("scrubber").input_value()) < here
    page.keyboard.press("l")
    expect(page.get_by_test_id("follow-live")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("?")
    expect(page.get_by_test_id("dialog-help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("dialog-help")).to_be_hidden()
    page.keyboard.press("?")
    expect(page.get_by_test_id("dialog-help")).to_be_visible()
    page.evaluate(CLOSE_AND_PRESS_F)  # a key is not lost because the window over the page has just gone
    wait(lambda: focused(page).startswith("intervention-"))
    for _ in range(8):
        if focused(page) != "intervention-apply":
            page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    fork = wait(lambda: (found := picked(page)) != run and found)
    assert len(Record(lab.home / fork).train.events) == 1


def test_a_matrix_answers_under_the_mouse(page: Page) -> None:
    run = start(page)
    wait(lambda: lab_of(page, "drawn('memory:W_O2')"))
    page.get_by_test_id("memory:W_O2").hover(position={"x": 40, "y": 40})
    tip = page.get_by_test_id("matrix-tooltip")
    wait(lambda: "rank" in tip.inner_text())
    assert run


def test_html_in_a_run_is_shown_as_text(page: Page, lab: Served) -> None:
    """A folder with a name that is markup is no run; a letter of a vocabulary that is markup is a letter."""
    odd = lab.home / "<img src=x onerror=alert(1)>"
    odd.mkdir(exist_ok=True)
    (odd / "lock").touch()
    page.reload()
    run = start(page)
    wait(lambda: steps(page, run) > 3)
    page.get_by_test_id("sequence-input").fill("a&b")
    wait(lambda: "&" in page.get_by_test_id("predictions").inner_text())
    assert page.locator("img[src=x]").count() == 0
