"""The report opens from file:// in a real browser, asks the network for nothing, and shows what it should."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from engram import api
from engram.errors import Interrupted
from engram.execute import execute
from engram.experiments import find
from engram.records.shelf import all_records
from engram.show.gallery import gallery
from engram.show.report import report

BROWSER = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if BROWSER is None:
        if os.environ.get("CI"):
            pytest.fail("no browser in CI: `make test` should have installed one")
        pytest.skip("no chromium on this machine")
    quiet = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=quiet)
        yield browser
        browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_report_opens_offline(home: Path, browser: Browser, scheme: str, width: int) -> None:
    result = api.run("birth.joint", scale="smoke", seeds=1)
    path = api.write_report(home / "r.html", "A <b>title</b> & more", result.records, result.claims)
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
    asked, problems = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert problems == []
    assert page.locator("h1").inner_text() == "A <b>title</b> & more"
    assert page.locator("img").count() == 3
    for image in page.locator("img").all():
        assert image.evaluate("image => image.naturalWidth") > 500
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    text = page.locator("main").inner_text()
    assert all(claim["id"] in text for claim in result.claims)
    page.locator("summary").first.click()
    assert "task.K" in page.locator("main").inner_text()
    page.close()


def test_report_of_checks_and_of_unfinished_runs(home: Path) -> None:
    result = api.run("birth.levels", scale="smoke", seeds=1)
    page = report("Levels", [(record, gallery(record)) for record in result.records], result.claims)
    assert "entropy.unigram" in page
    assert "http" not in page
    spec = find("birth.joint").specs("smoke", [0])[0]
    steps = iter(range(100))
    for limit in (0, 3):
        with pytest.raises(Interrupted):
            execute(spec, home, stop=lambda limit=limit: next(steps) >= limit)
        (record,) = [record for record in all_records(home) if record.id.startswith("bigram")]
        page = report("Part", [(record, gallery(record))], [])
        assert "not finished" in page
        assert "-1 of" not in page
