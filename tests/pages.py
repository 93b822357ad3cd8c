"""What a person does on the page of the lab, for tests in a real browser."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, expect

from lab import SEEDS, SMALL, Served

SLOW = {"plan.steps": 3000, "plan.batch": 16}
PATIENCE = 120.0  # seconds: a machine with ten busy processes is no reason to fail
expect.set_options(timeout=1000 * PATIENCE)


@contextmanager
def opened(browser: Browser, url: str) -> Iterator[Page]:
    """The page of the lab; an error in its console fails the test."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, color_scheme="light")
    page = context.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
    page.goto(url)
    yield page
    context.close()
    assert not [line for line in wrong if "WebSocket" not in line]  # a lost connection is one of the tests


def wait(done: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """Polls: a policy of the page forbids what Playwright's own waiting needs."""
    end = time.monotonic() + seconds
    while not (found := done()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
    return found


def lab_of(page: Page, call: str) -> Any:
    return page.evaluate(f"window.engramLab.{call}")


def picked(page: Page) -> str:
    """The run that is looked at."""
    return page.get_by_test_id("run-picker").get_attribute("data-run") or ""


def start(page: Page, **settings: Any) -> str:
    """A run from the dialog, as a person would start it."""
    seed = next(SEEDS)
    page.get_by_test_id("new-run").click()
    wait(lambda: page.get_by_test_id("preset").input_value() == "birth.joint")
    for name, value in (SMALL | SLOW | settings | {"seed": seed}).items():
        page.get_by_test_id(f"field-{name}").fill(str(value))
    page.get_by_test_id("start").click()
    run = wait(lambda: f"-s{seed}-" in (found := picked(page)) and found)
    expect(page.get_by_test_id("state")).to_have_attribute("data-state", "running")
    return run


def look_at(page: Page, lab: Served, run: str) -> None:
    page.goto("about:blank")  # from the same address another # alone would open nothing
    page.goto(f"{lab.url}#run={run}")


def steps(page: Page, run: str) -> int:
    return len((lab_of(page, f"rows('{run}')") or {}).get("step", []))


def pause(page: Page) -> None:
    """Until it has taken its last step and the page knows."""
    page.get_by_test_id("pause").click()
    expect(page.get_by_test_id("state")).to_have_attribute("data-state", "paused")
