"""Figures of trained hops: accuracy over the steps by what is taught, error over hops by depth, what is needed."""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.records import Record
from engram.show.curves import seed_curves
from engram.show.hop_looks import draw_looks
from engram.show.panels import MARKS, SHARE, BySize, dots_and_mean, finished, log_sizes, panels, seed_dots
from engram.show.style import CYCLE, INK, MUTED, REFERENCE, THEORY, house_style
from engram.show.subtitles import describe, headline

Runs = Mapping[str, Sequence[Record]]

RINGS = {"mfc": "none", "ms": 7, "lw": 0.8}


@house_style()
def regimes(runs: Runs, hops: Sequence[int], column: Callable[[int], str]) -> Figure:
    """A panel for each regime: accuracy on unseen sequences at every number of hops; lines where a stage begins."""
    axes = panels(11.4, 6.4, 2, (len(runs) + 1) // 2, sharex=True, sharey=True, squeeze=False).ravel()
    for ax, (regime, records) in zip(axes, runs.items(), strict=False):
        for i, k in enumerate(hops):
            seed_curves(ax, records, column(k), CYCLE[i], f"{k} hop{'s' if k > 1 else ''}")
        _mark_stages(ax, records[0])
        ax.set(title=regime, ylim=(-0.02, 1.04))
    first = next(iter(runs.values()))[0].train
    for ax in axes:
        ax.set(xlabel="training step", ylabel="accuracy")
        n = first.task.n  # type: ignore[attr-defined]
        ax.axhline(1 / n, **REFERENCE, label=f"a guess among {n} values")
    axes[0].plot([], [], color=MUTED, ls="--", lw=0.9, label="a new stage begins")
    everything = [record for records in runs.values() for record in records]
    fig = axes[0].figure
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(hops) + 2)
    about = "Compositions of permutations: accuracy on unseen sequences, by what is taught when (dashed: a new stage)"
    return headline(fig, f"{about}. {describe(everything)}")


def _mark_stages(ax: Axes, record: Record) -> None:
    for stage in record.train.plan.stages:
        ax.axvline(stage.step, color=MUTED, ls="--", lw=0.9)


@house_style()
def errors_and_looks(
    errors: Mapping[int, BySize],
    published: Mapping[int, Mapping[int, float]],
    looks: Mapping[int, Sequence[Sequence[float]]],
    about: str,
) -> Figure:
    """Errors of each depth over the number of hops; beside them where the best head of every layer looks."""
    left, right = panels(11.5, 4.6, 1, 2, width_ratios=(1.25, 1))
    _draw_errors(left, errors, published)
    rows = {f"L = {L}, layer {i}": row for L, by_layer in looks.items() for i, row in enumerate(by_layer, 1)}
    layers = [i for by_layer in looks.values() for i in range(1, len(by_layer) + 1)]
    draw_looks(right, rows, layers, "Alignment of the best head, mean over seeds")
    for row in np.cumsum([len(by_layer) for by_layer in looks.values()])[:-1]:
        right.axhline(row - 0.5, color="w", lw=3)
    fig = left.get_figure(root=True)
    fig.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return headline(fig, about)


def _draw_errors(ax: Axes, errors: Mapping[int, BySize], published: Mapping[int, Mapping[int, float]]) -> None:
    """A line for each depth, one dot per seed; rings where others published a number."""
    for i, (depth, by_hops) in enumerate(errors.items()):
        several = max(map(len, by_hops.values())) > 1
        seed_dots(ax, by_hops, CYCLE[i], f"{depth} layers{', mean and seeds' * several}", within=SHARE)
        others = published.get(depth, {})
        ax.plot(list(others), list(others.values()), "o--", **RINGS, mec=CYCLE[i], color=CYCLE[i])
    if published:
        ax.plot([], [], "o--", **RINGS, mec=INK, color=INK, label="published (100,000 steps, dropout on)")
    ax.axhline(3 / 4, **REFERENCE, label="a guess among four letters")
    ax.set(xlabel="hops k", ylabel="share answered wrongly", ylim=(-0.02, 1.02), title="Errors over k")
    ax.set_xticks(sorted({k for by_hops in errors.values() for k in by_hops}))


@house_style()
def needed(
    by_name: Mapping[str, BySize], xlabel: str, ylabel: str, title: str, theory: tuple[str, Mapping[int, float]]
) -> Figure:
    """What is needed against a size, both logarithmic: a dot per seed, a line through geometric means, and theory.

    Infinite values, and missing ones, are seeds that never got there: they stand at the upper edge, with their number.
    """
    ax = panels(7.4, 4.6)
    sizes = sorted({size for by_size in by_name.values() for size in by_size})
    for i, (name, by_size) in enumerate(by_name.items()):
        found = {size: [value for value in values if isfinite(value)] for size, values in by_size.items()}
        side_by_side = {size * 1.03 ** (2 * i - len(by_name) + 1): values for size, values in found.items() if values}
        ax.plot([], [], color=f"C{i}", marker=MARKS[i], label=f"{name}, one dot per seed")
        if side_by_side:
            dots_and_mean(ax, side_by_side, i)
        for size, values in by_size.items():
            _never(ax, size * 1.03 ** (2 * i - len(by_name) + 1), len(values) - len(found[size]), len(values), i)
    label, law = theory
    ax.plot(list(law), list(law.values()), **THEORY, label=label)
    ax.set(yscale="log", xlabel=xlabel, ylabel=ylabel, title=title)
    ax.margins(x=0.1, y=0.3)  # room for what is written at the upper edge
    log_sizes(ax, sizes)
    return finished(ax, loc="upper left", bbox_to_anchor=(0, -0.14))


def _never(ax: Axes, at: float, missed: int, seeds: int, i: int) -> None:
    """An arrow at the upper edge: so many seeds did not get there within the budget."""
    if missed:
        above = ax.get_xaxis_transform()
        ax.plot(at, 0.97, "^", color=f"C{i}", mfc="none", ms=7, transform=above)
        words = {"fontsize": 8, "color": f"C{i}", "ha": "center", "va": "top", "transform": above}
        ax.text(at, 0.94 - 0.06 * i, f"never: {missed} of {seeds}", **words)
