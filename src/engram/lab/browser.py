"""The way into the page: a private file leads there, for every process list shows what a browser is given."""

import os
import shutil
import threading
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from tempfile import mkdtemp

from engram.records.files import writing_to

SECONDS_BEFORE_OPENING = 0.5
SECONDS_TO_OPEN = 60.0
PREFIX = "open-"
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}"><title>Engram: lab</title></head>
<body><a href="{url}">Engram: lab</a></body></html>
"""


@contextmanager
def opened(url: str, folder: Path) -> Iterator[None]:
    """Opens the browser at the URL; what leads there goes after a minute, or with the lab."""
    with redirect(url, folder) as file:
        timers = [
            threading.Timer(SECONDS_BEFORE_OPENING, webbrowser.open, [file.as_uri()]),
            threading.Timer(SECONDS_BEFORE_OPENING + SECONDS_TO_OPEN, _remove, [file.parent]),
        ]
        for timer in timers:
            timer.daemon = True
            timer.start()
        try:
            yield
        finally:
            for timer in timers:
                timer.cancel()


@contextmanager
def redirect(url: str, folder: Path) -> Iterator[Path]:
    """A file that leads to the URL, in a folder of its own; only the user may read either."""
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        _remove_old(folder)
        file = Path(mkdtemp(prefix=PREFIX, dir=folder)) / "lab.html"
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened_file:
            opened_file.write(PAGE.format(url=escape(url)))
    try:
        yield file.absolute()
    finally:
        _remove(file.parent)


def _remove_old(folder: Path) -> None:
    """What a lab left behind that was killed in its first minute."""
    for left in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if not left.is_symlink() and time.time() - left.stat().st_mtime > SECONDS_TO_OPEN:
                _remove(left)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
