"""Where heads look in strings of hops: alignment with find^1, find^2, …, framed where pointer doubling looks."""

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from engram.show.panels import SHADES
from engram.show.style import INK


def draw_looks(ax: Axes, rows: Mapping[str, Sequence[float]], layers: Sequence[int], title: str) -> None:
    """A named row for each head, or for the best head of a layer; `layers` says to which layer each row belongs."""
    values = np.array(list(rows.values()))
    ax.imshow(values, aspect="auto", vmin=0, vmax=1, cmap=SHADES)
    for (row, column), value in np.ndenumerate(values):
        ax.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=7, color="w" if value < 0.6 else INK)
    for layer, together in groupby(range(len(layers)), layers.__getitem__):
        if layer > 1:
            _frame(ax, list(together), 2 ** (layer - 2))
    ax.set_yticks(range(len(rows)), list(rows), fontsize=7.5)
    ax.set_xticks(range(values.shape[1]), [f"find$^{{{j + 1}}}$" for j in range(values.shape[1])], fontsize=8.5)
    ax.set_title(title)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.grid(visible=False)


def _frame(ax: Axes, rows: Sequence[int], j: int) -> None:
    ax.add_patch(Rectangle((j - 1.5, rows[0] - 0.5), 1, len(rows), fill=False, ec="C1", lw=2, clip_on=False, zorder=3))
