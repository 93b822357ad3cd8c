"""The ledger says of every claim what is known of it; its page filters, links and reads well in a real browser."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page

import test_report
from engram.cli import main
from engram.experiments import Experiment, find, names
from engram.ledger import OTHER, PAPERS, TALKS, Entry, markdown, paper_of
from engram.records import Claim, Measure
from engram.records.files import COMMITTED
from engram.show.ledger_page import STATES, page, plot, state, tally

browser = test_report.browser  # the fixture

NASTY = 'It says <b>"1 & 2"</b> of | and *</script><script>document.title = "broken"</script>.'


def entry(id: str, statement: str, source: str, *measures: Measure, **more: Any) -> Entry:
    claim = Claim(id, statement, source, measures) if measures else None
    module = ModuleType("of_a_test")
    vars(module)["SOURCE"] = source
    return Entry(id, statement, Experiment(id, module, f"engram run {id}"), "quick", claim, **more)


def five(name: str, middle: float, **band: float) -> Measure:
    return Measure.over_seeds(name, [middle - 0.02, middle - 0.01, middle, middle + 0.01, middle + 0.02], **band)


ENTRIES = [
    entry("birth.inside", "A number lies inside.", "Birth of a Transformer, Fig. 3", five("a", 0.5, low=0)),
    entry("birth.outside", NASTY, "Birth of a Transformer", five("a", 0.5, low=0), five("b|c", 2, high=1)),
    entry("birth.nothing", "Nobody has looked.", "Birth of a Transformer, Fig. 9"),
    entry("memory.old", "The code has changed.", "Hopfield 1982", five("a", 0.5, low=0), stale=True),
    entry("memory.few", "Two seeds only.", "talks", Measure.over_seeds("a", [0.5, 0.51], low=0)),
    entry("memory.lost", "One seed diverged.", "slides 'x'", five("a", 0.5, low=0), diverged=(7,)),
]
CLAIMS = [entry.to_json() for entry in ENTRIES]


def test_every_claim_of_engram_has_a_known_paper() -> None:
    """Also a claim without records; a new title belongs into PAPERS."""
    claims = [
        Entry(id, text, experiment).to_json()
        for experiment in map(find, names())
        for id, text in experiment.statements.items()
    ]
    assert {claim["id"] for claim in claims if claim["paper"] not in (*PAPERS, TALKS)} == set()
    assert all(claim["paper"] == "Birth of a Transformer" for claim in claims if claim["id"].startswith("birth."))


def test_the_paper_is_the_one_that_the_source_names_first() -> None:
    assert paper_of("Ramsauer et al. 2021; Smart, Bietti and Sengupta 2025", "x") == "Ramsauer et al. 2021"
    assert paper_of("talks; the task of Birth of a Transformer", "memory.x") == "Birth of a Transformer"
    assert paper_of("slides", "memory.x") == TALKS
    assert paper_of("", "birth.fig3") == "Birth of a Transformer"
    assert paper_of("my own idea", "mine") == OTHER


def test_each_claim_has_one_state_and_says_why() -> None:
    html, text = page(CLAIMS), markdown(ENTRIES)
    assert [state(claim) for claim in CLAIMS] == [
        "agrees",
        "disagrees",
        "missing",
        "stale",
        "inconclusive",
        "inconclusive",
    ]
    assert tally(CLAIMS) == {"agrees": 1, "disagrees": 1, "inconclusive": 2, "stale": 1, "missing": 1}
    for said in ("No record decides", "The record is stale", "Fewer seeds than", "Seeds that diverged: 7"):
        assert html.count(said) == text.count(said) == 1
    for claim in CLAIMS:
        assert f'id="{claim["id"]}" data-paper="{claim["paper"]}" data-state="{state(claim)}"' in html
        assert f"### `{claim['id']}`: {state(claim)}\n" in text


def test_page_is_one_file_without_addresses_or_clock() -> None:
    html = page(CLAIMS, "these <records>", "engram ledger")
    assert html == page(CLAIMS, "these <records>", "engram ledger")
    assert not re.search(r"https?:|src=|@import|url\(|Date", html)
    assert "these &lt;records&gt;" in html
    assert html.count("</script>") == 1
    assert "0 of 0 claims" in page([])


def test_markdown_tables_keep_their_columns() -> None:
    """A bar in a name may not open a new cell; counts of papers add up to all."""
    lines = markdown(ENTRIES).splitlines()
    widths = {len(re.split(r"(?<!\\)\|", line)) - 2 for line in lines if line.startswith("|")}
    assert widths == {6, 2 + len(STATES)}
    table = [line for line in lines if line.startswith("|")][2 : 3 + len({claim["paper"] for claim in CLAIMS})]
    counts = [[int(cell) for cell in line.split("|")[2:-1]] for line in table]
    assert [sum(column) for column in zip(*counts[:-1], strict=True)] == counts[-1]
    assert counts[-1][0] == sum(counts[-1][1:]) == len(CLAIMS)


NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)


@given(st.tuples(NUMBERS, NUMBERS), st.tuples(NUMBERS, NUMBERS), NUMBERS)
def test_a_drawing_keeps_the_order_of_its_numbers(
    band: tuple[float, float], ends: tuple[float, float], dot: float
) -> None:
    (low, high), (a, b) = sorted(band), sorted(ends)
    drawn = plot({"predicted": (low, high), "interval": (a, b), "measured": dot})
    numbers = [low, high, a, b, dot]
    marks = [float(x) for x in re.findall(r"M(\S+) (?:3v14|7v6)", drawn) + re.findall(r'cx="(\S+?)"', drawn)]
    order = sorted(range(5), key=numbers.__getitem__)
    assert [marks[i] for i in order] == sorted(marks)
    assert all(0 <= mark <= 150 for mark in marks)


def test_an_open_side_reaches_the_edge() -> None:
    drawn = plot({"predicted": (0.9, None), "interval": (None, None), "measured": 0.95})
    left, width = map(float, re.findall(r'x="(\S+?)" y="3" width="(\S+?)"', drawn)[0])
    assert left + width == 150
    assert "M0 10H150" in drawn.partition("line")[2]
    assert "<circle" not in plot({"predicted": (0, 1), "interval": None, "measured": None})


def test_command_writes_the_page(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From local and committed records, or from the committed ones only; here all records are local."""

    def run(*words: str) -> str:
        with pytest.raises(SystemExit):
            main(["ledger", "memory.attention", *words])
        return "".join(capsys.readouterr())

    home.mkdir()
    for records in COMMITTED.glob("memory.attention*"):
        shutil.copy(records, home)
    monkeypatch.setattr("engram.records.files.COMMITTED", home / "none")
    assert run("--html", "new/all.html") == "ledger  new/all.html\n"
    assert json.loads(run("--html", "c.html", "--committed", "--json")) == {"ledger": str(Path("c.html").resolve())}
    decided, bare = (json.loads(run("--json", *words))["claims"] for words in ((), ("--committed",)))
    assert {claim["verdict"] for claim in decided} == {"agrees"}
    assert {claim["verdict"] for claim in bare} == {"missing"}
    command = "engram ledger memory.attention --html FILE"
    assert Path("new/all.html").read_text() == page(decided, "local and committed records", command)
    assert Path("c.html").read_text() == page(bare, "the committed records", f"{command} --committed")
    assert "is a folder" in run("--html", "new")
    assert "choose one" in run("--html", "l.html", "--markdown")


Opened = Callable[..., Page]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    """Opens the page at an address hash; at the end nothing was fetched and nothing complained."""
    file, asked, problems, pages = tmp_path / "ledger.html", [], [], []
    file.write_text(page(CLAIMS))

    def open_page(hash: str = "", width: int = 1100, **more: Any) -> Page:
        tab = browser.new_page(viewport={"width": width, "height": 800}, **more)
        pages.append(tab)
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("console", lambda message: problems.append(message.text))
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.goto(file.as_uri() + hash)
        return tab

    yield open_page
    for tab in pages:
        tab.close()
    assert [url for url in asked if not url.startswith("file:")] == []
    assert problems == []


def shown(tab: Page) -> list[str]:
    ids = [node.get_attribute("id") or "" for node in tab.locator(".claim:visible").all()]
    assert tab.locator("#shown").inner_text() == f"{len(ids)} of {len(CLAIMS)} claims"
    return ids


def test_filters_narrow_the_list_and_count_what_they_would_show(opened: Opened) -> None:
    tab = opened()
    assert shown(tab) == [claim["id"] for claim in CLAIMS]
    tab.get_by_label("Paper").select_option("Birth of a Transformer")
    assert shown(tab) == ["birth.inside", "birth.outside", "birth.nothing"]
    assert tab.locator(".chip").all_inner_texts() == [
        "agrees\n1",
        "disagrees\n1",
        "inconclusive\n0",
        "stale\n0",
        "missing\n1",
    ]
    tab.get_by_label("disagrees").check(force=True)
    tab.get_by_label("missing").check(force=True)
    assert shown(tab) == ["birth.outside", "birth.nothing"]
    assert "Hopfield 1982 (0)" in tab.locator("option").all_inner_texts()
    tab.get_by_label("Search").fill("LOOKED nobody")
    assert shown(tab) == ["birth.nothing"]
    assert tab.locator("h2:visible").count() == 1
    tab.get_by_role("button", name="clear filters").click()
    assert shown(tab) == [claim["id"] for claim in CLAIMS]
    assert "#" not in tab.url


def test_the_address_keeps_and_restores_the_filters(opened: Opened) -> None:
    tab = opened()
    tab.get_by_label("stale").check(force=True)
    tab.get_by_label("inconclusive").check(force=True)
    tab.get_by_label("Search").fill("100 % & +seed")
    address = tab.url.partition("#")[2]
    again = opened(f"#{address}")
    assert again.get_by_label("Search").input_value() == "100 % & +seed"
    assert [box.is_checked() for box in again.locator("[name=verdict]").all()] == [False, False, True, True, False]
    again.get_by_label("Search").fill("one")
    assert shown(again) == ["memory.lost"]
    assert shown(opened("#paper=nobody&verdict=perhaps,stale&words=")) == ["memory.old"]
    assert len(shown(opened("#%zz"))) == len(CLAIMS)


def test_a_claim_can_be_linked(opened: Opened) -> None:
    tab = opened("#memory.old")
    assert "The record is stale" in tab.locator(".inside:visible").inner_text()
    tab.goto(tab.url.partition("#")[0] + "#birth.nothing")
    assert "No record decides" in tab.locator("[id='birth.nothing'] .inside").inner_text()


def test_text_is_shown_as_text_and_an_open_claim_tells_all(opened: Opened) -> None:
    tab = opened("#birth.outside")
    assert tab.title() == "Engram: ledger"
    assert tab.locator("[id='birth.outside'] .sentence").inner_text() == NASTY
    rows = [row.inner_text().split("\t") for row in tab.locator("tbody tr:visible").all()]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["a", "", "> 0", "0.5", "0.4804 … 0.5196", "5", "agrees"],
        ["b|c", "", "< 1", "2", "1.98 … 2.02", "5", "disagrees"],
    ]
    assert "engram run birth.outside --scale quick --seeds 5" in tab.locator(".inside:visible").inner_text()


def test_copy_gives_the_command_or_leaves_it_selected(opened: Opened) -> None:
    tab = opened("#birth.inside")
    tab.evaluate("Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (t) => { window.got = t }}})")
    tab.locator(".copy:visible").click()
    assert tab.evaluate("window.got") == "engram run birth.inside --scale quick --seeds 5"
    tab = opened("#birth.inside")
    tab.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    tab.locator(".copy:visible").click()
    assert tab.evaluate("getSelection().toString()") == "engram run birth.inside --scale quick --seeds 5"


def test_keys_are_enough(opened: Opened) -> None:
    tab = opened()
    for key in ("Tab", "Tab", "Tab", "Space"):  # search, paper, first verdict
        tab.keyboard.press(key)
    assert shown(tab) == ["birth.inside"]
    for key in (*["Tab"] * (len(STATES) - 1), "Tab", "Tab", "Tab", "Enter"):  # other verdicts, clear, open all, claim
        tab.keyboard.press(key)
    assert tab.locator("[id='birth.inside']").get_attribute("open") is not None


def test_open_all_opens_what_is_shown(opened: Opened) -> None:
    tab = opened("#paper=Hopfield%201982")
    tab.get_by_role("button", name="open all").click()
    assert tab.locator(".claim[open]").count() == 1
    tab.get_by_role("button", name="close all").click()
    assert tab.locator(".claim[open]").count() == 0


def test_everything_can_be_read_without_the_script(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "ledger.html").write_text(page(CLAIMS))
    tab = browser.new_page(java_script_enabled=False)
    tab.goto((tmp_path / "ledger.html").as_uri())
    assert tab.locator(".claim:visible").count() == len(CLAIMS)
    assert tab.locator("form:visible, button:visible").count() == 0
    tab.locator("summary").first.click()
    assert "engram run birth.inside" in tab.locator(".inside:visible").inner_text()
    tab.close()


CONTRAST = """nodes => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true})
  const light = colour => {
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1)
    const linear = [...canvas.getImageData(0, 0, 1, 1).data].map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
  }
  const card = light(getComputedStyle(document.querySelector(".cards")).backgroundColor)
  return nodes.map(node => light(getComputedStyle(node).color)).map(ink =>
    (Math.max(ink, card) + 0.05) / (Math.min(ink, card) + 0.05))
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [420, 800, 1100])
def test_light_and_dark_wide_and_narrow_are_legible(opened: Opened, scheme: str, width: int) -> None:
    """Contrast of text on a card at least 4.5; nothing sticks out; each verdict has its word and its own shape."""
    tab = opened(width=width, color_scheme=scheme)
    tab.get_by_role("button", name="open all").click()
    contrast = tab.locator(".cards .verdict, .cards .meta, .cards .sentence, .cards dt, .cards dd").evaluate_all(
        CONTRAST
    )
    assert min(contrast) >= 4.5
    dark = tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"
    assert dark == (scheme == "dark")
    assert tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    for name in STATES:
        marks = tab.locator(f"summary .{name} use").evaluate_all("uses => uses.map(use => use.getAttribute('href'))")
        assert set(marks) == {f"#mark-{name}"}
        assert set(tab.locator(f"summary .{name}").all_inner_texts()) == {name}
