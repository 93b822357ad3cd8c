"""Curves that can be told apart without colours, as in grey print: each colour of a figure gets a mark of its own."""

from collections.abc import Iterator

import numpy as np
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

MARKS = "osD^v<>"
FEW = 3  # colours from which on lines need marks
LONG, THICK = (
    25,
    1.2,
)  # points of a curve; its width in points: thin lines are single seeds, and shorter curves have marks
EVERY = 0.16  # of the diagonal of a panel between two marks


def tell_apart(figure: Figure) -> None:
    """Everywhere in a figure the same mark for the same colour, also in legends."""
    curves = [line for ax in figure.axes for line in ax.get_lines() if _is_curve(line)]
    colours = list(dict.fromkeys(to_hex(line.get_color()) for line in curves))
    if len(colours) < FEW:
        return
    for line in curves:
        i = colours.index(to_hex(line.get_color()))
        line.set_markevery((0.02 + EVERY * i / len(colours), EVERY))
        _mark(line, i)
    for handle in _of_legends(figure):
        if to_hex(handle.get_color()) in colours and _is_plain(handle):
            _mark(handle, colours.index(to_hex(handle.get_color())))


def _is_curve(line: Line2D) -> bool:
    return _is_plain(line) and line.get_linewidth() > THICK and np.size(line.get_xdata()) >= LONG


def _is_plain(line: Line2D) -> bool:
    return line.get_linestyle() == "-" and line.get_marker() in ("None", "", None)


def _of_legends(figure: Figure) -> Iterator[Line2D]:
    own = (found for ax in figure.axes if (found := ax.get_legend()))
    for legend in (*own, *figure.legends):
        yield from legend.get_lines()


def _mark(line: Line2D, i: int) -> None:
    line.set(marker=MARKS[i % len(MARKS)], markersize=4, markerfacecolor="white", markeredgewidth=0.9)
