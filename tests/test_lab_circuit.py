"""Circuit and spectrum on the page, in a real browser: what is drawn, tried out, and made an intervention."""

from collections.abc import Callable, Iterator

import pytest
import torch
from playwright.sync_api import Browser, Page, expect

from engram.asking import truncation_map
from engram.lab.circuits import circuit
from engram.lab.spectra import SEQUENCES
from engram.learning import Adam, Plan
from engram.models.factual import Factual
from engram.records import Record
from engram.runner.execute import execute
from engram.specs import Train
from engram.tasks.facts import Facts
from lab import Served
from pages import lab_of, look_at, opened, picked, start, steps, wait

Tiny = Callable[..., Train]


@pytest.fixture
def page(browser: Browser, lab: Served) -> Iterator[Page]:
    with opened(browser, lab.url) as page:
        yield page


def seen(page: Page, panel: str) -> None:
    """Once what stands above it has grown: it would push the panel out of sight."""
    page.locator("#panel-theory").scroll_into_view_if_needed()
    expect(page.get_by_test_id("theory")).to_be_visible()
    page.locator(f"#panel-{panel}").scroll_into_view_if_needed()


def press(page: Page, part: str) -> None:
    """By keyboard, as by a click."""
    page.get_by_test_id(part).focus()
    page.keyboard.press("Enter")


def percent_of(text: str) -> float:
    return float(text.replace("%", "").strip()) / 100


def test_a_part_is_tried_out_and_the_fork_does_it(page: Page, lab: Served, tiny: Tiny) -> None:
    record = execute(tiny(seed=31, steps=40), lab.home)
    look_at(page, lab, record.id)
    seen(page, "circuit")
    told = circuit(record.train, record.model(40))
    for node in told["nodes"]:
        expect(page.get_by_test_id("circuit-graph")).to_contain_text(node["short"])
    expect(page.get_by_test_id("part-L1H1")).to_contain_text("no role confirmed")
    press(page, "part-L2H1")
    page.get_by_test_id("trial-rescale").click()
    page.get_by_test_id("trial-what").select_option("W_O2")
    page.get_by_test_id("trial-factor").fill("-2")
    effect = page.get_by_test_id("effect")
    expect(effect).to_contain_text("rescale W_O2 by -2")
    page.get_by_test_id("trial-apply").click()
    fork = wait(lambda: (found := picked(page)) != record.id and found)
    (event,) = Record(lab.home / fork).train.events
    assert event.sentence == "rescale W_O2 by -2"
    assert event.step == 40
    wait(lambda: 40 in Record(lab.home / fork).snapshot_steps)
    assert torch.equal(Record(lab.home / fork).snapshot(40)["W_O2"], -2 * record.snapshot(40)["W_O2"])


def test_an_edge_is_patched_from_another_run(page: Page, lab: Served, tiny: Tiny) -> None:
    record, other = (execute(tiny(seed=seed, steps=8), lab.home) for seed in (32, 33))
    look_at(page, lab, record.id)
    seen(page, "circuit")
    press(page, "edge-L1H1-L2H1")
    expect(page.get_by_test_id("trial")).to_contain_text("layer 1, head 1 → layer 2, head 1")
    page.get_by_test_id("trial-patch").click()
    page.get_by_test_id("trial-source").select_option(other.id)
    page.get_by_test_id("trial-from").fill("5")
    expect(page.get_by_test_id("trial-wrong")).to_contain_text("has no stored weights of step 5")
    page.get_by_test_id("trial-from").fill("4")
    expect(page.get_by_test_id("effect")).to_contain_text(f"patch W_K2 from step 4 of {other.id}")
    page.get_by_test_id("trial-apply").click()
    fork = wait(lambda: (found := picked(page)) != record.id and found)
    wait(lambda: 8 in Record(lab.home / fork).snapshot_steps)
    assert torch.equal(Record(lab.home / fork).snapshot(8)["W_K2"], other.snapshot(4)["W_K2"])


def test_what_is_not_trained_is_refused_in_words(page: Page, lab: Served, tiny: Tiny) -> None:
    record = execute(tiny(seed=34, steps=4), lab.home)
    look_at(page, lab, record.id)
    seen(page, "circuit")
    page.get_by_test_id("part-L1H1").click()
    expect(page.get_by_test_id("effect")).to_contain_text("ablate head 1.1")
    page.get_by_test_id("trial-rescale").click()
    expect(page.get_by_test_id("trial-wrong")).to_contain_text("writes through W_O1, which is not trained")
    expect(page.get_by_test_id("trial-apply")).to_be_disabled()
    press(page, "part-embedding")
    expect(page.get_by_test_id("trial")).to_contain_text("Nothing of this part is trained")


def test_facts_have_a_circuit_of_their_own(page: Page, lab: Served) -> None:
    task = Facts(S=6, R=3, D=4)
    plan = Plan(optimiser=Adam(lr=0.01), steps=8, batch=8, loss="answer", trained=("W_V", "W_O", "W_I", "b", "W_F"))
    spec = Train(task=task, model=Factual(d=8, heads=2, d_h=4, m=12, answers=task.answers), plan=plan)
    look_at(page, lab, execute(spec, lab.home).id)
    seen(page, "circuit")
    press(page, "part-W_F")
    page.get_by_test_id("trial-what").select_option("W_F")
    expect(page.get_by_test_id("effect")).to_contain_text("rescale W_F by 0")
    expect(page.get_by_test_id("effect")).to_contain_text("of a prompt")


def test_the_spectrum_says_what_python_says(page: Page, lab: Served, tiny: Tiny) -> None:
    record = execute(tiny(seed=35, steps=8), lab.home)
    look_at(page, lab, record.id)
    seen(page, "spectrum")
    page.get_by_test_id("spectrum-W_K2").click()
    page.get_by_test_id("cut-share").fill("0.5")
    table = page.get_by_test_id("cut-table")
    expect(table).to_contain_text("W_K2, 8 of 16")
    _, known, _ = truncation_map(str(record.folder), "in_context", SEQUENCES)
    said = [cell.inner_text() for cell in table.locator("tbody tr").first.locator("td").all()]
    assert said[0] == "p(correct)"
    assert percent_of(said[1]) == pytest.approx(known.full["p_correct"], abs=6e-4)
    assert percent_of(said[2]) == pytest.approx(known.at("W_K2", 0.5)["p_correct"], abs=6e-4)
    expect(page.get_by_test_id("spectrum-values").locator("path")).to_have_count(6)
    expect(page.get_by_test_id("spectrum-history").locator("path")).to_have_count(8)
    page.get_by_test_id("cut-apply").click()
    fork = wait(lambda: (found := picked(page)) != record.id and found)
    assert Record(lab.home / fork).train.events[0].sentence == "truncate W_K2 to rank 8"


ASKS = """() => {
  const kinds = (window.__kinds = []);
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (text) {
    kinds.push(JSON.parse(text).t);
    return send.call(this, text);
  };
}"""
OURS = {"circuit", "effect", "spectrum", "spectra", "cut"}


def test_a_folded_panel_asks_for_nothing(page: Page, lab: Served, tiny: Tiny) -> None:
    record = execute(tiny(seed=36, steps=8), lab.home)
    look_at(page, lab, record.id)
    for panel in ("circuit", "spectrum"):
        page.locator(f"#panel-{panel} .fold").click()
    page.add_init_script(f"({ASKS})()")
    page.reload()
    wait(lambda: lab_of(page, "drawn('memory:W_O2')"))
    for step in (0, 4, 8):
        page.get_by_test_id("scrubber").fill(str(step))
        wait(lambda step=step: (lab_of(page, "drawn('memory:W_O2')") or {}).get("step") == step)
    assert not OURS & set(page.evaluate("window.__kinds"))
    for panel in ("circuit", "spectrum"):
        page.locator(f"#panel-{panel} .fold").click()
        seen(page, panel)
    wait(lambda: OURS - {"effect"} <= set(page.evaluate("window.__kinds")))


def test_a_training_is_not_asked_about_at_every_step(page: Page) -> None:
    """While it goes on, what the panels ask takes a small share of the time; a person is answered at once."""
    page.add_init_script(f"({ASKS})()")
    page.reload()
    run = start(page)
    seen(page, "circuit")
    expect(page.get_by_test_id("circuit-graph")).to_be_visible()
    asked = page.evaluate("window.__kinds").count("circuit")
    before = steps(page, run)
    wait(lambda: steps(page, run) > before + 40)
    assert page.evaluate("window.__kinds").count("circuit") - asked <= (steps(page, run) - before) / 4
    press(page, "part-L2H1")
    expect(page.get_by_test_id("effect")).to_be_visible()


def test_nothing_is_wider_than_a_phone(page: Page, lab: Served, tiny: Tiny) -> None:
    record = execute(tiny(seed=37, steps=4), lab.home)
    page.set_viewport_size({"width": 390, "height": 844})
    look_at(page, lab, record.id)
    seen(page, "circuit")
    press(page, "part-L2H1")
    page.get_by_test_id("trial-patch").click()
    expect(page.get_by_test_id("trial-source")).to_be_visible()
    wait(lambda: page.evaluate("document.documentElement.scrollWidth <= innerWidth && innerWidth === 390"))
