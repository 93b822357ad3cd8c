"""Figures of capacity: how much a memory holds against its size, theory beside measurement."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from engram.show.panels import BySize, dots, dots_and_mean, finished, log_sizes, panels
from engram.show.style import MUTED, REFERENCE, THEORY, house_style

Law = Callable[[int], float]


@house_style()
def capacity_figure(series: Mapping[str, BySize], laws: Mapping[str, Law], xlabel: str, title: str) -> Figure:
    """Left: capacity against size, one dot per seed; the first law is dashed. Right: measured over that law."""
    left, right = panels(9.6, 4.2, 1, 2, width_ratios=(1.35, 1))
    sizes = sorted({size for by_size in series.values() for size in by_size})
    line = np.unique(np.geomspace(sizes[0], sizes[-1], 60).astype(int)).tolist()
    for look, (name, law) in zip((THEORY, REFERENCE), laws.items(), strict=False):
        left.plot(line, [law(x) for x in line], label=name, **look)
    law = next(iter(laws.values()))
    for i, (name, by_size) in enumerate(series.items()):
        dots(left, by_size, i, name)
        dots_and_mean(right, {size: [value / law(int(size)) for value in by_size[size]] for size in by_size}, i)
    right.axhline(1, **THEORY)
    right.axhspan(0.85, 1.15, color=MUTED, alpha=0.12, lw=0)
    left.set(yscale="log", xlabel=xlabel, ylabel="pairs stored", title=title)
    right.set(xlabel=xlabel, ylabel="measured / law", title="Over the dashed law (grey: ± 15 %)", ylim=(0, None))
    for ax in (left, right):
        log_sizes(ax, sizes)
    return finished(left)


@house_style()
def collapse_figure(measured: BySize, law: Law, curves: Mapping[int, Sequence[Mapping[str, float]]]) -> Figure:
    """Left: N at a recall against d. Right: recall against N/d, one colour a width (all seeds), the law dashed."""
    left, right = panels(9.6, 4.2, 1, 2)
    dots(left, measured, 0, "measured, one dot per seed")
    left.plot(list(measured), [law(int(d)) for d in measured], label="1 + d/Φ⁻¹(0.95)²", **THEORY)
    left.set(yscale="log", xlabel="width d", ylabel="pairs stored", title="Two answers: pairs at 95 %")
    log_sizes(left, measured)
    for i, (d, rows) in enumerate(curves.items()):
        dots(right, [(row["N"] / d, row["accuracy"]) for row in rows], i, f"d = {d}")
    d, rows = max(curves.items())
    line = sorted({row["N"] / d: row["law"] for row in rows}.items())
    right.plot(*zip(*line, strict=True), label="Φ(√(d/(N−1)))", **THEORY)
    right.set(xlabel="N/d", ylabel="recall", ylim=(0.5, 1.02), title="One curve for all widths")
    log_sizes(right, [0.1, 0.25, 0.5, 1, 2, 4])
    return finished(left, right)


@house_style()
def flat_figure(curves: Mapping[str, BySize], xlabel: str, title: str) -> Figure:
    """Recall against a size, one dot per seed; dashed: the mean of a curve, flat as the law says."""
    ax = panels(7.4, 4.2)
    for i, (name, by_size) in enumerate(curves.items()):
        dots(ax, by_size, i, name)
        means = [float(np.mean(values)) for values in by_size.values()]
        ax.plot(list(by_size), means, color=f"C{i}", lw=1.2)
        ax.axhline(float(np.mean(means)), color=f"C{i}", ls="--", lw=0.9, alpha=0.7)
    ax.plot([], [], label="mean of each: flat if N ∝ md", **THEORY)
    ax.set(xlabel=xlabel, ylabel="recall", ylim=(0, 1.02), title=title)
    log_sizes(ax, sorted({size for by_size in curves.values() for size in by_size}))
    return finished(ax, loc="center left", bbox_to_anchor=(1, 0.5))
