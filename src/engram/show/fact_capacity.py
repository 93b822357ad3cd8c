"""Figures of factual recall: facts against parameters, attention against MLP, constructions, bits."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from engram.records.files import Row
from engram.show.grids import draw_grid
from engram.show.style import INK, house_style

Stored = Mapping[float, Sequence[float]]
MARKS = "os^Dv"


@house_style()
def facts_by_parameters(groups: Mapping[str, Stored], published: float, title: str) -> Figure:
    """Facts at 99 % over parameters, beside the published line."""
    fig = Figure(figsize=(6.8, 4.6))
    ax = fig.subplots()
    for i, (name, stored) in enumerate(groups.items()):
        points = np.array([(p, n) for p, facts in sorted(stored.items()) for n in facts])
        ax.plot(*points.T, MARKS[i], color=f"C{i}", ms=6, alpha=0.75, label=name)
    ends = np.array([min(map(min, groups.values())), max(map(max, groups.values()))])
    ax.plot(ends, published * ends, color=INK, ls="--", lw=1.2, label=f"{published:g} facts a parameter (published)")
    ax.set(
        xscale="log", yscale="log", xlabel="parameters 4·H·d_h·d + 2·m·d", ylabel="facts stored at 99 %", title=title
    )
    ax.grid(which="both", alpha=0.5)
    ax.legend(fontsize=8.5)
    return fig


@house_style()
def trade_off(cells: Mapping[tuple[int, int], float], facts: int, published: Sequence[tuple[int, int]]) -> Figure:
    """Accuracy over the parameters of attention and of the MLP; right of the published boundary all facts are known."""
    fig = Figure(figsize=(7.4, 5))
    ax = fig.subplots()
    draw_grid(ax, cells, "attention: d·d_h·H", "MLP: d·m")
    ax.set_title(f"Best accuracy on {facts} facts")
    if published:
        xs, ys = (sorted({size[i] for size in cells}) for i in (0, 1))
        line = [[np.interp(point[i], axis, range(len(axis))) for point in published] for i, axis in enumerate((xs, ys))]
        ax.plot(*line, color="#D55E00", lw=2, ls="--", label="published boundary (read off its figure)")
        fig.legend(loc="outside lower center", fontsize=8.5)
    return fig


@house_style()
def constructions(histogram: Sequence[Row], by_width: Mapping[int, float], by_units: Mapping[int, float]) -> Figure:
    """Left: scores of answers by the number of sets they lie in. Right: accuracy over width and over MLP units."""
    fig = Figure(figsize=(11.4, 4))
    left, middle, right = fig.subplots(1, 3, width_ratios=(1.6, 1, 1))
    edges = [row["score"] for row in histogram]
    for i, (count, name) in enumerate({2: "in A_s and A_r: right", 1: "in one of them", 0: "in none"}.items()):
        shares = [row[f"share.{count}"] for row in histogram]
        left.fill_between(edges, shares, step="post", color=f"C{i}", alpha=0.6, lw=0, label=name)
    left.set(xlabel="score of an answer", ylabel="share of its kind", title="Attention only: scores count sets")
    left.set_ylim(0, left.get_ylim()[1] * 1.3)
    left.legend(fontsize=8.5)
    for ax, found, size, title in (
        (middle, by_width, "width d", "Attention only"),
        (right, by_units, "MLP units m", "Attention and MLP"),
    ):
        ax.plot(list(found), list(found.values()), "o-", color="C0")
        ax.set(xscale="log", xlabel=size, ylabel="facts recalled", ylim=(0, 1.03), title=title)
        ax.set_xticks(list(found), [str(n) for n in found])
        ax.minorticks_off()
        ax.grid(axis="y")
    return fig


@house_style()
def stored_and_used(found: Mapping[str, Sequence[Mapping[str, float]]]) -> Figure:
    """Bits known of the book against bits of the rounded weights; nothing can lie above the line."""
    fig = Figure(figsize=(6.4, 4.6))
    ax = fig.subplots()
    for i, (name, rows) in enumerate(found.items()):
        levels = sorted({int(row["levels"]) for row in rows})
        label = f"{name}: {levels[0]}{f'–{levels[-1]}' if len(levels) > 1 else ''} levels a weight"
        ax.plot(
            [row["used"] for row in rows], [row["stored"] for row in rows], MARKS[i % 5], color=f"C{i}", label=label
        )
    ends = np.array(ax.get_xlim())
    ax.plot(ends, ends, color=INK, ls="--", lw=1.2, label="bound: one bit stored for each used")
    ax.set(xscale="log", yscale="log", xlabel="bits used", ylabel="bits stored", title="Trained models near capacity")
    ax.legend(fontsize=8.5)
    ax.grid()
    return fig
