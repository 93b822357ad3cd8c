"""Published models of hop_k: errors over k beside the published ones, and where every head looks."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.show.hop_looks import draw_looks
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
    """Heads from top to bottom, find^1, find^2, … from left to right."""
    heads = [(layer, h) for layer in sorted({layer for layer, _ in looks}) for h in range(len(looks[layer, 1]))]
    every = range(1, max(j for _, j in looks) + 1)
    rows = {f"L{layer}H{h + 1}": [looks[layer, j][h] for j in every] for layer, h in heads}
    draw_looks(ax, rows, [layer for layer, _ in heads], f"L = {L}: alignment in strings with k = {2 ** (L - 1) - 1}")
    if not is_last:
        ax.set_xticks([])
