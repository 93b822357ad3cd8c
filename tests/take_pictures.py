"""Takes the pictures of docs/lab anew (`make pictures`): a lab with a run and its fork, facts, and a lesson."""

import io
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from engram.experiments import find
from engram.facts.learn import spec_of_file
from engram.lab.lessons import find as lesson_named
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.events import Freeze
from lab import Served, served
from pages import lab_of, look_at, wait

ROOT = Path(__file__).parent.parent
INTO = ROOT / "docs/lab"
WIDE, TALL, NARROW = (1440, 1000), (1440, 2600), (390, 844)  # pixels; no panel is higher than TALL
QUALITY, FRAMES, SECONDS = 72, 40, 20  # of an image; of the strip


def chromium() -> str:
    return next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))))


def joint() -> Train:
    (spec,) = find("birth.joint").specs("quick", [0])
    assert isinstance(spec, Train)
    return spec


def saved(page: Page, name: str, panel: str | None = None) -> None:
    """The window, or one panel, as WebP."""
    shot = page.locator(f"#panel-{panel}").screenshot() if panel else page.screenshot()
    Image.open(io.BytesIO(shot)).save(INTO / f"{name}.webp", quality=QUALITY, method=6)
    print(f"docs/lab/{name}.webp")


@contextmanager
def opened(browser: Browser, lab: Served, run: str, size: tuple[int, int], scheme: str) -> Iterator[Page]:
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    look_at(page, lab, run)
    settled(page)
    yield page
    context.close()


def settled(page: Page) -> None:
    page.wait_for_timeout(1200)
    wait(lambda: all(lab_of(page, f"drawn('{name}')") for name in lab_of(page, "view()")["pictures"]))
    page.wait_for_timeout(800)


def panel(page: Page, name: str, seen: str) -> None:
    page.locator(f"#panel-{name}").scroll_into_view_if_needed()
    page.locator(f"#panel-{name}").locator(seen).first.wait_for()
    page.wait_for_timeout(1500)


def of_a_birth(browser: Browser, lab: Served, run: str, fork: str) -> None:
    with opened(browser, lab, f"{fork}", WIDE, "light") as page:
        saved(page, "lab")
        saved(page, "memories", "wall")
        saved(page, "timeline", "timeline")
        saved(page, "interventions", "interventions")
        saved(page, "branches", "branches")
    with opened(browser, lab, run, WIDE, "dark") as page:
        saved(page, "dark")
    with opened(browser, lab, run, TALL, "light") as page:
        saved(page, "attention", "attention")
        for name, seen in (("circuit", "[data-testid=circuit-graph]"), ("spectrum", "svg"), ("theory", "table")):
            panel(page, name, seen)
            saved(page, name, name)
    with opened(browser, lab, run, NARROW, "light") as page:
        saved(page, "phone")


def strip(browser: Browser, lab: Served, run: str, steps: int) -> None:
    """The slider from the first step to the last, as a moving picture."""
    frames = list[Image.Image]()
    with opened(browser, lab, run, (1200, 820), "light") as page:
        for i in range(FRAMES):
            look = f"{run}&step={round((i / (FRAMES - 1)) ** 1.5 * steps)}"
            page.evaluate("hash => { location.hash = hash }", f"run={look}")
            settled(page)
            frames.append(Image.open(io.BytesIO(page.screenshot())).convert("RGB").resize((900, 615)))
    rest = {"save_all": True, "append_images": frames[1:], "duration": 1000 * SECONDS // FRAMES, "loop": 0}
    frames[0].save(INTO / "birth.webp", quality=45, method=6, **rest)
    print("docs/lab/birth.webp")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        home = Path(folder) / "runs"
        taught = lesson_named("birth").checked()
        lesson_run, _ = [execute(run.spec, home) for run in taught.runs]
        record = execute(joint(), home)
        fork = execute(record.train.model_copy(update={"events": (Freeze(step=60, matrix="W_K1"),)}), home)
        facts = execute(spec_of_file(ROOT / "examples/countries.csv", steps=600, width=32), home)
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        with served(home, lessons=[taught]) as lab:
            of_a_birth(browser, lab, record.id, fork.id)
            with opened(browser, lab, facts.id, TALL, "light") as page:
                panel(page, "facts", "tr[data-fact]")
                saved(page, "facts", "facts")
            with opened(browser, lab, f"{lesson_run.id}&lesson=birth", WIDE, "light") as page:
                saved(page, "lesson")
            strip(browser, lab, record.id, record.train.steps)
        browser.close()


if __name__ == "__main__":
    main()
