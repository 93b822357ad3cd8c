"""What a reader must find in every figure; `faults` names what is missing."""

import csv
import re
from collections.abc import Iterator
from io import StringIO

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import BboxBase

from engram.show.save import as_csv, drawn_data
from engram.show.style import SMALLEST

NUMBER = re.compile(r"[−\d.,·⁰¹²³⁴-⁹⁻-]+|\$.*\$")


def faults(figure: Figure) -> list[str]:
    """In words, panel by panel; empty where the figure is as all should be."""
    return [*_of_all(figure), *(f"{name_of(ax)}: {fault}" for ax in panels(figure) for fault in _of_panel(ax))]


def panels(figure: Figure) -> list[Axes]:
    """Those in which something is drawn."""
    drawn = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    return [ax for ax in drawn if ax.lines or ax.images or ax.patches or ax.collections]


def name_of(ax: Axes) -> str:
    return ax.get_title(loc="left") or ax.get_ylabel() or "a panel"


def _of_all(figure: Figure) -> Iterator[str]:
    if "seed" not in figure.get_suptitle():
        yield f"the subtitle {figure.get_suptitle()!r} does not say which seeds were run"
    small = {text.get_text() for text in shown_texts(figure) if float(text.get_fontsize()) < SMALLEST}
    if small:
        yield f"letters below {SMALLEST} points: {sorted(small)[:5]}"
    table = csv.DictReader(StringIO(as_csv(drawn_data(figure))))
    labels = {row["label"] for row in table if row["kind"] != "image"}
    odd = {label for label in labels if not label or label.startswith("_") or label == "not named"}
    if odd:
        yield f"series have no readable name in its numbers: {sorted(odd)[:3]}"


def shown_texts(figure: Figure) -> list[Text]:
    for ax in figure.axes:
        _ = ax.get_xticklabels(), ax.get_yticklabels()  # made on demand
    return [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()]


def _of_panel(ax: Axes) -> Iterator[str]:
    for axis, near in ((ax.xaxis, ax.get_shared_x_axes()), (ax.yaxis, ax.get_shared_y_axes())):
        shown = [text.get_text() for text in axis.get_ticklabels() if text.get_text()]
        words = not any(NUMBER.fullmatch(text) for text in shown)
        twins = [getattr(other, f"{axis.axis_name}axis") for other in near.get_siblings(ax)]
        if not words and not any(twin.get_label_text() for twin in twins):
            yield f"its {axis.axis_name} axis has no label"
        if not words and _values(ax, axis) > 1 and _inside(axis) < 2:
            yield f"its {axis.axis_name} axis has fewer than two numbers"
    yield from _unnamed(ax)


def _inside(axis: Axis) -> int:
    """Numbered ticks within the limits."""
    low, high = sorted(axis.get_view_interval())
    labels = [text.get_text() for text in axis.get_ticklabels()]
    return sum(low <= at <= high and bool(label) for at, label in zip(axis.get_ticklocs(), labels, strict=True))


def _values(ax: Axes, axis: Axis) -> int:
    """How many different places the lines of a panel have on an axis, however near to each other."""
    data = [line.get_xdata() if axis is ax.xaxis else line.get_ydata() for line in ax.lines if not _level(line)]
    low, high = sorted(axis.get_view_interval())
    found = {float(value) for one in data for value in np.asarray(one) if low <= float(value) <= high}
    return len(found) if found and max(found) > 1.05 * min(found) else 0


def _level(line: Line2D) -> bool:
    """A line across the whole panel: a theory, chance, a tolerance."""
    return line.axes is not None and line.get_transform() != line.axes.transData


def _unnamed(ax: Axes) -> Iterator[str]:
    """Dashed and dotted levels are named in a legend, by a text beside them, or in a title."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    named = {line.get_linestyle() for line in ax.lines if not str(line.get_label()).startswith("_")}
    said = " ".join([ax.get_title(loc="left"), ax.get_xlabel(), ax.get_ylabel(), figure.get_suptitle()])
    for style, word in (("--", "dashed"), (":", "dotted")):
        levels = [line for line in ax.lines if _level(line) and line.get_linestyle() == style]
        if levels and style not in named and not ax.texts and word not in said:
            yield f"a {word} level is not named"


def covered(figure: Figure) -> list[str]:
    """Panels whose legend lies on a line or a mark."""
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    with_legend = [ax for ax in figure.axes if ax.get_legend()]
    return [name_of(ax) for ax in with_legend if any(_lies_on(line, ax) for line in ax.lines if not _level(line))]


def _lies_on(line: Line2D, ax: Axes) -> bool:
    legend, points = ax.get_legend(), line.get_transform().transform(line.get_xydata())  # type: ignore[arg-type]
    assert legend is not None
    if line.get_linestyle() not in ("None", ""):
        ways = np.linspace(0, 1, 40)[:, None, None]
        points = np.concatenate([points, (points[:-1] * (1 - ways) + points[1:] * ways).reshape(-1, 2)])
    boxes = [part.get_window_extent() for part in (*legend.get_texts(), *legend.legend_handles) if part]
    points = points[_within(ax.bbox, points)]
    return any(_within(box, points).any() for box in boxes)


def _within(box: BboxBase, points: np.ndarray) -> np.ndarray:
    return np.asarray(((points > box.min) & (points < box.max)).all(axis=1))


def misfits(figure: Figure, width: float) -> list[str]:
    """Why a figure would not fit into a column of a paper that is so wide, in inches."""
    found = [f"a legend covers data: {name}" for name in covered(figure)]
    if figure.get_figwidth() != width or figure.get_figheight() > 1.5 * len(figure.axes) + 8:
        found.append(f"it is {figure.get_size_inches()} inches large")
    found += [f"small letters: {t.get_text()}" for t in shown_texts(figure) if float(t.get_fontsize()) < SMALLEST]
    (x0, y0, x1, y1), edge = figure.get_tightbbox().extents, 0.05
    if min(x0, y0) < -edge or x1 > width + edge or y1 > figure.get_figheight() + edge:
        found.append("something is cut off at its edge")
    return found
