"""The pages of docs/theory say what code and ledger say: blocks run, links lead somewhere, numbers are measured.

How a page writes what is checked here:

    **0.027** (`memory.hebb-constant`)      a measured value, or an end of its interval, of this claim
    `memory.hebb-constant` **agrees**       its verdict
    [`theory.capacity.hebb_capacity`](…)    a function of engram, linked to the file that defines it
    `engram show memory.margin`             an experiment

A number with a decimal point stands in one of these forms, in a formula, or in code.
"""

import doctest
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from engram import experiments
from engram.cli.decided import decided
from engram.cli.sources import functions
from engram.records.files import COMMITTED
from engram.show.theorem_table import PAGES, markdown

Said = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parent.parent
THEORY = ROOT / "docs/theory"
NAMES = tuple(PAGES)
CODE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$\n]+\$", re.DOTALL)
LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
NUMBER = re.compile(r"\*\*(−?[\d.]+)\*\*\s+\(`([\w.-]+)`\)")
VERDICT = re.compile(r"`([\w.-]+)`\s+\*\*(\w+)\*\*")
ID = re.compile(r"(?<!\[)`((?:birth|context|facts|hops|memory|real|scaling|theory)\.[\w-]+)`")


def text(name: str) -> str:
    return (THEORY / f"{name}.md").read_text(encoding="utf-8")


def prose(name: str) -> str:
    """The page without its blocks of code."""
    return CODE.sub("", text(name))


@pytest.fixture(scope="module")
def ledger() -> dict[str, dict[str, Any]]:
    return {claim["id"]: claim for claim in decided((), [COMMITTED]).claims}


def numbers_of(claim: dict[str, Any]) -> list[float]:
    """What was measured for a claim, and the ends of its intervals."""
    return [x for m in claim["measures"] for x in (m["measured"], *(m["interval"] or ())) if x is not None]


def test_every_theme_has_a_page_and_every_page_a_theme() -> None:
    assert {path.stem for path in THEORY.glob("*.md")} == {*NAMES, "index"}


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_what_every_page_has(name: str) -> None:
    lines = text(name).splitlines()
    assert 60 <= len(lines) <= 150
    assert max(len(line) for line in lines if not line.startswith("![")) <= 125
    for heading in (
        "In words",
        "The formula",
        "The function",
        "The figure",
        "What was found",
        "Errata and open questions",
    ):
        assert f"## {heading}" in lines, heading
    assert "$$" in prose(name)
    assert re.search(r"!\[[^\]]+\]\(\.\./findings/\S+\.webp\)|`engram show ", prose(name))


@pytest.mark.parametrize("name", NAMES)
def test_its_sessions_run(name: str) -> None:
    assert 3 <= len(re.findall(r"^(?:>>>|\.\.\.) ", text(name), re.MULTILINE)) <= 12
    found = doctest.testfile(str(THEORY / f"{name}.md"), module_relative=False, encoding="utf-8")
    assert (found.failed, found.attempted > 0) == (0, True)


@pytest.mark.parametrize("name", NAMES)
def test_its_links_lead_somewhere(name: str) -> None:
    links = LINK.findall(prose(name))
    assert links
    for words, target in links:
        path, _, anchor = target.partition("#")
        file = (THEORY / path).resolve()
        assert file.is_file() or (file.is_dir() and file.is_relative_to(ROOT)), target
        assert not anchor or f'<a id="{anchor}">' in file.read_text(encoding="utf-8"), target
        if path.endswith(".py"):
            assert words.startswith("`"), f"{target}: its text is the name of the function, in backticks"
            assert_defines(words.strip("`"), file)


def assert_defines(dotted: str, file: Path) -> None:
    """`room.module.name`, or more behind it, is in this file."""
    room, module, *inside = dotted.split(".")
    found: Any = import_module(f"engram.{room}.{module}")
    assert file == Path(found.__file__).resolve(), dotted
    for part in inside:
        found = getattr(found, part)


@pytest.mark.parametrize("name", NAMES)
def test_its_claims_and_experiments_exist(name: str, ledger: dict[str, dict[str, Any]]) -> None:
    known = {*ledger, *experiments.names()}
    named = ID.findall(prose(name))
    assert named
    assert set(named) <= known, set(named) - known
    shown = re.findall(r"engram (?:show|run) ([\w.-]+)", text(name))
    assert set(shown) <= set(experiments.names())


@pytest.mark.parametrize("name", NAMES)
def test_its_numbers_and_verdicts_are_those_of_the_ledger(name: str, ledger: dict[str, dict[str, Any]]) -> None:
    numbers = NUMBER.findall(prose(name))
    assert numbers
    for number, id in numbers:
        digits = len(number.partition(".")[2])
        known = {f"{x:.{digits}f}".replace("-", "−") for x in numbers_of(ledger[id])}
        assert number in known, f"{id}: {number} is none of {sorted(known)}"
    verdicts = VERDICT.findall(prose(name))
    assert verdicts
    for id, verdict in verdicts:
        assert ledger[id]["verdict"] == verdict, id


@pytest.mark.parametrize("name", NAMES)
def test_no_number_is_typed_that_nothing_checks(name: str) -> None:
    bare = prose(name)
    for checked in (FORMULA, NUMBER, LINK, re.compile(r"`[^`]+`")):
        bare = checked.sub("", bare)
    assert re.findall(r".*\d\.\d.*", bare) == []


@pytest.mark.parametrize("name", NAMES)
def test_its_formulas_are_read_alike_by_a_code_host_and_by_sphinx(name: str) -> None:
    """A backslash before punctuation is an escape to Markdown; and every formula ends."""
    bare = re.sub(r"`[^`]+`", "", prose(name))
    formulas = FORMULA.findall(bare)
    assert formulas
    assert "$" not in FORMULA.sub("", bare)
    for formula in formulas:
        assert not re.search(r"\\[^A-Za-z\s]", formula), formula
        assert not re.search(r"[<>*]", formula), formula
        assert formula.count("{") == formula.count("}"), formula


@pytest.mark.parametrize("name", NAMES)
def test_no_emphasis_begins_inside_of_a_formula(name: str) -> None:
    """Where a formula is not known to a reader of Markdown, at least its letters all stand there."""
    for formula in FORMULA.findall(MarkdownIt("commonmark").render(prose(name))):
        assert "<em>" not in formula
        assert "</em>" not in formula


def test_the_table_is_refused_in_other_forms(said: Said) -> None:
    for other in ("--markdown", "--json"):
        code, _, error = said("ledger", "--sources", other)
        assert code == 2
        assert "choose one" in error


def test_the_table_of_sources_is_what_the_ledger_says() -> None:
    """Else run `engram ledger --sources > docs/theory/index.md`."""
    assert text("index") == markdown(decided((), [COMMITTED]).claims, functions())


def test_the_table_has_every_claim_once_and_links_to_what_runs(ledger: dict[str, dict[str, Any]]) -> None:
    rows = [line.split(" | ") for line in text("index").splitlines() if line.startswith("| ") and "`" in line]
    assert sorted(row[3].strip("`") for row in rows) == sorted(ledger)
    for row in rows:
        for words, target in LINK.findall(row[1]):
            assert_defines(words.strip("`"), (THEORY / target).resolve())
