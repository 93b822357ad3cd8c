"""Runs can be told apart: what each was made for, what was set, when, how long, with which outcome; tags and a note."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engram.claims.readings import birth
from engram.cli.run_table import fitted
from engram.errors import EngramError
from engram.records import Record, about
from engram.records.about import About, Purpose
from engram.records.audit import refuse_damaged
from engram.records.choosing import chosen, in_order
from engram.records.faces import Face, births, face_of, faces, short_names, words_of
from engram.runner.execute import execute
from engram.specs import Train

Tiny = Callable[..., Train]
Said = Callable[..., tuple[int, str, str]]
SMOKE = ("run", "birth.joint", "--scale", "smoke")


def answer(said: Said, *words: str) -> dict[str, Any]:
    code, out, err = said(*words, "--json")
    assert code == 0, err
    return json.loads(out)


def test_a_run_knows_what_it_was_made_for(home: Path, said: Said) -> None:
    answer(said, *SMOKE)
    answer(said, *SMOKE, "--set", "task.K=3")
    plain, other = answer(said, "runs", "ls")["runs"]
    assert (plain["made_for"], plain["label"], plain["differs"]) == ("birth.joint, smoke", "joint", {})
    assert other["differs"] == {"task.K": 3}
    assert other["words"] == "birth.joint, smoke · joint · K=3 · seed 0"
    assert other["fields"]["task.K"] == 3
    assert set(other["final"]) >= {"loss", "accuracy.in_context", "recall.W_O2"}
    assert other["seconds"] > 0
    assert abs((datetime.fromisoformat(other["began"]) - datetime.now(UTC)).total_seconds()) < 300
    assert [run["run"] for run in answer(said, "runs", "ls", "--where", "K=3")["runs"]] == [other["run"]]
    code, out, _ = said("runs", "ls")
    assert code == 0
    assert "K=3" in out
    assert "birth.joint" in out


def test_a_run_for_several_experiments_says_the_first(tiny: Tiny, home: Path) -> None:
    folder = execute(tiny(), home).folder
    for name in ("one", "two", "one"):
        about.change(folder, lambda was, name=name: was.with_purpose(Purpose(experiment=name)))
    assert [purpose.experiment for purpose in Record(folder).about.made_for] == ["one", "two"]
    assert face_of(Record(folder)).made_for == "one"


def test_of_a_run_that_nobody_made_for_anything_the_settings_are_said(tiny: Tiny, home: Path) -> None:
    record = execute(tiny(), home)
    face = face_of(record)
    assert face.made_for == ""
    assert face.differs["task.K"] == 3
    assert "seed" not in face.differs
    assert words_of(record).startswith("bigram-simplified · K=3, T=24, d=16")
    assert words_of(record).endswith("seed 0")


def test_what_is_said_about_a_run_changes_neither_its_digest_nor_its_name(tiny: Tiny, home: Path, said: Said) -> None:
    folder = execute(tiny(), home).folder
    before = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    assert answer(said, "runs", "tag", folder.name, "good", "K3", "good")["tags"] == ["good", "K3"]
    assert answer(said, "runs", "tag", "last", "K3", "--remove")["tags"] == ["good"]
    assert answer(said, "runs", "note", "last", "a", "first", "look")["note"] == "a first look"
    assert {name: (folder / name).read_bytes() for name in before} == before
    refuse_damaged(Record(folder))
    (face,) = faces(home)
    assert (list(face.tags), face.note) == (["good"], "a first look")
    assert faces(home) == [face], "what is remembered is the same"
    assert answer(said, "runs", "ls", "--tag", "other")["runs"] == []
    assert answer(said, "runs", "ls", "--tag", "good")["runs"][0]["note"] == "a first look"


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"tags": 3}', b'{"made_for": [{}]}', b"\xff"])
def test_a_damaged_about_is_named_and_takes_nothing_down(tiny: Tiny, home: Path, content: bytes) -> None:
    record = execute(tiny(), home)
    (record.folder / about.NAME).write_bytes(content)
    (face,) = faces(home)
    assert face.state == "finished"
    assert "about.json is unreadable" in face.note
    with pytest.raises(EngramError, match="remove this file or mend it"):
        refuse_damaged(Record(record.folder))


@pytest.mark.parametrize("words", [("tag", ""), ("tag",), ("tag", "x" * 101), ("note", "x" * 10_001)])
def test_what_could_not_be_read_back_is_not_written(tiny: Tiny, home: Path, said: Said, words: tuple[str, ...]) -> None:
    record = execute(tiny(), home)
    code, _, err = said("runs", words[0], record.id, *words[1:])
    assert code == 2
    assert "tag" in err or "note" in err
    assert record.about == About()


def test_births_and_stored_steps_are_shown(tiny: Tiny, home: Path, said: Said) -> None:
    record = execute(tiny(steps=12), home)
    shown = answer(said, "runs", "show", record.id)
    assert shown["stored_steps"] == [0, 1, 2, 4, 8, 12]
    assert shown["about"]["differs"]["plan.steps"] == 12
    assert shown["births"]["recall.W_O2"] == {"0.5": None, "0.9": None}
    assert births(record)["recall.W_O2"][0.5] == birth(record, "recall.W_O2", 0.5)
    code, out, _ = said("runs", "show", record.id)
    assert code == 0
    assert "stored at 6 steps: 0, 1, 2, 4, 8, 12" in out


FACES = [
    Face(
        "a-s0-11110000aa",
        "finished",
        seed=0,
        began="2026-11-18T08:00:00+00:00",
        fields={"task.K": 5, "task.corpus": "shakespeare"},
        final={"loss": 0.5},
    ),
    Face("b-s1-11112222bb", "part-done", seed=1, fields={"task.K": 3, "tests.x.K": 5}, final={"loss": 2.0}),
    Face("c-s2-33330000cc", "finished", seed=2, fields={"model.d": 16}, tags=["good"]),
]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (["K=5"], "ab"),
        (["task.K=5"], "a"),
        (["K!=5"], "b"),
        (["loss<1"], "a"),
        (["loss>=0.5", "state=part-done"], "b"),
        (["corpus=shakespeare"], "a"),
        (["seed>0"], "bc"),
        (["began>2026-11-17", "began<2026-11-19"], "a"),
    ],
)
def test_conditions(where: list[str], found: str) -> None:
    assert "".join(face.run[0] for face in chosen(FACES, where, [])) == found


def test_order_tags_and_mistakes() -> None:
    assert [face.run[0] for face in in_order(FACES, "loss")] == ["c", "a", "b"]
    assert [face.run[0] for face in in_order(FACES, "state")] == ["a", "c", "b"]
    assert in_order(FACES, None) == FACES
    assert [face.run[0] for face in chosen(FACES, [], ["good"])] == ["c"]
    with pytest.raises(EngramError, match=r"--where losss: no run has it; did you mean loss\?"):
        chosen(FACES, ["losss=1"], [])
    with pytest.raises(
        EngramError, match=r"--sort speed: no run has it; .*allowed: K, began, corpus, d, label, loss, "
    ):
        in_order(FACES, "speed")
    with pytest.raises(EngramError, match=r"--where 'loss<abc': loss is a number, such as 0\.5; got 'abc'"):
        chosen(FACES, ["loss<abc"], [])
    with pytest.raises(EngramError, match="--where 'corpus<3': corpus is a word, such as 'shakespeare'"):
        chosen(FACES, ["corpus<3"], [])


@pytest.mark.parametrize("nonsense", ["K", "K=", "K= ", "loss<<3", "K==3", "K=>3", "=3", "", "K!3"])
def test_a_condition_that_is_none_is_an_error(nonsense: str, home: Path, said: Said) -> None:
    """Also where there is no run yet."""
    code, _, err = said("runs", "ls", "--where", nonsense)
    forms = "write NAME, a sign (=, !=, <, >, <= or >=; ~: contains) and a value, as in --where K=5"
    assert (code, forms in err) == (2, True)


@pytest.mark.parametrize("width", [80, 100, 140])
def test_a_list_of_runs_fits_its_terminal(width: int, home: Path, said: Said, monkeypatch: Any) -> None:
    """A line for each run: nothing is broken, and its name can be copied."""
    faces = [
        replace(face, made_for="birth.fig3, quick", label="W_K1, W_K2 frozen", seconds=9.0, note="a long note " * 9)
        for face in FACES
    ]
    monkeypatch.setattr("engram.records.faces.faces", lambda home: faces)
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, _ = said("runs", "ls")
    head, *lines = out.splitlines()
    left_out = lines.pop() if width < 140 else ""
    assert code == 0
    assert [line.split()[0] for line in lines] == ["11110", "11112", "3333"]
    assert max(map(len, (head, *lines))) <= width
    assert {"run", "seed", "state"} <= set(head.split())  # they tell runs apart
    assert left_out.startswith("not shown for want of space: took") == (width < 140)
    monkeypatch.delenv("COLUMNS")
    assert "took" in said("runs", "ls")[1].splitlines()[0]  # a file has room for everything


def test_a_list_without_runs_says_so(home: Path, said: Said, monkeypatch: Any) -> None:
    assert "no runs in" in said("runs", "ls")[1]
    monkeypatch.setattr("engram.records.faces.faces", lambda home: FACES)
    assert said("runs", "ls", "--where", "K=7")[1] == "none of 3 runs matches\n"


def test_a_short_name_leads_to_its_run_only() -> None:
    ids = [face.run for face in FACES]
    assert short_names(ids) == {ids[0]: "11110", ids[1]: "11112", ids[2]: "3333"}
    assert short_names(["nonsense.zip"])["nonsense.zip"] == "nonsense.zip"


def test_faces_are_read_again_only_where_something_changed(tiny: Tiny, home: Path, monkeypatch: Any) -> None:
    folders = [execute(tiny(seed), home).folder for seed in (0, 1)]
    before = faces(home)
    shutil.rmtree(folders[1])
    monkeypatch.setattr("engram.records.faces._made", None)
    assert faces(home) == [face for face in before if face.run == folders[0].name]


def test_what_was_set_is_told_to_the_last() -> None:
    """At 80 columns the runs of a sweep must still differ: by what was set."""
    made = {"made for": "birth.joint, quick · joint", "final": "accuracy 0.99, loss 0.12", "began": "11-18 20:00"}
    rows = [
        {"run": f"ab{i}", "settings": f"lr=0.{i}, d=16", "state": "finished", "took": "12 s"} | made for i in (1, 2)
    ]
    shown, left_out = fitted(rows, 40)
    assert [row["settings"] for row in shown] == ["lr=0.1, d=16", "lr=0.2, d=16"]
    assert "made for" in left_out
    assert len({tuple(row.values()) for row in shown}) == 2


@pytest.mark.parametrize(
    ("final", "told"),
    [
        ({"loss": 1.0, "accuracy.hop1": 0.5, "accuracy.hop2": 0.2}, {"accuracy.hop1": 0.5, "loss": 1.0}),
        ({"loss": 1.0, "all.accuracy": 0.5, "accuracy.x": 0.2}, {"all.accuracy": 0.5, "loss": 1.0}),
        ({"loss": 1.0, "test.all.accuracy.hop1": 0.5}, {"test.all.accuracy.hop1": 0.5, "loss": 1.0}),
        ({"error": 1.0, "a": 2.0, "b": 3.0}, {"error": 1.0, "a": 2.0}),
    ],
)
def test_an_accuracy_is_told_of_any_group(final: dict[str, float], told: dict[str, float]) -> None:
    assert Face("a", "finished", final=final).headline == told
