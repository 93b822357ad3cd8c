"""What watching costs a training, how soon a step that is scrubbed to is seen, and what a report weighs."""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from engram.bench.lines import Benchmark
from engram.errors import EngramError

STEPS, SETTLED, CLIENTS, ROUNDS = 80, 2.0, 5, 3  # steps of a measurement; seconds before it begins
PATIENCE = 120  # seconds
SETTINGS = {"plan.steps": 600}  # more than are ever taken
PICTURES = ["memory:W_O2", "memory:W_K2", "memory:W_K1", "attention:1.1", "attention:2.1"]
SILENT = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")


def slowdown(bench: Any) -> Iterator[Benchmark]:
    """Seconds of a step of birth.joint at quick scale, watched, against `engram run`: best of some rounds."""
    found: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, seconds in (("run", _plain()), *_watched()):
            found.setdefault(name, []).append(seconds)
    plain = min(found.pop("run"))
    labels = {"clients": f"{CLIENTS} clients without a browser", "page": "one page in Chromium"}
    for name, seconds in found.items():
        about = f"{labels[name]} at 2 Hz: {min(seconds) / plain - 1:+.1%} against `engram run`, best of {ROUNDS}"
        yield Benchmark(f"lab.slowdown.{name}", min(seconds), plain, about)


def _plain() -> float:
    with tempfile.TemporaryDirectory() as home:
        settings = [f"{name}={value}" for name, value in SETTINGS.items()]
        with _engram(home, "run", "birth.joint", "--set", *settings, "--json", **SILENT) as run:
            try:
                return _pace(Path(home))
            finally:
                run.terminate()


def _engram(home: str, *words: str, **pipes: Any) -> subprocess.Popen[str]:
    """A command of Engram with a home of its own."""
    command, env = [sys.executable, "-m", "engram", *words], os.environ | {"ENGRAM_HOME": home}
    return subprocess.Popen(command, env=env, text=True, **pipes)


def _watched() -> Iterator[tuple[str, float]]:
    """One run, under one kind of watching after the other."""
    looks = {"clients": _clients} | ({"page": _opened} if _browser() else {})
    with tempfile.TemporaryDirectory() as home, served(home) as (url, _):
        run = _started(url, SETTINGS)
        for name, look in looks.items():
            with look(url, run):
                yield name, _pace(Path(home))


def _pace(home: Path) -> float:
    """Seconds a step from now on, by the clock of the record; what begins (a browser, say) has a moment to settle."""
    _clock(home, 1)
    time.sleep(SETTLED)
    first = len(_clock(home, 1)) - 1
    clock = _clock(home, first + STEPS + 1)
    return (clock[first + STEPS] - clock[first]) / STEPS


def _clock(home: Path, rows: int) -> list[float]:
    """The seconds of all rows, once there are this many."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        lines = [line for path in home.glob("*/timing.jsonl") for line in path.read_text().splitlines(keepends=True)]
        whole = [line for line in lines if line.endswith("\n")]
        if len(whole) >= rows:
            return [json.loads(line)["seconds"] for line in whole]
        if any(home.glob("*/digest.json")):
            raise EngramError("bench lab.slowdown: the run ended before it was measured")
        time.sleep(0.1)
    raise EngramError(f"bench lab.slowdown: the run did not reach step {rows} within {PATIENCE} s")


@contextmanager
def served(home: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A lab of this home: its URL and its server."""
    server = _engram(home, "lab", "--no-browser", "--json", stdout=subprocess.PIPE)
    assert server.stdout is not None
    try:
        url = json.loads(server.stdout.readline())["url"]
        _until_open(socket_of(url))
        yield url, server
    finally:
        server.terminate()
        server.communicate()
        _engram(home, "lab", "--stop", **SILENT).wait()


def _until_open(address: str) -> None:
    while True:
        with suppress(OSError), connect(address):
            return
        time.sleep(0.05)


def socket_of(url: str) -> str:
    return url.split("#")[0].replace("http:", "ws:").replace("/?", "/ws?")


def _say(ws: ClientConnection, **message: Any) -> None:
    ws.send(json.dumps(message))


def _started(url: str, settings: dict[str, int]) -> str:
    """The id of a run of birth.joint that the lab begins."""
    with connect(socket_of(url), max_size=None) as ws:
        _say(ws, t="start", id=1, preset="birth.joint", settings=settings)
        while True:
            message = ws.recv()
            if isinstance(message, str) and (heard := json.loads(message))["t"] == "answer":
                return heard["run"]


@contextmanager
def _clients(url: str, run: str) -> Iterator[None]:
    """Five that take in everything a page shows."""

    def listen(ws: ClientConnection) -> None:
        with suppress(ConnectionClosed):
            for _ in ws:
                pass

    with ExitStack() as sockets:
        for _ in range(CLIENTS):
            ws = sockets.enter_context(connect(socket_of(url), max_size=None))
            _say(ws, t="view", run=run, pictures=PICTURES, reads=True, hz=2.0)
            threading.Thread(target=listen, args=[ws], daemon=True).start()
        yield


def _browser() -> str | None:
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@contextmanager
def _opened(url: str, run: str) -> Iterator[Any]:
    """A page in Chromium that shows the run."""
    with _chromium() as browser:
        page = browser.new_page(viewport={"width": 1600, "height": 1400})
        page.goto(f"{url}#run={run}")
        yield page


@contextmanager
def _chromium() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise EngramError("bench lab: driving a browser needs playwright; pip install '.[dev]'") from None
    if _browser() is None:
        raise EngramError("bench lab: no Chromium on this machine; `make test` installs one where it can")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_browser(), args=["--no-sandbox"])
        yield browser
        browser.close()


SCRUB = """async (step) => {
  const slider = document.querySelector("[data-testid=scrubber]");
  const began = performance.now();
  slider.value = String(step);
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  const there = () => {
    const view = window.engramLab.view();
    const shown = (name) => window.engramLab.drawn(name)?.step === step;
    return view.step === step && view.pictures.length > 0 && view.pictures.every(shown);
  };
  while (!there()) await new Promise((done) => requestAnimationFrame(done));
  return performance.now() - began;
}"""


def scrub(bench: Any) -> Iterator[Benchmark]:
    """From moving the slider to a stored step until every visible picture shows it, at the size of the paper."""
    with tempfile.TemporaryDirectory() as home, served(home) as (url, _):
        run = _started(url, {"plan.steps": 50, "plan.batch": 16})
        while not (Path(home) / run / "digest.json").exists():
            time.sleep(0.1)
        with _opened(url, run) as page:
            page.wait_for_timeout(2000)
            steps = random.Random(0).sample(range(50), 40)
            seconds = [page.evaluate(SCRUB, step) / 1000 for step in steps][5:]
            shown = page.evaluate("window.engramLab.view().pictures")
            painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
    slowest = f"slowest {max(seconds):.3f} s"
    about = f"median of {len(seconds)} steps never seen before, {slowest}; {len(shown)} pictures; baseline: 0.1 s"
    yield Benchmark("lab.scrub", median(seconds), 0.1, about)
    about = "from the address to the first paint of the page; baseline: 1 s"
    yield Benchmark("lab.first-paint", painted, 1.0, about)


DRAWN = """async () => {
  const lab = window.engramLab, there = (name) => lab.drawn(name) !== null;
  const all = () => lab.view()?.pictures.length && lab.view().pictures.every(there);
  while (!all()) await new Promise((done) => requestAnimationFrame(done));
  return performance.now();
}"""


def report(bench: Any) -> Iterator[Benchmark]:
    """The report of birth.joint at the size of the paper: megabytes, and seconds until all that is seen is drawn."""
    with tempfile.TemporaryDirectory() as home, _chromium() as browser:
        settings = ["plan.steps=24", "plan.batch=16", "plan.snapshot_every=1"]
        _engram(home, "run", "birth.joint", "--seeds", "1", "--set", *settings, "--json", **SILENT).wait()
        file = Path(home) / "report.html"
        _engram(home, "report", "last", "-o", str(file), **SILENT).wait()
        seconds = [_seconds_until_drawn(browser, file) for _ in range(5)]
        size = file.stat().st_size / 1e6
    yield Benchmark(
        "lab.report.size",
        size,
        6.0,
        "MB of a run with 25 stored steps, more than there is room for; baseline: 6 MB",
        unit="MB",
    )
    about = f"median of {len(seconds)}, from the address to all pictures in view, from file://; baseline: 2 s"
    yield Benchmark("lab.report", median(seconds), 2.0, about)


def _seconds_until_drawn(browser: Any, file: Path) -> float:
    page = browser.new_page(viewport={"width": 1600, "height": 1400})
    page.goto(file.as_uri())
    found = page.evaluate(DRAWN) / 1000
    page.close()
    return found
