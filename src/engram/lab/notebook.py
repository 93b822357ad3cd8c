"""The page of the lab in a cell of a notebook, with the data of runs in it: no server, no network."""

from dataclasses import dataclass, field
from html import escape

from engram.api import load
from engram.errors import EngramError
from engram.lab.whole import page
from engram.records import Record

LARGEST = 3_000_000  # bytes, all of which a notebook keeps


@dataclass(frozen=True)
class Cell:
    """What a notebook draws. Its scripts run in a frame of their own, which can reach neither notebook nor network.

    told    what there was no room for
    """

    html: str = field(repr=False)
    height: int
    told: tuple[str, ...]

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {self.height}px; border: 1px solid #8888; border-radius: 8px"
        rights = 'sandbox="allow-scripts allow-downloads" allow="clipboard-write *"'
        inside = escape(self.html).encode("ascii", "xmlcharrefreplace").decode()  # whatever the letters of the notebook
        return f'<iframe title="Engram" {rights} style="{style}" srcdoc="{inside}"></iframe>'


def show_lab(*runs: Record | str, height: int = 900, largest: int = LARGEST) -> Cell:
    """Trainings on the page of the lab, as the last line of a cell: curves, memories, attention at every stored step.

    runs      records, or their names
    height    of the page, in CSS pixels
    largest   bytes that the cell may add to the notebook; what there is no room for is told in the page
    """
    if not runs:
        raise EngramError("show_lab: name at least one run, as in show_lab('last')")
    if height < 1 or largest < 1:
        raise EngramError(f"show_lab: height and largest count from 1; got {height} and {largest}")
    records = [run if isinstance(run, Record) else load(run) for run in runs]
    told: list[str] = []
    html = page("Engram", [_training(record) for record in records], tell=told.append, largest=largest)
    return Cell(html, height, tuple(told))


def _training(record: Record) -> Record:
    if record.kind != "Train" or not len(record.table):
        raise EngramError(f"show_lab: {record.id} is no training with rows; `engram runs ls` lists those there are")
    return record
