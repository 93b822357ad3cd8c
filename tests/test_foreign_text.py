"""Names and values that others wrote reach the terminal and figures as what they are: they command neither."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import matplotlib.figure
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from engram.cli.main import main
from engram.cli.output import answer, only_the_answer_on_stdout, say, tell
from engram.facts.learn import spec_of_file
from engram.models.factual import Factual
from engram.records.table import Table
from engram.runner.execute import execute
from engram.show.curves import birth_curves, curves
from engram.show.facts import one_fact
from engram.show.gallery import gallery
from engram.show.literal import literal, plain
from engram.show.panels import finished, panels
from engram.show.save import image_bytes, save_figure
from engram.show.subtitles import headline
from engram.show.tables import print_claims, print_rows
from engram.show.terminal import View
from engram.specs import Train
from engram.text import printable, printable_json

EVIL = "a\x1b]0;title\x07\x1b[2J\x7f\x9b31m\u202e\u2066\nb\r\x85\u2028[red]c[/red][link=file:///]d"
SHOWN = r"a\x1b]0;title\x07\x1b[2J\x7f\x9b31m\u202e\u2066\x0ab\x0d\x85\u2028[red]c[/red][link=file:///]d"
HARMFUL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
Capture = pytest.CaptureFixture[str]


def engram(capsys: Capture, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(list(words))
    out, err = capsys.readouterr()
    assert not HARMFUL.search(out + err)
    return int(stop.value.code or 0), out, err


@given(st.text())
def test_text_loses_what_acts_and_nothing_else(text: str) -> None:
    shown = printable(text)
    assert not HARMFUL.search(shown)
    assert "\n" not in shown
    assert printable(shown) == shown
    if not HARMFUL.search(text) and "\n" not in text:
        assert shown == text
    data = json.dumps({text: [text]}, ensure_ascii=False)
    assert json.loads(printable_json(data)) == {text: [text]}
    assert not HARMFUL.search(printable_json(data))


def test_text_is_shown_with_its_codes() -> None:
    assert printable(EVIL) == SHOWN
    assert printable("ä → W_K1 ᵀ 👩‍🔬 \\x1b") == "ä → W_K1 ᵀ 👩‍🔬 \\x1b"


def test_all_ways_out_of_a_command(capsys: Capture) -> None:
    say(EVIL)
    tell(EVIL, "ü")
    out, err = capsys.readouterr()
    assert err == f"{SHOWN}\n"
    assert out == f"{SHOWN}\nü\n"
    with only_the_answer_on_stdout([]):
        answer({EVIL: [EVIL, "\udc80"]})
    out = capsys.readouterr().out
    assert not HARMFUL.search(out)
    assert out.count("\n") == 1
    assert json.loads(out) == {EVIL: [EVIL, "\udc80"]}


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=400, highlight=False, color_system="standard")


def written(console: Console) -> str:
    """What a terminal gets, without the colours that are Engram's own."""
    assert isinstance(console.file, io.StringIO)
    text = re.sub("\x1b\\[[0-9;]*m", "", console.file.getvalue())
    assert not HARMFUL.search(text)
    assert SHOWN in text
    return text


def test_tables_show_cells_titles_and_claims_as_text() -> None:
    console = terminal()
    print_rows(console, [{EVIL: EVIL}])
    assert len(written(console).splitlines()) == 2
    measure = {"name": EVIL, "verdict": "agrees", "predicted": None, "measured": None, "interval": None, "n": 1}
    claim = {"id": EVIL, "statement": EVIL, "scale": EVIL, "n": 1, "stale": False, "diverged": [], "settings": None}
    claim |= {"status": EVIL, "why_missing": EVIL}
    measure |= {"method": "t over seeds", "counts": "seeds", "note": EVIL}
    console = terminal()
    print_claims(console, [claim | {"verdict": "agrees", "measures": [measure]}])
    assert len(written(console).splitlines()) == 5


def test_the_view_of_a_run_shows_names_of_columns_as_text(tiny: Callable[..., Train], capsys: Capture) -> None:
    spec, column = tiny(steps=2), f"recall.{EVIL}"
    console = terminal()
    with View([spec], console) as on_row:
        on_row(spec, {"step": 1, column: 0.7, f"accuracy.{EVIL}": 0.5})
        assert not HARMFUL.search(re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", _drawn(console)))
    assert SHOWN in _drawn(console)
    with View([spec], Console(file=io.StringIO(), force_terminal=False, width=400)) as on_row:
        on_row(spec, {"step": 2, f"accuracy.{EVIL}": 0.5})
    told = capsys.readouterr().err
    assert not HARMFUL.search(told)
    assert told.count("\n") == 1


def _drawn(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().replace("\r", "")


def facts_file(folder: Path, rows: list[tuple[str, str, str]]) -> Path:
    with (folder / "facts.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("subject", "relation", "answer"), *rows])
    return folder / "facts.csv"


NAME, NAME_SHOWN = "a\x1b[2J\u202e[red] b$z$", r"a\x1b[2J\u202e[red] b$z$"  # short enough for an axis
DOLLARS = ("$\\frac{1}{", "a$b$c", "_hidden", "\\$x$")


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A short training on facts with names that would act; its record."""
    rows = [(NAME, "rel$\\alpha$", "x$_1$"), *((name, "rel$\\alpha$", f"{name}!") for name in DOLLARS)]
    folder = tmp_path_factory.mktemp("facts")
    spec = spec_of_file(facts_file(folder, rows), steps=2)
    model = Factual(d=8, heads=1, d_h=4, m=8, answers=spec.model.answers)  # type: ignore[attr-defined]
    plan = spec.plan.model_copy(update={"batch": 4, "trained": model.trainable})
    return execute(spec.model_copy(update={"model": model, "plan": plan}), folder / "runs")


def test_names_of_facts_reach_the_terminal_as_text(
    learned: Any, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("ENGRAM_HOME", str(learned.folder.parent))
    relation = "rel$\\alpha$"
    assert NAME_SHOWN in engram(capsys, "fact", "see", learned.id, NAME, relation)[1]
    code, _, err = engram(capsys, "fact", "see", learned.id, "nobody", relation)
    assert code == 2
    assert r"a\x1b[2J\u202e[red] b$z$" in err
    assert err.count("\n") == 1
    code, _, err = engram(capsys, "fact", "edit", learned.id, NAME, relation, EVIL)
    assert code == 2
    assert "\\x1b" in err
    assert not HARMFUL.search(err)
    assert "x1b" in engram(capsys, "runs", "show", learned.id)[1]
    spec = json.loads(engram(capsys, "runs", "show", learned.id, "--json")[1])["spec"]
    assert [fact[0] for fact in spec["task"]["facts"]] == [NAME, *DOLLARS], "JSON keeps the text itself"


def test_a_file_of_facts_that_is_wrong_is_quoted_as_text(home: Path, tmp_path: Path, capsys: Capture) -> None:
    file = facts_file(tmp_path, [(EVIL, "r", "a"), (EVIL, "r", "b")])
    code, _, err = engram(capsys, "fact", "learn", str(file))
    assert code == 2
    assert err.count("\n") == 3  # two mistakes, and how many there are
    assert "\\x1b" in err
    assert not HARMFUL.search(err)


def test_names_in_a_home_reach_the_terminal_as_text(home: Path, capsys: Capture) -> None:
    folder = home / "run\x1b[2J\u202e[red]x"
    folder.mkdir(parents=True)
    (folder / "spec.json").write_text(json.dumps({"kind": EVIL, EVIL: 1}))
    (home / "bundle\x9b\n.zip").write_text("no zip")
    for words in (["runs", "ls"], ["runs", "ls", "--json"], ["runs", "show", "run"]):
        engram(capsys, *words)
    assert r"run\x1b[2J\u202e[red]x" in engram(capsys, "runs", "ls")[1]
    assert engram(capsys, "runs", "diff", "run", "\x1b[2J")[0] == 2


def drawn(figure: matplotlib.figure.Figure) -> list[str]:
    """Every text of a figure as it is drawn; no formula among them. The SVG must be one."""
    root = ElementTree.fromstring(image_bytes(figure, "svg"))
    return ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("name", [*DOLLARS, EVIL, "$$", "$", "\\", "100 %"])
def test_any_name_can_be_drawn(name: str, tmp_path: Path) -> None:
    ax = panels(4, 3)
    ax.plot([0, 1], [0, 1], label=literal(name))
    ax.set_title(literal(name), loc="left")
    ax.set_xlabel(literal(name))
    ax.set_xticks([0], [literal(name)])
    figure = headline(finished(ax), name)
    texts = [text.strip("\u200b") for text in drawn(figure)]
    in_one_line = "\n" not in name  # a headline is folded
    assert texts.count(printable(name)) == 4 + in_one_line, "title, axis, tick, legend and headline"
    panel = json.loads(save_figure(figure, tmp_path, "a")[-1].read_text())["panels"][0]
    assert panel["title"] == panel["x"] == panel["lines"][0]["label"] == printable(name) == plain(literal(name))


def test_figures_of_facts_show_names_as_they_are(learned: Any) -> None:
    chance = SimpleNamespace(relation=0.5, right=0.1)
    belief: Any = SimpleNamespace(right=0.2, relation=0.3, rest=0.5, chance=chance)
    title = "($\\frac{1}{, a$b$c) → _x"
    assert title in drawn(one_fact([(0, belief), (1, belief)], title))
    texts = {text.strip("\u200b") for picture in gallery(learned) for text in drawn(picture.figure)}
    assert {*DOLLARS, NAME_SHOWN} <= texts, "marks of the maps of memories"


def test_names_of_columns_are_drawn_as_they_are(home: Path, tiny: Callable[..., Train]) -> None:
    record = execute(tiny(steps=2), home)
    table = Table()
    odd = {"_own.$\\frac{1}{": 0.5, "recall._x$y$": 0.1}
    table.add([json.dumps(row | odd).encode() for row in record.rows])
    record.__dict__["table"] = table
    for figure in (birth_curves([record]), curves([record])):
        assert "_x$y$" in [text.strip("\u200b") for text in drawn(figure)]
