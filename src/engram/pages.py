"""Pages that open offline: the report of runs, and the ledger."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from engram.errors import EngramError
from engram.experiments import find
from engram.records import Record
from engram.records.files import replace, writing_to

Page = Callable[[str, Sequence[tuple[Record, Sequence[Any]]], Sequence[dict[str, Any]], int], str]


def write_report(
    path: Path, title: str, records: Sequence[Record], claims: Sequence[dict[str, Any]] = (), page: Page | None = None
) -> Path:
    """One self-contained HTML file about records: figures and claims alone, or as another page has them."""
    from engram.show.gallery import gallery
    from engram.show.report import report

    shown = [(record, gallery(record)) for record in records]
    html = (page or report)(title, shown, claims, _least(claims))
    return write_page(path, html, "report", "-o report.html")


def _least(claims: Sequence[dict[str, Any]]) -> int:
    """Seeds that verdicts on these claims, which are of one experiment, need."""
    return find(claims[0]["experiment"]).least_seeds(claims[0]["scale"]) if claims else 0


def write_ledger(path: Path, claims: Sequence[dict[str, Any]], records: str, command: str) -> Path:
    """The ledger as one HTML file."""
    from engram.show.ledger_page import page

    return write_page(path, page(claims, records, command), "ledger", "--html ledger.html")


def write_page(path: Path, html: str, command: str, example: str) -> Path:
    """One file, whole or not at all."""
    if path.is_dir():
        raise EngramError(f"{command}: {path} is a folder; name a file, as in {example}")
    with writing_to(path.parent):
        replace(path, html.encode())
    return path
