"""Published models of hop_k: errors over k beside the published ones, and where every head looks."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from engram.show.panels import SHADES
from engram.show.style import INK, REFERENCE, house_style
from engram.show.subtitles import headline

Errors = Mapping[tuple[int, bool], np.ndarray]  # by depth, and whether dropout is on: seeds × k
Published = Mapping[int, Mapping[int, float]]
Looks = Mapping[tuple[int, int], np.ndarray]  # alignment of each head, by layer and j


@house_style()
def hops_and_looks(errors: Errors, published: Published, maps: Mapping[int, Looks], about: str) -> Figure:
    """Errors of each depth, and a map of heads and find^j for each."""
    heights = [sum(len(heads) for (_, j), heads in looks.items() if j == 1) for looks in maps.values()]
    fig = Figure(figsize=(12.4, 6))
    left, right = fig.add_gridspec(1, 2, width_ratios=(1.25, 1))
    ax = fig.add_subplot(left)
    for i, L in enumerate(published):
        _draw_errors(ax, errors, published[L], L, f"C{i}")
    ax.set(xlabel="hops k", ylabel="share of letters that is wrong", title="Errors over k", ylim=(-0.02, 0.9))
    ax.legend(loc="lower right")
    rows = right.subgridspec(len(maps), 1, height_ratios=heights)
    for i, (L, looks) in enumerate(maps.items()):
        _draw_map(fig.add_subplot(rows[i]), looks, L, is_last=i == len(maps) - 1)
    words = "L2H3 is layer 2, head 3; framed: where pointer doubling would look; shaded: range of the seeds"
    return headline(fig, f"{about}. {words}")


def _draw_errors(ax: Axes, errors: Errors, published: Mapping[int, float], L: int, colour: str) -> None:
    """Without dropout as a line, with it dashed, each with the range of the seeds; the published errors as rings."""
    for dropout, style, label in ((False, "o-", "no dropout"), (True, "--", "dropout on")):
        found = errors[L, dropout]
        k = np.arange(found.shape[1])
        ax.fill_between(k, found.min(axis=0), found.max(axis=0), color=colour, alpha=0.15, lw=0)
        ax.plot(k, found.mean(axis=0), style, color=colour, ms=3.5, lw=1.4, label=f"L = {L}, {label}")
    rings = {"mfc": "none", "mec": INK, "ms": 7, "mew": 1.1}
    ax.plot(list(published), list(published.values()), "o", **rings, label="published" if L == 2 else None)
    ax.axvline(2 ** (L - 1), **REFERENCE)
    ax.annotate(f"$2^{{{L - 1}}}$", (2 ** (L - 1) + 0.1, 0.85), fontsize=9, color=colour)


def _draw_map(ax: Axes, looks: Looks, L: int, is_last: bool) -> None:
    """Heads from top to bottom, find^1, find^2, … from left to right; framed: where pointer doubling looks."""
    layers, farthest = sorted({layer for layer, _ in looks}), max(j for _, j in looks)
    values = np.concatenate([np.stack([looks[layer, j] for j in range(1, farthest + 1)], axis=1) for layer in layers])
    ax.imshow(values, aspect="auto", vmin=0, vmax=1, cmap=SHADES)
    for (row, column), value in np.ndenumerate(values):
        ax.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=7, color="w" if value < 0.6 else INK)
    for layer in layers[1:]:
        H, first = len(looks[layer, 1]), sum(len(looks[before, 1]) for before in layers if before < layer)
        ax.add_patch(Rectangle((2 ** (layer - 2) - 1.5, first - 0.5), 1, H, fill=False, ec="C1", lw=2))
    names = [f"L{layer}H{h}" for layer in layers for h in range(1, len(looks[layer, 1]) + 1)]
    ax.set_yticks(range(len(names)), names, fontsize=7.5)
    ax.set_xticks(range(farthest), [f"find$^{{{j}}}$" for j in range(1, farthest + 1)] if is_last else [], fontsize=8.5)
    ax.set_title(f"L = {L}: alignment in strings with k = {2 ** (L - 1) - 1}")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.grid(visible=False)
