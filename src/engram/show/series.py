"""What each line, box and shape of a panel is called in the numbers beside a figure."""

import re
from collections.abc import Iterator
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from engram.show.literal import plain

GIVEN_BY_MATPLOTLIB = re.compile(r"_(child\d+|nolegend_|container\d+)|")


def quiet(name: str) -> str:
    """A label that the numbers beside a figure have, and its legend has not."""
    return f"_{name}"


def name_of(artist: Any, ax: Axes) -> str:
    """Its own label; else that of what is drawn in the same colour, here or in another panel; else the panel's."""
    own = _label(artist, ax)
    if own:
        return own
    if isinstance(artist, Line2D) and artist.get_transform() != ax.transData:
        return _level(artist, ax)
    figure = ax.get_figure(root=True)
    others = [other for other in figure.axes if other is not ax] if isinstance(figure, Figure) else []
    named = [(label, other) for panel in (ax, *others) for label, other in _named(panel)]
    same = [label for label, other in named if _look(other) == _look(artist)]
    same += [label for label, other in named if _look(other)[0] == _look(artist)[0]]
    return plain(next(iter(same), "") or ax.get_title(loc="left") or ax.get_ylabel() or "not named")


def _label(artist: Any, ax: Axes) -> str:
    """What the code that drew it calls it; boxes have the name of their bars."""
    bars = [str(box.get_label()) for box in ax.containers if artist in box.get_children()]
    given = [label for label in (str(artist.get_label()), *bars) if not GIVEN_BY_MATPLOTLIB.fullmatch(label)]
    return plain(given[0].removeprefix("_")) if given else ""


def _named(ax: Axes) -> Iterator[tuple[str, Any]]:
    """What a legend would name."""
    for artist in (*ax.lines, *ax.collections, *ax.patches):
        label = _label(artist, ax)
        if label and not str(artist.get_label()).startswith("_"):
            yield label, artist


def _look(artist: Any) -> tuple[str, str]:
    """Colour and style."""
    if isinstance(artist, Line2D):
        return to_hex(artist.get_color()), str(artist.get_linestyle())
    found = [to_rgba_array(colours) for colours in (artist.get_facecolor(), artist.get_edgecolor())]
    return next((to_hex(colours[0]) for colours in found if len(colours)), ""), ""


def _level(line: Line2D, ax: Axes) -> str:
    """A line across the whole panel: "line at x = 300"."""
    upright = line.get_transform() == ax.get_xaxis_transform()
    axis, at = ("x", line.get_xdata()) if upright else ("y", line.get_ydata())
    return f"line at {axis} = {float(next(iter(at))):.4g}"  # type: ignore[call-overload]
