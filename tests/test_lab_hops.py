"""Hops in the lab: accuracy by hops over the steps, the stages of a curriculum, and attention over a string to read."""

from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from engram.experiments.hops import curriculum, depth
from engram.lab.pictures import predictions
from engram.lab.watched_run import Births
from engram.models import Model
from engram.records.files import line_of
from engram.records.table import Table
from engram.records.weights import initial_weights
from engram.runner.execute import execute
from engram.specs import Train
from engram.tasks import Composition, Hops
from lab import Served
from pages import lab_of, look_at, opened, wait


def finished(lab: Served, spec: Train) -> str:
    return execute(spec, lab.home).id


@pytest.fixture
def page(browser: Browser, lab: Served) -> Iterator[Page]:
    with opened(browser, lab.url) as page:
        yield page


def test_a_run_on_hops_can_be_watched(page: Page, lab: Served) -> None:
    run = finished(lab, depth.training("smoke", 2, seed=5))
    look_at(page, lab, run)
    curves = page.get_by_test_id("timeline-accuracy by hops")
    expect(curves.locator("canvas").first).to_be_visible()
    legend = page.locator("figure.curves", has=curves).locator(".legend")
    expect(legend).to_contain_text("1 hop")
    expect(legend).to_contain_text("2 hops")
    wait(lambda: lab_of(page, "drawn('attention:2.1')"))
    tokens = page.locator(".tokens span").all_inner_texts()
    assert tokens[0] in "012"  # how many hops are asked for
    assert set(tokens[1:]) <= set("abcd")
    page.get_by_test_id("sequence-input").fill("1 a b a c")
    answers = page.get_by_test_id("predictions")
    expect(answers).to_contain_text("right answer")
    expect(answers.locator("tr[data-position='3'] td").nth(2)).to_contain_text("b")  # what came after a


def test_a_curriculum_can_be_watched(page: Page, lab: Served) -> None:
    ends = curriculum.STEPS["smoke"][-2:]
    run = finished(lab, curriculum.training("layer by layer", "smoke", 2, ends, seed=5))
    look_at(page, lab, run)
    expect(page.get_by_test_id("timeline-accuracy by hops").locator("canvas").first).to_be_visible()
    flags = page.locator(".flag.stage")
    expect(flags).to_have_count(2)
    assert "hops" in (flags.nth(1).get_attribute("aria-label") or "")
    flags.nth(1).click()
    expect(page.get_by_test_id("scrubber")).to_have_value(str(ends[0]))


def read(task: Hops | Composition, tokens: np.ndarray) -> dict[str, object]:
    spec = depth.training("smoke", 2, seed=0).model_copy(update={"task": task})
    return predictions(spec, Model(spec.model, initial_weights(spec)), tokens, ())


def test_answers_are_those_of_the_task() -> None:
    task = Hops(letters=4, length=8, most=2)
    said = read(task, np.array([1, 3, 4, 3, 5]))
    assert said["asks"] == "answer"
    assert said["marks"] == ["1", "a", "b", "a", "c"]
    assert said["right"] == [None, None, None, "b", None]
    assert said["asked"] == [False, False, False, True, False]
    assert said["probabilities"][3] > 0  # type: ignore[index]
    assert set(read(task, np.array([3, 4, 3]))["right"]) == {None}  # type: ignore[call-overload]  # no hop token


def test_answers_need_a_sequence_of_the_task() -> None:
    task = Composition(n=3, k=2)
    tokens = task.sample(0, 0, 1).tokens[0]
    assert task.has_answers(tokens)
    for place, token in ((0, 3), (1, int(tokens[2])), (-1, 3)):
        changed = tokens.copy()
        changed[place] = token
        assert not task.has_answers(changed)
    assert not task.has_answers(tokens[:-1])


def test_a_number_of_hops_is_solved_once() -> None:
    table = Table()
    names = ("test.all.accuracy.hop2", "test.all.accuracy.hop1")
    rows = [{"step": step} | dict.fromkeys(names, right) for step, right in enumerate((0.5, 0.95, 0.4, 0.99))]
    table.add([line_of(row)[:-1] for row in rows])
    assert Births(table).so_far() == [
        {"step": 1, "what": "2 hops are solved"},
        {"step": 1, "what": "1 hop is solved"},
    ]
