"""The page of `engram probe` in a real browser: heads are chosen by mouse and keys, nothing is fetched."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import engram
from engram.models.network import Provenance
from engram.probing import Subject
from engram.show.probe_page import page
from planted_heads import planted


@pytest.fixture(scope="module")
def html() -> str:
    """A planted circuit, whose name and tokens are hostile."""
    network = planted()
    object.__setattr__(network, "provenance", Provenance("<b>x</b>", "engram", note="4-bit-derived"))
    found = engram.probe(network, seeds=2, report=None)
    marks = [f"</script><i>{i}" for i in range(network.sizes.N)]
    subject = Subject(network, None, lambda ids: [marks[i] for i in ids], None)
    from engram.probes.maps import maps

    object.__setattr__(found, "subject", subject)
    object.__setattr__(found, "maps", maps(network, found.shown))
    return page(found)


@pytest.fixture
def tab(browser: Browser, tmp_path: Path, html: str) -> Iterator[Page]:
    """At the end nothing was fetched and nothing complained."""
    file, asked, problems = tmp_path / "page.html", list[str](), list[str]()
    file.write_text(html)
    opened = browser.new_page(viewport={"width": 1100, "height": 800})
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("console", lambda message: problems.append(message.text))
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.goto(file.as_uri())
    yield opened
    opened.close()
    assert [url for url in asked if not url.startswith("file:")] == []
    assert problems == []


def test_the_strongest_head_is_shown_first_and_others_are_chosen(tab: Page) -> None:
    assert tab.locator("#name").inner_text() == "L2H1"
    assert "induction 0.99" in tab.locator("#numbers").inner_text()
    tab.locator("#L1H2").click()
    expect(tab.locator("#name")).to_have_text("L1H2")
    assert "previous token 1.00" in tab.locator("#numbers").inner_text()
    tab.keyboard.press("ArrowRight")
    assert tab.locator("#name").inner_text() == "L2H2"
    tab.keyboard.press("ArrowUp")
    assert tab.locator("#name").inner_text() == "L2H1"
    tab.keyboard.press("ArrowRight")  # there is none
    assert tab.locator("#name").inner_text() == "L2H1"
    assert tab.locator("#L2H1").get_attribute("aria-pressed") == "true"


def test_colours_and_labels_follow_the_kind(tab: Page) -> None:
    tab.get_by_label("previous").check(force=True)
    assert tab.locator("#L1H2").get_attribute("aria-label") == "L1H2, previous 1.00"
    assert tab.locator("#scale").inner_text() == "attention on the token before"


def test_a_link_in_a_table_chooses_its_head(tab: Page) -> None:
    tab.locator("a[href='#L1H2']").first.click()
    expect(tab.locator("#name")).to_have_text("L1H2")


def test_an_edge_is_read_off_the_map(tab: Page) -> None:
    box = tab.locator("#map").bounding_box()
    assert box
    tab.locator("#map").hover(position={"x": box["width"] - 30, "y": box["height"] - 8})
    assert "looks at" in tab.locator("#edge").inner_text()


def test_the_page_says_once_whose_weights_it_shows(tab: Page) -> None:
    assert tab.locator(".lead .source").all_inner_texts() == ["<b>x</b> (engram, 4-bit-derived)"]
    assert tab.content().count("4-bit-derived") == 1
    assert tab.locator("b", has_text="x").count() == 0
