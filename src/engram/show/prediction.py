"""What a law fitted on small memories says of a larger one, beside what was measured there."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from engram.show.panels import dots, finished, log_sizes, panels
from engram.show.style import THEORY, house_style


@house_style()
def prediction_figure(kinds: Sequence[dict[str, Any]]) -> Figure:
    """A panel for each kind of memory: dots that were fitted, the fit with its interval, and the width it never saw."""
    axes = panels(9.6, 7.2, 2, 2)
    for ax, kind in zip(axes.flat, kinds, strict=True):
        _draw(ax, **kind)
    return finished(*axes.flat)


def _draw(ax: Any, title: str, size: str, stores: str, law: Any, known: Any, new: Any, sizes: Any, fit: Any) -> None:
    low, middle, high = zip(*fit, strict=True)
    ax.fill_between(sizes, low, high, color="C0", alpha=0.15, lw=0, label="interval for one more seed")
    ax.plot(sizes, middle, color="C0", lw=1.3, label="fitted up to width d")
    dots(ax, known, 0)
    dots(ax, new, 1, "measured at width 2d")
    ax.plot(sizes, law[1], label=law[0], **THEORY)
    log_sizes(ax, sizes)
    ax.set(yscale="log", xlabel=size, ylabel=f"{stores} stored", title=title)
