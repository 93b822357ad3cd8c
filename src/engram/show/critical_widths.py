"""Figures of finite width and samples: critical widths against sizes, and the map of what is learned where."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from engram.records.files import Row
from engram.show.panels import SHADES, BySize, dots_and_mean, draw_grid, finished, log_sizes, panels
from engram.show.style import INK, THEORY, house_style

Size = tuple[int, int]
RowsByKind = Mapping[str, Sequence[Sequence[Row]]]  # of every seed
Cells = Mapping[Size, Sequence[Mapping[str, float]]]  # rows over seeds
MEMORIES = {"W_O2": "recall.W_O2", "W_K2": "recall.W_K2", "W_K1, t < T": "recall.W_K1.t<T", "answers": "accuracy"}
ASKED = {"label": "To answer right", "mark": "To attend to the mark"}


@house_style()
def critical_widths(
    found: Mapping[tuple[str, str], BySize],
    slopes: Mapping[tuple[str, str], float],
    N: int,
    cells: Mapping[Size, Mapping[str, float]],
    law: Mapping[int, float],
) -> Figure:
    """Above, critical widths against the vocabulary; below, what is learned over length and width."""
    above, below = panels(12.4, 10, 2, 2)
    colours = {kind: i for i, kind in enumerate(dict.fromkeys(kind for kind, _ in found))}
    for ax, asked in zip(above, ASKED, strict=True):
        for kind in (kind for kind, what in found if what == asked):
            words = f"{kind.replace(' times the', '×')}: slope {slopes[kind, asked]:.2f}"
            dots_and_mean(ax, found[kind, asked], colours[kind], words)
        _slope_guides(ax, found["T = 4", asked])
        _log_axes(
            ax, sorted({N for sizes in found.values() for N in sizes}), "tokens N", f"{ASKED[asked]}: width needed"
        )
        ax.set_ylim(top=9 * ax.get_ylim()[1])  # room for the legend
        ax.legend(loc="upper left", ncols=2)
    for ax, asked in zip(below, ASKED, strict=True):
        _phases(ax, {size: shares[asked] for size, shares in cells.items()})
        limits = ax.get_ylim()
        ax.plot([], [], color="w", lw=1.4, label="measured: 0.9 of the sequences")
        if asked == "mark":
            ax.plot(
                list(law), list(law.values()), color="#D55E00", ls="--", lw=1.6, label="theory of attention (κ = 4)"
            )
        ax.set(ylim=limits, title=f"{ASKED[asked]}: share of sequences, N = {N}")
        ax.legend(loc="upper left", labelcolor=INK, frameon=True, facecolor="#b9bec4", framealpha=0.9)
    fig = above[0].figure
    fig.colorbar(below[-1].collections[0], ax=below, label="share of fresh sequences, mean over codebooks", shrink=0.8)
    return fig


def _slope_guides(ax: Axes, reference: BySize) -> None:
    """√N and N, through the first width for T = 4."""
    N = np.array(list(reference), dtype=float)
    first = float(np.exp(np.mean(np.log(next(iter(reference.values()))))))
    for power, style, name in ((0.5, "--", "√N"), (1.0, ":", "N")):
        ax.plot(N, first * (N / N[0]) ** power, color=INK, ls=style, lw=1.1, label=f"guide: like {name}")


def _log_axes(ax: Axes, ticks: Sequence[int], xlabel: str, title: str) -> None:
    ax.set(yscale="log", xlabel=xlabel, ylabel="critical width d", title=title)
    log_sizes(ax, ticks)
    ax.legend()


def _phases(ax: Axes, cells: Mapping[Size, float]) -> None:
    """Both axes to scale; the line is where the share passes 0.9."""
    lengths, widths = sorted({T for T, _ in cells}), sorted({d for _, d in cells})
    values = np.array([[cells[T, d] for T in lengths] for d in widths])
    ax.pcolormesh(lengths, widths, values, vmin=0, vmax=1, cmap=SHADES, shading="nearest")
    if values.min() < 0.9 < values.max():
        ax.contour(lengths, widths, values, levels=[0.9], colors="w", linewidths=1.4)
    ax.set(yscale="log", xlabel="length T", ylabel="width d")
    log_sizes(ax, lengths)
    ax.set_yticks(widths[::2], [str(d) for d in widths[::2]])
    ax.minorticks_off()
    ax.grid(visible=False)


@house_style()
def widths_along(measured: Mapping[str, BySize], theory: BySize, control: BySize, direct: RowsByKind) -> Figure:
    """Signal and noise over their laws; and the width at which the mark is found, along each size, with the law."""
    first, *axes = panels(15, 4.4, 1, 1 + len(measured), width_ratios=(1.2, 1, 1, 1))
    _over_laws(first, direct)
    for ax, (title, by_size) in zip(axes, measured.items(), strict=True):
        dots_and_mean(ax, by_size, 0, "measured, label counts as drawn")
        ax.plot(list(by_size), theory[title], **THEORY, label="law (κ = 4)")
        if ax is axes[-1]:
            dots_and_mean(ax, control, 1, "equal label counts")
        _log_axes(ax, list(by_size), title, f"Width needed, by {title}")
        ax.set_ylim(top=2.2 * ax.get_ylim()[1])  # room for the legend
        ax.legend(loc="upper left")
    return finished(first)


def _over_laws(ax: Axes, direct: RowsByKind) -> None:
    looks = {"drawn": ("-", "label counts as drawn"), "equal": (":", "equal label counts")}
    widths = [row["d"] for row in direct["drawn"][0]]
    for kind, runs in direct.items():
        style, name = looks[kind]
        for i, column in enumerate(("signal", "noise")):
            means = np.mean([[row[column] for row in rows] for rows in runs], axis=0)
            ax.plot(widths, means, style, marker="o", ms=3.5, color=f"C{2 + i}", label=f"{column}, {name}")
    ax.axhline(1, **THEORY, label="law")
    ax.set(xlabel="width d", ylabel="part of w, over its law", ylim=(0, 1.9), title="Signal and noise of one step")
    log_sizes(ax, widths)


def _means(cells: Cells, column: str) -> dict[Size, float]:
    return {size: float(np.mean([row[column] for row in rows])) for size, rows in cells.items()}


@house_style()
def recall_maps(widths: Cells, lengths: Mapping[str, Cells]) -> Figure:
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
