"""Maps: a share between 0 and 1 over two sizes, each cell with its number."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from engram.show.panels import panels
from engram.show.style import INK, house_style

Size = tuple[int, int]
SHADES = "cividis"  # even for colour-blind readers
MEMORIES = {"W_O2": "recall.W_O2", "W_K2": "recall.W_K2", "W_K1, t < T": "recall.W_K1.t<T", "answers": "accuracy"}


def draw_grid(ax: Axes, cells: Mapping[Size, float], xlabel: str, ylabel: str) -> None:
    """The first size on the x axis, the second on the y axis, both in their order and not to scale."""
    xs, ys = sorted({x for x, _ in cells}), sorted({y for _, y in cells})
    values = np.array([[cells.get((x, y), np.nan) for x in xs] for y in ys])
    ax.imshow(values, origin="lower", aspect="auto", vmin=0, vmax=1, cmap=SHADES)
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            ax.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=7.5, color="w" if value < 0.6 else INK)
    ax.set_xticks(range(len(xs)), [str(x) for x in xs], fontsize=8.5)
    ax.set_yticks(range(len(ys)), [str(y) for y in ys], fontsize=8.5)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.grid(visible=False)


def _means(cells: Mapping[Size, Sequence[Mapping[str, float]]], column: str) -> dict[Size, float]:
    return {size: float(np.mean([row[column] for row in rows])) for size, rows in cells.items()}


@house_style()
def recall_maps(
    widths: Mapping[Size, Sequence[Mapping[str, float]]],
    lengths: Mapping[str, Mapping[Size, Sequence[Mapping[str, float]]]],
) -> Figure:
    """Above, recall of each memory over width and samples; below, what step 2 wrote over tokens and length."""
    above, below = panels(13.2, 6.6, 2, 4)
    for ax, (title, column) in zip(above, MEMORIES.items(), strict=True):
        draw_grid(ax, _means(widths, column), "width d", "sequences n")
        ax.set_title(title)
    shown = [(kind, column) for kind in lengths for column in ("positive.W_K2", "recall.W_K2")]
    for ax, (kind, column) in zip(below, shown, strict=True):
        draw_grid(ax, _means(lengths[kind], column), "tokens N", "length T")
        ax.set_title(f"{'W_K2 recalled' if 'recall' in column else 'positive diagonal of W_K2'}\n{kind}", fontsize=9)
    fig = above[0].figure
    shades = ScalarMappable(Normalize(0, 1), SHADES)
    fig.colorbar(shades, ax=fig.axes, label="share, mean over seeds", shrink=0.6, pad=0.01)
    return fig
