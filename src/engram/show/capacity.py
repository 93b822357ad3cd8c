"""Figures of capacity: how much a memory holds against its size, theory beside measurement."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.show.style import INK, MUTED, house_style

Law = Callable[[int], float]
BySize = Mapping[Any, Sequence[float]]  # values over seeds, by a size
MARKS = "os^Dv"
THEORY: dict[str, Any] = {"color": INK, "ls": "--", "lw": 1.3}
ASYMPTOTE: dict[str, Any] = {"color": MUTED, "ls": ":", "lw": 1.3}


@house_style()
def capacity_figure(series: Mapping[str, BySize], laws: Mapping[str, Law], xlabel: str, title: str) -> Figure:
    """Left: capacity against size, one dot a seed; the first law is dashed. Right: measured over that law."""
    fig = Figure(figsize=(9.6, 4.2))
    left, right = fig.subplots(1, 2, width_ratios=(1.35, 1))
    sizes = sorted({size for by_size in series.values() for size in by_size})
    line = np.unique(np.geomspace(sizes[0], sizes[-1], 60).astype(int)).tolist()
    for look, (name, law) in zip((THEORY, ASYMPTOTE), laws.items(), strict=False):
        left.plot(line, [law(x) for x in line], label=name, **look)
    law = next(iter(laws.values()))
    for i, (name, by_size) in enumerate(series.items()):
        dots(left, by_size, i, name)
        ratios = {size: [value / law(int(size)) for value in values] for size, values in by_size.items()}
        dots(right, ratios, i, None)
        right.plot(list(ratios), [np.exp(np.mean(np.log(values))) for values in ratios.values()], color=f"C{i}", lw=1.2)
    right.axhline(1, **THEORY)
    right.axhspan(0.85, 1.15, color=MUTED, alpha=0.12, lw=0)
    left.set(yscale="log", xlabel=xlabel, ylabel="pairs stored", title=title)
    right.set(xlabel=xlabel, ylabel="measured / law", title="Over the dashed law (grey: ± 15 %)", ylim=(0, None))
    _finish(left, right, at=sizes)
    return fig


@house_style()
def collapse_figure(measured: BySize, law: Law, curves: Mapping[int, Sequence[Mapping[str, float]]]) -> Figure:
    """Left: N at a recall against d. Right: recall against N/d, one colour a width (all seeds), the law dashed."""
    fig = Figure(figsize=(9.6, 4.2))
    left, right = fig.subplots(1, 2)
    dots(left, measured, 0, "measured, one dot a seed")
    left.plot(list(measured), [law(int(d)) for d in measured], label="1 + d/Φ⁻¹(0.95)²", **THEORY)
    left.set(yscale="log", xlabel="width d", ylabel="pairs stored", title="Two answers: pairs at 95 %")
    for i, (d, rows) in enumerate(curves.items()):
        points = [row["N"] / d for row in rows], [row["accuracy"] for row in rows]
        right.plot(*points, MARKS[i], ms=5, alpha=0.6, label=f"d = {d}")
    d, rows = max(curves.items())
    line = sorted({row["N"] / d: row["law"] for row in rows}.items())
    right.plot(*zip(*line, strict=True), label="Φ(√(d/(N−1)))", **THEORY)
    right.set(xlabel="N/d", ylabel="recall", ylim=(0.5, 1.02), title="One curve for all widths")
    _finish(left, at=list(measured))
    _finish(right, at=[0.1, 0.25, 0.5, 1, 2, 4])
    return fig


@house_style()
def flat_figure(curves: Mapping[str, BySize], xlabel: str, title: str) -> Figure:
    """Recall against a size, one dot a seed; dashed: the mean of a curve, flat as the law says."""
    fig = Figure(figsize=(7.4, 4.2))
    ax = fig.subplots()
    for i, (name, by_size) in enumerate(curves.items()):
        dots(ax, by_size, i, name)
        means = [float(np.mean(values)) for values in by_size.values()]
        ax.plot(list(by_size), means, color=f"C{i}", lw=1.2)
        ax.axhline(float(np.mean(means)), color=f"C{i}", ls="--", lw=0.9, alpha=0.7)
    ax.plot([], [], label="flat: N ∝ md", **THEORY)
    ax.set(xlabel=xlabel, ylabel="recall", ylim=(0, 1.02), title=title)
    _finish(ax, at=list(next(iter(curves.values()))))
    ax.legend(fontsize=8.5, loc="center left", bbox_to_anchor=(1, 0.5))
    return fig


def dots(ax: Axes, by_size: BySize, i: int, label: str | None) -> None:
    """One dot a seed."""
    points = [(size, value) for size, values in by_size.items() for value in values]
    ax.plot(*zip(*points, strict=True), MARKS[i], color=f"C{i}", ms=5, alpha=0.65, label=label)


def _finish(*axes: Axes, at: Sequence[float]) -> None:
    """Logarithmic sizes with ticks where something was measured (every other one where there are many)."""
    shown = at if len(at) < 8 else at[::2]
    for ax in axes:
        ax.set_xscale("log")
        ax.set_xticks(shown, [f"{size:g}" for size in shown])
        ax.minorticks_off()
        ax.grid()
    axes[0].legend(fontsize=8.5)
