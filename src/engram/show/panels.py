"""What panels of many figures share: legends, axes of sizes, seeds as dots or as lines with their mean."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from math import log
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from scipy.special import stdtrit

from engram.records.thinning import thinned
from engram.show.series import quiet
from engram.show.style import INK, SMALLEST

SHADES = "cividis"  # even for colour-blind readers
BySize = Mapping[Any, Sequence[float]]  # values over seeds, by a size
MARKS = "os^Dv"
NEAR = 0.12  # in logarithms: 121 and 128
FEW_TOKENS = 48  # have room for their marks in one row
INTERVAL, CUT = "interval", "interval, cut"  # the gid of what shows a 95 % interval: the line above a figure says so
ANY, SHARE = (-np.inf, np.inf), (0.0, 1.0)  # where intervals are drawn: those of shares end at 0 and 1


def panels(width: float, height: float, rows: int = 1, columns: int = 1, **layout: Any) -> Any:
    """The panels of a new figure of this size, as `Figure.subplots` gives them."""
    return Figure(figsize=(width, height)).subplots(rows, columns, **layout)


def finished(*axes: Axes, **look: Any) -> Figure:
    """The figure of these panels, each of which gets a legend."""
    for ax in axes:
        ax.legend(**look)
    fig = axes[0].get_figure(root=True)
    assert fig is not None
    return fig


def legends_below(*axes: Axes, ncols: int = 2, **look: Any) -> Figure:
    """The figure of these panels, each with a legend below it: where curves fill the whole panel."""
    return finished(*axes, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=ncols, **look)


def log_sizes(ax: Axes, sizes: Iterable[float]) -> None:
    """A logarithmic axis with ticks where something was measured (at every other size where there are many)."""
    shown = _apart(sizes)
    shown = shown if len(shown) < 8 else shown[::2]
    ax.set_xscale("log")
    ax.grid(axis="x")
    if len(shown) < 2:
        return  # the style numbers the axis
    ax.set_xticks(shown, [f"{size:g}" for size in shown])
    ax.set_xticks([], minor=True)


def _apart(sizes: Iterable[float]) -> list[float]:
    """Without sizes so near to the one before that their numbers would lie on each other."""
    found: list[float] = []
    for size in sizes:
        if not found or abs(log(size / found[-1])) > NEAR:
            found.append(size)
    return found


def token_ticks(axis: Axis, marks: Sequence[str], every: int = 1) -> None:
    """A legible mark for each token (or every n-th): neighbours stand in two rows, so that they do not touch."""
    shown = [*range(0, len(marks), every)]
    rows = [(shown, False)] if every > 1 or len(shown) < FEW_TOKENS else [(shown[::2], False), (shown[1::2], True)]
    for places, minor in rows:
        axis.set_ticks(places, [marks[place] for place in places], minor=minor, fontsize=SMALLEST)
    axis.set_tick_params(which="both", length=0)
    axis.set_tick_params(which="major", pad=1.5)
    axis.set_tick_params(which="minor", pad=8)


def listed(ax: Axes) -> None:
    """Rows of bars or intervals, the first one above, with lines across them."""
    ax.invert_yaxis()
    ax.grid(visible=False)
    ax.grid(axis="x")


def dots(ax: Axes, points: BySize | Sequence[tuple[float, float]], i: int, label: str | None = None) -> None:
    """One dot a seed, in the i-th colour and shape: points, or values by size."""
    if isinstance(points, Mapping):
        points = [(size, value) for size, values in points.items() for value in values]
    ax.plot(*zip(*points, strict=True), MARKS[i % len(MARKS)], color=f"C{i}", ms=5, alpha=0.65, label=label)


def dots_and_mean(ax: Axes, by_size: BySize, i: int, label: str | None = None) -> None:
    """One dot a seed, and a line through the geometric means with their intervals."""
    dots(ax, by_size, i)
    sizes = [size for size, values in by_size.items() if len(values)]
    logs = [np.log(by_size[size]) for size in sizes]
    means, ends = [np.exp(np.mean(one)) for one in logs], [np.exp(_ends(one)) for one in logs]
    ax.plot(sizes, means, color=f"C{i}", lw=1.3, label=label)
    bars(ax, sizes, ends, f"C{i}")


def seed_dots(
    ax: Axes, by_size: BySize, colour: str, label: str, within: tuple[float, float] = ANY, **mean: Any
) -> None:
    """One dot a seed, and a line through their means with their intervals."""
    sizes = sorted(by_size)
    points = [(size, value) for size in sizes for value in by_size[size]]
    ax.plot(*zip(*points, strict=True), "o", color=colour, ms=3.5, alpha=0.4, label=quiet(f"{label}, seeds"))
    ax.plot(sizes, [np.mean(by_size[size]) for size in sizes], color=colour, lw=1.6, label=label, **mean)
    several = [size for size in sizes if len(by_size[size]) > 1]  # one seed has no interval
    if several:
        bars(ax, several, [_ends(by_size[size]) for size in several], colour, within=within)


def bars(
    ax: Axes, places: Any, ends: Sequence[Any], colour: str, across: bool = False, within: tuple[float, float] = ANY
) -> None:
    """The interval at each place, upright, or across where values lie on the x axis."""
    draw = ax.hlines if across else ax.vlines
    low, high = np.transpose(np.asarray(ends, dtype=float))
    draw(places, *cut(low, high, within), color=colour, lw=1.8, alpha=0.8, gid=interval_id(low, high, within))


def cut(low: Any, high: Any, within: tuple[float, float]) -> tuple[Any, Any]:
    """The part of intervals that can be: Student's interval of a mean of shares may leave [0, 1]."""
    return np.clip(low, *within), np.clip(high, *within)


def interval_id(low: Any, high: Any, within: tuple[float, float]) -> str:
    return CUT if np.any(low < within[0]) or np.any(high > within[1]) else INTERVAL


def mean_interval(values: Any, axis: int = 0) -> tuple[Any, Any]:
    """Both ends of the 95 % interval of the mean over seeds, by Student's t; of a single seed the mean itself."""
    values = np.asarray(values, dtype=float)
    n, mean = values.shape[axis], values.mean(axis=axis)
    spread = values.std(axis=axis, ddof=1) if n > 1 else np.zeros_like(mean)
    half = stdtrit(max(n - 1, 1), 0.975) * spread / np.sqrt(n)
    return mean - half, mean + half


def _ends(values: Any) -> Any:
    return np.array(mean_interval(values))


def lines(ax: Axes, curves: Iterable[tuple[Any, Any]], label: str, **look: Any) -> None:
    """One line a seed; the first names them all."""
    for n, curve in enumerate(curves):
        ax.plot(*curve, label=label if n == 0 else None, **look)


def lines_and_mean(
    ax: Axes,
    curves: Sequence[tuple[Any, Any]],
    colour: str,
    label: str,
    ls: str = "-",
    within: tuple[float, float] = ANY,
    **mean: Any,
) -> None:
    """Each seed as a faint line; their mean, where all were measured, as a strong one with its interval."""
    for curve in curves if len(curves) > 1 else []:
        _plot_thinned(ax, *curve, color=colour, lw=0.6, alpha=0.25, ls=ls, label=quiet(f"{label}, one seed"))
    mean_and_interval(ax, curves, colour, label, ls, within, **mean)


def mean_and_interval(
    ax: Axes,
    curves: Sequence[tuple[Any, Any]],
    colour: str,
    label: str,
    ls: str = "-",
    within: tuple[float, float] = ANY,
    **mean: Any,
) -> None:
    """The mean of all seeds, where all were measured, in the band of its interval."""
    shared = reduce(np.intersect1d, [np.asarray(x) for x, _ in curves])
    values = np.array([np.asarray(y)[np.isin(x, shared)] for x, y in curves], dtype=float)
    if len(curves) > 1:
        low, high = mean_interval(values)
        shown = thinned(shared, values.mean(axis=0))
        look = {"color": colour, "alpha": 0.18, "lw": 0, "gid": interval_id(low, high, within)}
        low, high = cut(low[shown], high[shown], within)
        ax.fill_between(shared[shown], low, high, label=quiet(f"{label}: 95 % interval"), **look)
    _plot_thinned(ax, shared, values.mean(axis=0), color=colour, lw=1.8, label=label, ls=ls, **mean)


def averaged(curve: tuple[Any, Any], stretches: int = 125) -> tuple[Any, Any]:
    """A curve of many noisy steps as its means over equal stretches; of few steps as it is."""
    steps, values = map(np.asarray, curve)
    each = max(1, len(steps) // stretches)
    whole = len(steps) // each * each
    return tuple(part[:whole].reshape(-1, each).mean(axis=1) for part in (steps, values))  # type: ignore[return-value]


def _plot_thinned(ax: Axes, steps: Any, values: Any, **look: Any) -> None:
    """Of very many points those that can be seen."""
    steps, values = np.asarray(steps), np.asarray(values)
    shown = thinned(steps, values)
    ax.plot(steps[shown], values[shown], **look)


def draw_grid(ax: Axes, cells: Mapping[tuple[int, int], float], xlabel: str, ylabel: str) -> None:
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
