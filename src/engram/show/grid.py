"""The grid of optimisers as small multiples: error against width, a panel for each model, optimiser and layer norm."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.show.panels import MARKS, log_sizes, panels
from engram.show.series import quiet
from engram.show.style import house_style
from engram.show.subtitles import headline

Way = tuple[str, str, bool]
Found = Mapping[tuple[int, float], tuple[Sequence[float], float]]  # by d and γ: our errors, the published mean
LEAST = 1e-5  # errors of 0 are drawn here


@house_style()
def small_multiples(found: Mapping[Way, Found], widths: Sequence[int], rates: Sequence[float], where: str) -> Figure:
    """Lines and dots are our means, with all seeds behind; rings are what was published."""
    axes = panels(12.5, 8.4, 3, 4, sharex=True, sharey=True)
    for ax, (way, cells) in zip(axes.flat, found.items(), strict=True):
        for i, rate in enumerate(rates):
            _draw(ax, cells, widths, rate, i)
        norm = ", layer norm" if way[2] else ""
        ax.set_title(f"{way[0]}, {'signs' if way[1] == 'sign' else 'SGD'}{norm}", fontsize=9.5)
        ax.set(yscale="log")
        log_sizes(ax, widths)
    for ax in axes[-1]:
        ax.set_xlabel("width d")
    for ax in axes[:, 0]:
        ax.set_ylabel("error")
    axes[0, 0].legend(fontsize=7.5, ncols=2)
    seeds = max(len(ours) for cells in found.values() for ours, _ in cells.values())
    return headline(
        axes[0, 0].get_figure(root=True),
        f"Error on Zipf data, {where}: ours (small dots: {seeds} seeds, lines: means), and published (rings)",
    )


def _draw(ax: Axes, cells: Found, widths: Sequence[int], rate: float, i: int) -> None:
    colour, label, shown = f"C{i}", f"γ = {rate:g}", [d for d in widths if (d, rate) in cells]
    ours = [(d, max(error, LEAST)) for d in shown for error in cells[d, rate][0]]
    published = [(d, max(cells[d, rate][1], LEAST)) for d in shown if not np.isnan(cells[d, rate][1])]
    small: dict[str, Any] = {"ms": 2.5, "alpha": 0.25}
    rings: dict[str, Any] = {"mfc": "none", "mec": colour, "ms": 9, "mew": 1.1, "zorder": 4}
    for points, mark, words, look in ((ours, MARKS[i], "seeds", small), (published, "o", "published", rings)):
        if points:
            ax.plot(*zip(*points, strict=True), mark, color=colour, label=quiet(f"{label}, {words}"), **look)
    means = [max(float(np.mean(cells[d, rate][0])), LEAST) for d in shown]
    ax.plot(shown, means, color=colour, marker=MARKS[i], ms=4, lw=1.3, label=label)
