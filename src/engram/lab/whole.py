"""A report that is the page of the lab: one file with the data of runs, their figures and their claims.

It opens without a lab and speaks to nobody: its policy allows the script of the page, by its hash, and nothing else.
"""

import json
from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from engram.lab.still import still
from engram.records import Record
from engram.show.gallery import Picture
from engram.show.html import policy, text_of
from engram.show.report import content, report

PAGE = files("engram") / "lab/static/lab.html"
LARGEST = 5_900_000  # bytes of the whole file, if its figures leave room for pictures
LEAST = 300_000  # bytes for the pictures of each run, whatever the figures take
MOST_RUNS = 32  # that a page draws; figures and settings are there of all

Shown = Sequence[tuple[Record, Sequence[Picture]]]


def silent(line: str) -> None:
    """Nobody is told."""


def whole_report(
    title: str, shown: Shown, claims: Sequence[dict[str, Any]], least: int = 0, tell: Callable[[str], None] = silent
) -> str:
    """The page with the data of the trainings among the records, above figures and claims.

    Without a training there are figures and claims alone.
    tell    is told in sentences what there was no room for
    """
    trainings = [record for record, _ in shown if record.kind == "Train" and len(record.table)]
    if not trainings:
        return report(title, shown, claims, least)
    if len(trainings) > MOST_RUNS:
        tell(f"The page shows {MOST_RUNS} of {len(trainings)} trainings; figures and settings are there of all.")
    told = content(shown, claims, least)
    return page(title, trainings[:MOST_RUNS], told, tell, LARGEST)


def page(
    title: str,
    trainings: Sequence[Record],
    below: str = "",
    tell: Callable[[str], None] = silent,
    largest: int = LARGEST,
) -> str:
    """The page of the lab with trainings in it, and some HTML below."""
    html = _page()
    room = max(LEAST * len(trainings), largest - len(html.encode()) - len(below.encode()))
    found = still(trainings, room)
    for line in found.told:
        tell(line)
    return _filled(html, title, _embedded(found.to_json() | {"title": title}), below)


@cache
def _page() -> str:
    return PAGE.read_text(encoding="utf-8")


def _embedded(data: dict[str, Any]) -> str:
    """A block of data: no browser runs it, and nothing in it can end it."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="engram-data">{text}</script>'


def _filled(html: str, title: str, data: str, below: str) -> str:
    """Every place is there once, or the page is not what this file was written for."""
    rules = policy(html, {"img-src": "data: blob:"})
    label = "Figures, claims and settings"
    report = f'<section class="report" id="report" aria-label="{label}">{below}</section>' if below else ""
    allowed = f'<meta http-equiv="Content-Security-Policy" content="{rules}">'
    places = {
        '<meta charset="utf-8">': f'<meta charset="utf-8">{allowed}',
        "<title>Engram lab</title>": f"<title>{escape(title)}</title><style>{text_of('whole.css')}</style>",
        '<div id="lab"></div>': f'<div id="lab"></div>{report}{data}',
    }
    for place, put in places.items():
        if html.count(place) != 1:
            raise ValueError(f"lab.html: {place} occurs {html.count(place)} times")
        html = html.replace(place, put)
    return html
