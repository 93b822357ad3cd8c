"""All fields of a new run: every plain field of its Spec can be set, and nothing that names a file."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from engram.errors import EngramError
from engram.lab.all_fields import described, settable
from engram.lab.presets import chosen, presets
from engram.learning import Adam
from engram.records import Record
from lab import SEEDS, SMALL, Served
from lab import Page as Spoken
from pages import opened, picked, wait


@pytest.fixture
def browsed(browser: Browser, lab: Served) -> Iterator[Page]:
    with opened(browser, lab.url) as page:
        yield page


def test_what_a_page_is_told_makes_the_same_spec() -> None:
    for name, preset in presets().items():
        told = {field["name"]: field["value"] for field in described(preset.spec)}
        assert chosen(name, preset.spec.seed, told) == preset.spec
        assert all(field["meaning"] for field in described(preset.spec))


def test_a_field_is_typed_as_on_the_command_line() -> None:
    typed = {
        "plan.optimiser": "Adam",
        "plan.optimiser.lr": 0.01,
        "plan.trained": '["W_O2"]',
        "plan.snapshot_every": "7",
    }
    spec = chosen("birth.joint", 0, typed | {"task.no_repeat": "true", "plan.rate": "[[0, 1.0], [9, 0.5]]"})
    assert isinstance(spec.plan.optimiser, Adam)
    assert (spec.plan.trained, spec.plan.snapshot_every, spec.plan.rate) == (("W_O2",), 7, ((0, 1.0), (9, 0.5)))
    assert chosen("hops.curriculum 3", 0, {"plan.stages.1.step": 300}).plan.stages[1].step == 300


REFUSED = {
    "task.corpus": "/etc/passwd",
    "seed": 3,
    "plan.probes": "[]",
    "plan.stages.0.task": "Hops",
    "tests.x.corpus": "/etc/passwd",
    "plan.frozen_until": '{"class": "learning.plan.SGD", "lr": 1}',
    "plan.at_end": '[{"file": "x.py"}]',
    "plan.trained": "W_O2",
}


@pytest.mark.parametrize("field", REFUSED)
def test_files_classes_and_nonsense_are_refused(field: str) -> None:
    with pytest.raises(EngramError, match=f"^{field}"):
        chosen("birth.joint", 0, {field: REFUSED[field]})
    assert not [name for name in settable(presets()["birth.fig4-center 1"].spec) if "corpus" in name]


def test_a_page_is_told_all_fields(page: Spoken) -> None:
    page.say("fields", id=1, preset="hops.curriculum 3")
    assert "plan.stages.2.task.k" in {field["name"] for field in page.hear("fields")["fields"]}
    assert "did you mean birth.joint" in page.ask("fields", preset="birth.jont")["error"]


def test_any_field_is_found_set_and_corrected(browsed: Page, lab: Served) -> None:
    page, seed = browsed, next(SEEDS)
    page.get_by_test_id("new-run").click()
    wait(lambda: page.get_by_test_id("preset").input_value() == "birth.joint")
    for name, value in (SMALL | {"seed": seed}).items():
        page.get_by_test_id(f"field-{name}").fill(str(value))
    fields = page.get_by_test_id("all-fields")
    fields.locator("summary").press("Enter")
    page.get_by_test_id("fields-search").fill("probe recall")
    expect(fields.locator(".entry")).to_have_count(1)
    expect(fields).to_contain_text("steps between recall probes")
    expect(fields).to_contain_text("integer ≥ 1 · default")
    page.get_by_test_id("field-plan.probe_every").fill("0")
    page.get_by_test_id("fields-search").fill("weights")
    fields.locator("summary").press("Enter")
    page.get_by_test_id("start").click()
    expect(page.get_by_test_id("field-error-plan.probe_every")).to_contain_text("must be positive")
    expect(page.get_by_test_id("field-plan.probe_every")).to_be_focused()
    page.get_by_test_id("field-plan.probe_every").fill("3")
    page.get_by_test_id("field-plan.snapshot_every").fill("6")
    expect(fields.locator("summary")).to_contain_text("2 changed")
    page.get_by_test_id("start").click()
    run = wait(lambda: f"-s{seed}-" in (found := picked(page)) and found)
    plan = Record(lab.home / run).train.plan
    assert (plan.probe_every, plan.snapshot_every) == (3, 6)
