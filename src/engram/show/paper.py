"""A figure as wide as a column of a paper: as many panels beside each other as fit, small letters, legends outside."""

import re
from itertools import groupby
from math import ceil
from textwrap import fill
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator
from matplotlib.transforms import ScaledTranslation

from engram.errors import EngramError
from engram.show.style import SMALLEST, house_style
from engram.show.subtitles import even_lines

Font = Literal["sans", "serif"]
FAMILIES = {"sans": ["DejaVu Sans"], "serif": ["STIXGeneral", "DejaVu Sans"]}  # the second where a letter is missing
MATHS = {"sans": "dejavusans", "serif": "stix"}
UNITS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}  # of LaTeX: \the\columnwidth prints such points
WIDTH = re.compile(r"([\d.]+)\s*(in|cm|mm|pt|)")
LEAST, MOST = 2.0, 20.0  # inches
PANEL, LEAST_PANEL = 2.0, 1.45  # inches: how wide a panel with its numbers is at least; the second if they are many
MANY_ROWS = 4  # of panels: more of them would not fit onto a page
HIGH, PAGE = 2.4, 8.8  # inches: the most of a panel, and of all where panels can be made so low
SMALLER = 0.8  # letters, lines and marks beside those of a screen
TITLE = 9.5  # points, before letters become smaller
LETTERS = 15  # of the smallest size that fit into an inch
LINE = 0.15  # inches: the height of one
AROUND = 0.55  # inches: what numbers and names take of a panel's width, and of its height
BARE = 0.25  # of its height, where the panel below has the numbers
OVER = 0.3  # inches: how far a title may reach over the end of its panel


def inches(width: str | float) -> float:
    """3.25in, 8.3cm, 83mm or 234pt; a number by itself is in inches.

    >>> [round(inches(width), 2) for width in ("3.25in", "8.255cm", "82.55 mm", "234.88pt", 6.75)]
    [3.25, 3.25, 3.25, 3.25, 6.75]
    """
    found = WIDTH.fullmatch(str(width).strip())
    try:
        size = float(found[1]) * UNITS[found[2] or "in"] if found else 0.0
    except ValueError:
        size = 0.0
    if str(width).strip().startswith("-"):
        raise EngramError(f"--width {str(width)!r:.40}: must be positive, as in 3.25in")
    if not LEAST <= size <= MOST:
        raise EngramError(f"--width {str(width)!r:.40}: write {LEAST:g}in to {MOST:g}in, or cm, mm, pt, as in 3.25in")
    return size


def known_font(word: str) -> Font:
    for font in ("sans", "serif"):
        if font == word:
            return font
    raise EngramError(f"--font {word!r:.40}: the fonts are {', '.join(FAMILIES)}")


def fitted(figure: Figure, width: float, font: Font = "sans") -> Figure:
    """The same figure, so wide; the line above it is left out, for the caption says it."""
    with house_style():
        figure.suptitle("")
        panels = [ax for ax in figure.axes if ax.get_label() != "<colorbar>" and ax.get_subplotspec()]
        columns = _arrange(figure, panels, _beside(panels, width))
        room = width / columns - AROUND
        for ax in panels:
            _break_words(ax, room)
            _thin_ticks(ax, room)
        _shrink(figure, font)
        legends = {ax: _legend_below(ax, room) for ax in panels}
        outside = _one_legend(figure, width)
        _set_height(figure, width, room, legends, outside)
    return figure


def beyond_a_page(height: float) -> str:
    """What to tell of a figure that no page of a paper holds; nothing of others."""
    remedy = "a larger --width puts more panels beside each other"
    return f"the figure is {height:.1f}in high, more than a page; {remedy}" if height > PAGE else ""


def _beside(panels: list[Axes], width: float) -> int:
    """How many panels stand beside each other."""
    most = max(1, int(width / PANEL))
    spec = panels[0].get_subplotspec() if panels else None
    grid = spec.get_gridspec() if spec else None
    high = grid is not None and grid.nrows * ceil(grid.ncols / most) > MANY_ROWS
    return max(1, int(width / LEAST_PANEL)) if high else most


def _arrange(figure: Figure, panels: list[Axes], most: int) -> int:
    """So many panels beside each other; columns that do not fit stand below the others. The number of columns."""
    specs = [ax.get_subplotspec() for ax in panels]
    old = specs[0].get_gridspec() if specs and specs[0] else None
    if old is None or old.ncols <= most:
        return old.ncols if old else 1
    single = all(len(spec.rowspan) == len(spec.colspan) == 1 for spec in specs if spec)
    rows, columns = (old.nrows, old.ncols) if single else (1, len(panels))
    places = [(s.rowspan.start, s.colspan.start) for s in specs if s] if single else [(0, i) for i in range(columns)]
    grid = figure.add_gridspec(rows * ceil(columns / most), most)
    first = {row: ax for ax, (row, column) in zip(panels, places, strict=True) if column == 0}
    for ax, (row, column) in zip(panels, places, strict=True):
        block, at = divmod(column, most)
        ax.set_subplotspec(grid[block * rows + row, at])
        _name_axes(ax, first.get(row, ax), at == 0)
    return most


def _name_axes(ax: Axes, first: Axes, leftmost: bool) -> None:
    """Numbers and names that stood beside a neighbour stand here, too."""
    if leftmost:
        ax.tick_params(labelleft=True)
        ax.set_ylabel(ax.get_ylabel() or (first.get_ylabel() if ax in _sharing_y(first) else ""))


def _sharing_y(ax: Axes) -> list[Axes]:
    return ax.get_shared_y_axes().get_siblings(ax)


def _shrink(figure: Figure, font: Font) -> None:
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            sizes = [float(text.get_fontsize()) for text in axis.get_ticklabels()]
            axis.set_tick_params(
                which="both", labelsize=_letters(max(sizes, default=10)), labelfontfamily=FAMILIES[font]
            )
    for text in figure.findobj(Text):
        text.set(fontsize=_letters(float(text.get_fontsize())), fontfamily=FAMILIES[font])  # type: ignore[union-attr]
        text.set_math_fontfamily(MATHS[font])  # type: ignore[union-attr]
    for line in figure.findobj(Line2D):
        line.set(lw=SMALLER * line.get_linewidth(), ms=SMALLER * line.get_markersize())  # type: ignore[union-attr]


def _letters(size: float) -> float:
    return max(SMALLEST, SMALLER * size)


def _break_words(ax: Axes, room: float) -> None:
    """Titles and names of axes in as many lines as they need."""
    title = even_lines(ax.get_title(loc="left"), int(0.85 * LETTERS * (room + OVER)))
    ax.set_title("\n".join(title), loc="left", fontsize=TITLE)
    ax.set_xlabel(fill(ax.get_xlabel(), int(0.9 * LETTERS * (room + AROUND))))
    ax.set_ylabel(fill(ax.get_ylabel(), max(14, int(0.75 * LETTERS * room))))


def _thin_ticks(ax: Axes, room: float) -> None:
    """Where fixed numbers would lie on each other every other one is left out."""
    while isinstance(ax.xaxis.get_major_locator(), FixedLocator) and len(ax.get_xticks()) > 2:
        labels = [text.get_text() for text in ax.get_xticklabels()]
        if sum(len(label) + 2 for label in labels) < LETTERS * room or not all(map(_is_number, labels)):
            return
        ax.set_xticks(ax.get_xticks()[::2], labels[::2])


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"[\d.,−-]*", text))


def _legend_below(ax: Axes, room: float) -> int:
    """The panel's legend below it, where it covers nothing; how many lines it has."""
    legend = ax.get_legend()
    if legend is None:
        return 0
    labels = [fill(text.get_text(), int(LETTERS * room) - 4) for text in legend.get_texts()]
    figure = ax.get_figure(root=True)
    assert figure is not None
    under = 0.2 + LINE * (1 + ax.get_xlabel().count("\n")) if ax.get_xlabel() else 0.2
    at = ax.transAxes + ScaledTranslation(0, -under, figure.dpi_scale_trans)
    look = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "bbox_transform": at, "borderaxespad": 0.2}
    ncols = _columns(labels, room)
    ax.legend([handle for handle in legend.legend_handles if handle], labels, ncols=ncols, **_look(legend), **look)
    return _lines(labels, ncols)


def _one_legend(figure: Figure, width: float) -> int:
    """All legends of the whole figure as one below it; how many lines it has."""
    shown: dict[str, Any] = {}
    for legend in figure.legends:
        shown |= {t.get_text(): h for t, h in zip(legend.get_texts(), legend.legend_handles, strict=True)}
    if not shown:
        return 0
    look = _look(figure.legends[0])
    for legend in list(figure.legends):
        legend.remove()
    labels = [fill(label, int(LETTERS * width) - 4) for label in shown]
    ncols = _columns(labels, width)
    figure.legend(shown.values(), labels, loc="outside lower center", ncols=ncols, **look)
    return _lines(labels, ncols)


def _look(legend: Legend) -> dict[str, Any]:
    """Letters of the figure, tightly set."""
    return {"prop": legend.get_texts()[0].get_fontproperties(), "columnspacing": 1.0, "handlelength": 1.6}


def _columns(labels: list[str], room: float) -> int:
    longest = max(len(line) for label in labels for line in label.split("\n"))
    return max(1, min(len(labels), int(LETTERS * room / (longest + 5))))


def _lines(labels: list[str], ncols: int) -> int:
    return ceil(sum(1 + label.count("\n") for label in labels) / ncols)


def _set_height(figure: Figure, width: float, room: float, legends: dict[Axes, int], outside: int) -> None:
    """Panels three quarters as high as wide, or as high as the names of their rows need, unless a page is too small."""
    rows = [list(same) for _, same in groupby(sorted(legends, key=_row), key=_row)]
    beside = sum(max(legends[ax] for ax in same) for same in rows) + outside  # lines of legends
    around = [max(map(_around, same)) for same in rows]
    panel = min(0.75 * room, HIGH, max(0.8, (PAGE - LINE * beside - sum(around)) / len(rows)))
    each = [max(panel, *(LINE * _names(ax) for ax in same)) for same in rows]
    figure.set_size_inches(width, sum(each) + sum(around) + LINE * beside)


def _around(ax: Axes) -> float:
    """Numbers and names below a panel, and the lines of its title but the first."""
    below = any(text.get_visible() and text.get_text() for text in ax.get_xticklabels()) or ax.get_xlabel()
    return (AROUND if below else BARE) + LINE * ax.get_title(loc="left").count("\n")


def _names(ax: Axes) -> int:
    """Lines of names on the y axis, each of which must be legible."""
    return len(ax.get_yticks()) if isinstance(ax.yaxis.get_major_locator(), FixedLocator) else 0


def _row(ax: Axes) -> int:
    spec = ax.get_subplotspec()
    return spec.rowspan.start if spec else 0
