"""What each line, box and shape of a figure is called in the numbers beside it."""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgba_array
from matplotlib.lines import Line2D

from engram.show.literal import plain

GIVEN_BY_MATPLOTLIB = re.compile(r"_(child\d+|nolegend_|container\d+)|")


def quiet(name: str) -> str:
    """A label that the numbers beside a figure have, and its legend has not."""
    return f"_{name}"


class Names:
    """Of everything in a panel: its own label; else that of what has the same colour, here or elsewhere; else that of
    the panel."""

    def __init__(self, ax: Axes, others: Sequence["Names"]):
        self._ax, self._others = ax, others
        self._bars = {id(part): str(bars.get_label()) for bars in ax.containers for part in bars.get_children()}

    def of(self, artist: Any) -> str:
        own = self._label(artist)
        if own:
            return own
        if isinstance(artist, Line2D) and artist.get_transform() != self._ax.transData:
            return _level(artist, self._ax)
        colour, style = _look(artist)
        everywhere = (self, *self._others)
        found = (names.by_look.get(look) for names in everywhere for look in ((colour, style), (colour, "")))
        return next(filter(None, found), self.panel)

    @property
    def panel(self) -> str:
        ax = self._ax
        return plain(ax.get_title(loc="left") or ax.get_ylabel() or ax.get_xlabel() or "not named")

    @cached_property
    def by_look(self) -> dict[tuple[str, str], str]:
        """What a legend would name, by colour and style, and by colour alone."""
        found: dict[tuple[str, str], str] = {}
        for artist in (*self._ax.lines, *self._ax.collections, *self._ax.patches):
            label = self._label(artist)
            if label and not str(artist.get_label()).startswith("_"):
                colour, style = _look(artist)
                found = {(colour, ""): label, (colour, style): label} | found
        return found

    def _label(self, artist: Any) -> str:
        """What the code that drew it calls it; boxes have the name of their bars."""
        labels = (str(artist.get_label()), self._bars.get(id(artist), ""))
        given = [label for label in labels if not GIVEN_BY_MATPLOTLIB.fullmatch(label)]
        return plain(given[0].removeprefix("_")) if given else ""


def names_of(panels: Sequence[Axes]) -> list[Names]:
    """Those of each panel of a figure."""
    found: list[Names] = []
    found += [Names(ax, found) for ax in panels]
    return found


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
