"""The page of the ledger filters, links, prints and reads well in a real browser, and asks the network for nothing."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from claims import CLAIMS, NASTY, WHY
from engram.show.claims import STATES
from engram.show.ledger_page import page

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
    tab.locator("#paper").select_option("Birth of a Transformer")
    assert shown(tab) == ["birth.inside", "birth.outside", "birth.nothing"]
    counts = {"agrees": 1, "disagrees": 1, "inconclusive": 0, "stale": 0, "missing": 1}
    assert tab.locator(".chip").all_inner_texts() == [f"{name}\n{n}" for name, n in counts.items()]
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
    again = opened(tab.evaluate("location.hash"))  # tab.url is told of it only a moment later
    assert again.get_by_label("Search").input_value() == "100 % & +seed"
    assert [box.is_checked() for box in again.locator("[name=verdict]").all()] == [False, False, True, True, False]
    again.get_by_label("Search").fill("one")
    assert shown(again) == ["memory.lost"]
    assert shown(opened("#status=exploratory&kind=own")) == []
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
    assert tab.locator(".why:visible").inner_text() == f"Why it disagrees. {WHY['birth.outside']}"
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
    for key in (*["Tab"] * 5, "Space"):  # search, paper, kind, status, first verdict
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


def test_filters_work_where_the_address_cannot_change(opened: Opened) -> None:
    tab = opened()
    tab.evaluate("() => { history.replaceState = () => { throw new Error('refused') } }")
    tab.get_by_label("Search").fill("nobody")
    assert shown(tab) == ["birth.nothing"]


def test_paper_shows_every_claim_open_and_nothing_to_click(opened: Opened) -> None:
    """On white, also where the screen is dark; what is filtered out stays out."""
    tab = opened("#paper=Hopfield%201982", color_scheme="dark")
    tab.emulate_media(media="print")
    assert tab.locator(".claim .inside:visible").count() == tab.locator(".claim:visible").count() == 1
    assert tab.locator("form:visible, button:visible").count() == 0
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(246, 248, 250)"


def test_no_script_runs_but_its_own(browser: Browser, tmp_path: Path) -> None:
    """The policy of the file holds for what somebody smuggles into it: scripts, handlers, requests."""
    smuggled = "<script>window.foreign = 1</script><img src='data:,' onerror='window.foreign = 2'>"
    (tmp_path / "ledger.html").write_text(page(CLAIMS).replace("<main>", f"<main>{smuggled}"))
    tab = browser.new_page()
    refused: list[str] = []
    tab.on("console", lambda message: refused.append(message.text))
    tab.goto((tmp_path / "ledger.html").as_uri())
    assert tab.locator("#filters:visible").count() == 1, "its own script runs"
    assert tab.evaluate("window.foreign") is None
    assert [line for line in refused if "Content Security Policy" in line]
    assert tab.evaluate("fetch('data:,x').then(() => 'fetched', () => 'refused')") == "refused"
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
    text = ", ".join(f".cards {part}" for part in (".verdict", ".meta", ".sentence", ".why", "dt", "dd"))
    assert min(tab.locator(text).evaluate_all(CONTRAST)) >= 4.5
    dark = tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"
    assert dark == (scheme == "dark")
    assert tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    for name in STATES:
        marks = tab.locator(f"summary .{name} use").evaluate_all("uses => uses.map(use => use.getAttribute('href'))")
        assert set(marks) == {f"#mark-{name}"}
        assert set(tab.locator(f"summary .{name}").all_inner_texts()) == {name}
