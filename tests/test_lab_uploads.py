"""Data that a page sends: checked, stored in the record, and shown as text whatever it is called."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Browsed

from engram.lab.protocol import LARGEST
from engram.lab.upload_messages import MOST_UPLOAD
from engram.records import Record
from engram.tasks import corpus
from lab import SEEDS, SMALL, Page, Served
from pages import opened, picked, wait

TEXT = "abracadabra, said the wizard, and nothing happened\n"
FACTS = "subject,relation,answer\n" + "".join(
    f"{s},{r},{r}-{i % 2}\n" for i, s in enumerate(("<b>Ann</b>", "Bob", "Cyd", "Dan")) for r in ("likes", "has")
)


@pytest.fixture
def browsed(browser: Browser, lab: Served) -> Iterator[Browsed]:
    with opened(browser, lab.url) as page:
        yield page


def test_a_text_becomes_the_corpus_and_stands_in_the_record(page: Page, lab: Served) -> None:
    seed = next(SEEDS)
    told = page.ask(
        "upload", kind="text", name="../my <b>.txt", content=TEXT, preset="birth.joint", seed=seed, settings=SMALL
    )
    assert told["ok"], told
    page.finish(told["run"])
    corpus._known.clear()  # nothing but the record knows the text
    task = Record(lab.home / told["run"]).train.task
    assert task.alphabet == "".join(sorted(set(TEXT)))  # type: ignore[attr-defined]
    assert task.corpus.path == "my b.txt"  # type: ignore[attr-defined]
    assert len(list((lab.home / told["run"] / "texts").iterdir())) == 1


def test_a_table_of_facts_is_learned(page: Page, lab: Served) -> None:
    told = page.ask(
        "upload", kind="facts", name="mine.csv", content=FACTS, seed=next(SEEDS), settings={"steps": 4, "width": 16}
    )
    assert told["ok"], told
    page.finish(told["run"])
    spec = Record(lab.home / told["run"]).train
    assert len(spec.task.facts) == 8  # type: ignore[attr-defined]
    assert (spec.steps, spec.model.d) == (4, 16)  # type: ignore[union-attr]
    headless = FACTS.split("\n", 1)[1]
    told = page.ask("upload", kind="facts", name="mine.csv", content=headless, settings={"steps": 3, "width": 16})
    assert "it has no header" in told["note"]


WRONG = {
    "one letter": ({"content": "aaaa"}, "has only one letter"),
    "zero bytes": ({"content": "a\0b"}, "zero bytes"),
    "half a pair": ({"content": "ab\ud800"}, "refused|not UTF-8"),
    "another preset": ({"preset": "facts.stages-linear"}, "takes no text"),
    "a field of it": ({"settings": {"task.K": 0}}, "task.K: must be positive"),
    "no table": ({"kind": "facts", "content": "a,b\n1,2\n"}, "content: my.txt"),
    "a wrong line": ({"kind": "facts", "content": FACTS + "Eve,likes\n"}, r"line 10 \(Eve, likes\)"),
    "a wrong size": ({"kind": "facts", "content": FACTS, "settings": {"steps": "x"}}, "steps: must be a whole number"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_file_is_said(name: str, page: Page, lab: Served) -> None:
    fields, why = WRONG[name]
    before = len(list(lab.home.iterdir()))
    page.say("upload", id=7, **{"kind": "text", "name": "my.txt", "content": TEXT, "preset": "birth.joint"} | fields)
    told = page.hear_any()
    while told["t"] not in ("answer", "error"):
        told = page.hear_any()
    assert re.search(why, told.get("error") or told.get("message") or ""), told
    assert "engram-upload" not in str(told)
    assert len(list(lab.home.iterdir())) == before, "no record has begun"


LARGE = {"t": "upload", "id": 1, "kind": "text", "name": "x", "content": "é" * (MOST_UPLOAD // 2 + 1)}


def test_only_a_file_may_be_large(page: Page) -> None:
    page.say("runs", more="x" * LARGEST)
    assert "refused" in page.hear("error")["message"]
    page.say("tokens", id=1, run="x", text="x" * LARGEST)
    assert "refused" in page.hear("error")["message"]
    page.ws.send(json.dumps(LARGE, ensure_ascii=False))
    assert "at most 1,048,576 are taken" in page.hear("answer")["error"]


def test_a_file_is_chosen_in_the_form(browsed: Browsed, lab: Served, tmp_path: Path) -> None:
    """HTML in its name and in its cells is shown as text."""
    page, seed, table = browsed, next(SEEDS), tmp_path / "my <u>facts</u>.csv".replace("/", "_")
    table.write_text(FACTS)
    page.get_by_test_id("new-run").click()
    wait(lambda: page.get_by_test_id("preset").input_value() == "birth.joint")
    page.get_by_test_id("upload").locator("summary").press("Enter")
    (tmp_path / "odd.txt").write_bytes(b"\xff\xfea")
    page.get_by_test_id("upload-file").set_input_files(tmp_path / "odd.txt")
    expect(page.get_by_test_id("upload-error")).to_contain_text("not UTF-8")
    (tmp_path / "large.txt").write_bytes(b"ab" * MOST_UPLOAD)
    page.get_by_test_id("upload-file").set_input_files(tmp_path / "large.txt")
    expect(page.get_by_test_id("upload-error")).to_contain_text("at most 1 MB")
    page.get_by_test_id("upload-file").set_input_files(table)
    expect(page.get_by_test_id("upload-told")).to_contain_text("<u>facts")
    page.get_by_test_id("field-steps").fill("6")
    page.get_by_test_id("field-width").fill("16")
    page.get_by_test_id("field-seed").fill(str(seed))
    page.get_by_test_id("start").click()
    run = wait(lambda: f"-s{seed}-" in (found := picked(page)) and found)
    expect(page.get_by_test_id("facts")).to_contain_text("<b>Ann</b>")
    assert page.locator(".facts b:text('Ann'), u").count() == 0
    assert Record(lab.home / run).train.steps == 6


def test_a_text_in_the_form_belongs_to_the_preset(browsed: Browsed, lab: Served, tmp_path: Path) -> None:
    page, seed, text = browsed, next(SEEDS), tmp_path / "mine.txt"
    text.write_text(TEXT)
    page.get_by_test_id("new-run").click()
    wait(lambda: page.get_by_test_id("preset").input_value() == "birth.joint")
    page.get_by_test_id("upload").locator("summary").press("Enter")
    page.get_by_test_id("upload-file").set_input_files(text)
    for name, value in (SMALL | {"seed": seed}).items():
        page.get_by_test_id(f"field-{name}").fill(str(value))
    page.get_by_test_id("preset").select_option("facts.stages-linear")
    expect(page.get_by_test_id("upload-told")).to_contain_text("takes no text")
    expect(page.get_by_test_id("start")).to_be_disabled()
    page.get_by_test_id("preset").select_option("birth.joint")
    for name, value in (SMALL | {"seed": seed}).items():
        page.get_by_test_id(f"field-{name}").fill(str(value))
    page.get_by_test_id("start").click()
    run = wait(lambda: f"-s{seed}-" in (found := picked(page)) and found)
    expect(page.get_by_test_id("settings")).to_contain_text("mine.txt")
    assert len(set(TEXT)) == Record(lab.home / run).train.task.N
