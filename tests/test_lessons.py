"""Lessons: the dialect is read strictly, and what the shipped ones say is true of the runs that they show."""

import json
import re
from collections.abc import Callable
from math import log
from pathlib import Path
from typing import Any

import pytest

from engram.errors import EngramError
from engram.lab.lesson import Lesson, lesson, read_lesson
from engram.lab.lesson_words import KEYS, PANELS, each
from engram.lab.lessons import SHIPPED, find, shipped
from engram.records import Record
from engram.runner.execute import execute
from lab import Page, Served

Said = Callable[..., tuple[int, str, str]]
HEAD = "---\ntitle: Mine\nrun: small\npreset: birth.joint\nset: plan.steps=40\n---\n"
QUESTION = ":::choice\nWhich?\n- ( ) this\n- (x) that\n:::answer\nBecause.\n:::\n"


def body(text: str) -> list[dict[str, Any]]:
    return lesson("mine", HEAD + text).blocks


def test_what_a_lesson_can_say() -> None:
    text, items, heading, question = body(
        "A **b** and *c*,\n`d` \\* <i>e</i>.\n\n- one\n- two\n  more\n\n## Why\n\n" + QUESTION
    )
    said = [(part["text"], part.get("mark")) for part in text["words"]]
    assert said == [
        ("A ", None), ("b", "strong"), (" and ", None), ("c", "em"), (", ", None), ("d", "code"), (" ", None),
        ("*", None), (" <i>e</i>.", None),
    ]  # fmt: skip
    assert [words[0]["text"] for words in items["items"]] == ["one", "two more"]
    assert heading == {"kind": "heading", "words": [{"text": "Why"}]}
    assert (question["right"], len(question["choices"]), question["n"]) == (1, 2, 0)
    assert question["answer"][0]["words"] == [{"text": "Because."}]


def test_links_and_numbers_lead_into_a_run() -> None:
    (text,) = body("[Look](engram:step=8&matrix=W_O2), it is {recall.W_O2@8} or {small:loss@last}.")
    parts = text["words"]
    assert parts[0] == {
        "text": "Look",
        "go": {"step": 8, "matrix": "W_O2", "panel": "wall", "line": 1 + HEAD.count("\n")},
    }
    values = [part["value"] for part in parts if "value" in part]
    assert [(value["run"], value["column"], value["step"]) for value in values] == [
        (None, "recall.W_O2", 8),
        ("small", "loss", "last"),
    ]


WRONG = {
    "# Title": "begins with ## and a blank",
    "1. one": "numbered lists are not known",
    "> quoted": "quotations are not known",
    "text\n- one": "an empty line above a list",
    "- one\ntwo": "an empty line below a list",
    "```": "blocks of code are not known",
    "a *b": "* is not closed",
    "a { b": "{ is not closed",
    "{loss}": "{column@step}",
    "**a `b`**": "one mark within another",
    "![a](b.png)": "pictures are not known",
    "[a](https://example.org)": "a link leads into the run",
    "[a](javascript:alert(1))": "a link leads into the run",
    "[a](engram:stp=3)": "stp: no such key; did you mean step? allowed: run, step, panel",
    "[a](engram:panel=wal)": "no such panel; did you mean wall?",
    "[a](engram:step=-1)": "must be a step, or last",
    "[a](engram:step=1&step=2)": "a key is there twice",
    "[a](engram:panel=timeline&matrix=W_O2)": "leads to one panel",
    "[a](engram:step)": "write key=value",
    ":::quiz\n:::": "no such block",
    ":::choice\nWhich?\n- (x) this": "does not end",
    ":::choice\nWhich?\n- (x) this\n:::answer\nA.\n:::": "found 1 and 1",
    ":::choice\nWhich?\n- (x) a\n- ( ) b\n:::": "one line :::answer",
    ":::choice\n- (x) a\n- ( ) b\n:::answer\nA.\n:::": "the question is empty",
    ":::choice\nWhich?\n- (x) a\n- ( ) b\n:::answer\n:::": "the answer is empty",
    ":::number\nHow many?\n= many\n:::answer\nA.\n:::": "= 0.9 within 0.05",
}


@pytest.mark.parametrize("text", WRONG, ids=repr)
def test_what_a_lesson_cannot_say_is_told_with_its_line(text: str) -> None:
    with pytest.raises(EngramError, match=re.escape(WRONG[text])) as error:
        body(f"First.\n\n{text}\n")
    line = int(re.match(r"line (\d+): ", str(error.value))[1])  # type: ignore[index]
    first = HEAD.count("\n") + 3
    assert first <= line <= first + text.count("\n")


HEADS = {
    "no head": "line 1: a lesson begins with its head",
    "---\nrun: a\npreset: birth.joint\n---\n": "line 1: title: is missing",
    "---\ntitle: a\n---\n": "line 1: run: is missing",
    "---\ntitle: a\nauthor: me\nrun: a\npreset: birth.joint\n---\n": "line 3: author: no such line",
    "---\ntitle: a\npreset: birth.joint\nrun: a\n---\n": "line 3: preset: of which run?",
    "---\ntitle: a\nrun: A B\npreset: birth.joint\n---\n": "line 3: run: 'A B' is no name",
    "---\ntitle: a\nrun: a\npreset: birth.joint\nseed: x\n---\n": "line 3: seed: must be a whole number",
    "---\ntitle: a\nrun: a\npreset: birth.jont\n---\n": "line 3: preset: no 'birth.jont'; did you mean birth.joint?",
    "---\ntitle: a\nrun: a\npreset: birth.joint\nset: task.K=0\n---\n": "line 3: task.K",
    HEAD + "[a](engram:step=41)": "line 7: step=41: run small ends at step 40",
    HEAD + "{big:loss@1}": "line 7: run=big: no such run",
}


@pytest.mark.parametrize("text", HEADS, ids=repr)
def test_a_wrong_head_is_told_with_its_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.md"
    path.write_text(text)
    with pytest.raises(EngramError, match=re.escape(f"{path}: {HEADS[text]}")):
        read_lesson(path)


def test_a_file_that_is_no_lesson_is_refused(tmp_path: Path) -> None:
    (tmp_path / "odd.md").write_bytes(b"\xff\xfe")
    (tmp_path / "large.md").write_text(HEAD + "a\n\n" * 200_000)
    for name, why in {"odd.md": "save it as UTF-8", "large.md": "larger than", "none.md": "cannot be read"}.items():
        with pytest.raises(EngramError, match=why):
            find(str(tmp_path / name))
    with pytest.raises(EngramError, match="did you mean birth"):
        find("brith")


def test_the_command_lists_and_checks(said: Said, home: Path) -> None:
    code, out, _ = said("lesson", "--json")
    assert code == 0
    assert [one["name"] for one in json.loads(out)["lessons"]] == list(SHIPPED)
    code, out, _ = said("lesson", "birth", "--check", "--json")
    assert [run["name"] for run in json.loads(out)["runs"]] == ["joint", "frozen"]
    assert not home.exists(), "nothing was trained"


def test_the_document_says_how_to_write_one(tmp_path: Path) -> None:
    text = (Path(__file__).parent.parent / "docs/lessons.md").read_text()
    path = tmp_path / "mine.md"
    path.write_text(text.split("````\n")[1])
    assert len(read_lesson(path).blocks) == 3
    assert all(f"`{key}`" in text or f"`{key}=" in text for key in KEYS)
    assert all(panel in text for panel in PANELS)


def test_a_page_is_told_of_lessons(lab: Served, page: Page) -> None:
    page.say("lessons", id=1)
    assert [one["name"] for one in page.hear("lessons")["lessons"]] == list(SHIPPED)
    page.say("lesson", id=2, name="memory")
    assert page.hear("lesson")["runs"][0]["preset"] == "birth.fig8 3"
    assert "no '../facts' here" in page.ask("lesson", name="../facts")["error"]


# What the shipped lessons say, computed from their runs.


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Record]]:
    home = tmp_path_factory.mktemp("lessons")
    return {name: {run.name: execute(run.spec, home) for run in shipped(name).runs} for name in SHIPPED}


Read = Callable[[str, int], float]


def reader(record: Record) -> Read:
    """The value last measured up to a step, as the page shows it."""
    rows = record.rows

    def read(column: str, step: int) -> float:
        return next(row[column] for row in reversed(rows[: step + 1]) if row.get(column) is not None)

    return read


def test_every_number_of_a_shipped_lesson_is_measured(records: dict[str, dict[str, Record]]) -> None:
    for name in SHIPPED:
        known = shipped(name)
        for place in each(known.blocks, lambda part: part.get("value") or part.get("measured")):
            if isinstance(place, dict):
                record = records[name][place["run"] or known.runs[0].name]
                step = record.train.steps if place["step"] == "last" else place["step"]
                assert isinstance(reader(record)(place["column"], step), float)


def test_what_is_chosen_in_a_shipped_lesson_is_there(records: dict[str, dict[str, Record]]) -> None:
    for name in SHIPPED:
        known = shipped(name)
        for go in each(known.blocks, lambda part: part.get("go")):
            record = records[name][go.get("run") or known.runs[0].name]
            assert go.get("matrix", record.train.plan.trained[0]) in record.train.plan.trained
            wanted = go.get("step")
            assert wanted in (None, "last", 300, *record.snapshot_steps), "pictures are of that very step"


def test_the_memory_lesson_is_true(records: dict[str, dict[str, Record]]) -> None:
    wide, narrow = records["memory"]["wide"], records["memory"]["narrow"]
    assert (wide.train.task.N, wide.train.model.d, narrow.train.model.d) == (65, 128, 32)  # type: ignore[union-attr]
    assert wide.train.plan.trained == ("W_O2",)
    read, other = reader(wide), reader(narrow)
    assert read("recall.W_O2", 1) < 3 / 65, "what a guess would give"
    assert read("recall.W_O2", 8) > 0.1
    assert read("recall.W_O2", 300) > 0.93, "nearly every letter"
    assert 0.2 < other("recall.W_O2", 300) < 0.5, "about a third"
    assert read("accuracy.in_context", 300) < 0.5, "only in part"
    assert read("attention.induction", 300) < 0.2, "nothing tells it where to look"


def test_the_birth_lesson_is_true(records: dict[str, dict[str, Record]]) -> None:
    read, frozen = (reader(records["birth"][name]) for name in ("joint", "frozen"))
    assert records["birth"]["frozen"].train.plan.frozen_until == {"W_K1": 300}
    assert round(log(65), 2) == 4.17
    assert read("recall.W_O2", 64) > 0.5 > 1.3 * max(read("recall.W_K2", 64), read("recall.W_K1.t<64", 64))
    assert 0.2 < read("accuracy.in_context", 64) < 0.5, "half a circuit"
    assert read("attention.induction", 256) > 0.75
    assert read("loss", 256) < 0.3 * read("loss", 64)
    assert frozen("accuracy.in_context", 300) < 0.65 < 0.85 < read("accuracy.in_context", 300)
    assert frozen("recall.W_O2", 300) > 0.9
    assert frozen("recall.W_K2", 300) < 0.5
    assert frozen("accuracy.in_context", 400) > 0.8


def test_the_facts_lesson_is_true(records: dict[str, dict[str, Record]]) -> None:
    record = records["facts"]["facts"]
    task, read = record.train.task, reader(record)
    assert (task.S, task.R, task.D, task.answers) == (16, 4, 8, 32)  # type: ignore[attr-defined]
    assert (round(log(32), 2), round(log(8), 2)) == (3.47, 2.08)
    assert read("all.accuracy", 400) > 0.4 > 10 * read("all.mass.right", 400), "tiny differences"
    assert abs(read("loss", 1024) - log(32)) < 0.02
    assert abs(read("loss", 2560) - log(8)) < 0.05
    assert abs(read("all.mass.right", 2560) - 1 / 8) < 0.01
    assert read("all.accuracy", 2560) < 0.2, "most are wrong"
    assert read("all.mass.right", 2560) + read("all.mass.relation", 2560) > 0.95, "sure of the relation"
    assert read("all.accuracy", 4096) == read("all.accuracy", 5120) == 1


def answers_of(known: Lesson) -> list[float]:
    return [b["number"]["value"] for b in known.blocks if "value" in b.get("number", {})]


def test_no_other_number_stands_in_a_shipped_lesson(records: dict[str, dict[str, Record]]) -> None:
    """Literal ones are steps, sizes and logarithms, which the tests above compute; all else is read from the run."""
    allowed = {
        "memory": {"65", "128", "32", "8", "64", "0", "1"},
        "birth": {"0", "65", "4.17", "64", "128", "256", "300", "400", "1", "2"},
        "facts": {"64", "16", "4", "8", "32", "1024", "3.47", "2560", "2.08", "5120"},
    }
    for name in SHIPPED:
        texts = each(shipped(name).blocks, lambda part: part.get("text"))
        found = {
            n for text in texts for n in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w])", re.sub(r"W_\w+", "", str(text)))
        }
        assert found <= allowed[name], name
    assert answers_of(shipped("facts")) == [2.08]
