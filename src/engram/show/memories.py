"""Memories as in Fig. 7: the score of every question with every answer, and how strong each association is."""

from collections.abc import Sequence
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from engram.memory.stored import Stored
from engram.probes.recall import strengths
from engram.records import Record
from engram.show.literal import literal
from engram.show.panels import bars, mean_interval, panels, token_ticks
from engram.show.style import CYCLE, MUTED, house_style
from engram.show.subtitles import describe, headline
from engram.tasks import Bigram

MOST_LETTERS, MOST_WORDS = 80, 32  # that can be read on an axis
MOST_BESIDE = 2  # maps: with more, letters are too small where the picture is as wide as a page
GOES_WITH = {"W_O2": "frequency", "W_K2": "frequency", "W_K1": "position"}  # the strength of an association


@house_style()
def memory_maps(record: Record, step: int | None = None) -> Figure:
    """Every memory of a model in its association basis, as in Fig. 7: one that recalls has a dark red diagonal."""
    memories = record.memories(step)
    columns = min(len(memories), MOST_BESIDE)
    rows = ceil(len(memories) / columns)
    grid = panels(5.2 * columns, 5.2 * rows + 0.2, rows, columns, squeeze=False).ravel().tolist()
    axes = grid[: len(memories)]
    draw_maps(axes, memories)
    for ax in grid[len(memories) :]:
        ax.set_axis_off()
    at = record.snapshot_steps[-1] if step is None else step
    about = f"Scores of every question (row) with every answer (column) at step {at}: red above 0, blue below"
    return headline(axes[0].figure, f"{about}. {describe([record])}")


def draw_maps(axes: Sequence[Axes], memories: Sequence[Stored]) -> None:
    """A map for each memory, all on one scale."""
    images = [draw_map(ax, memory) for ax, memory in zip(axes, memories, strict=True)]
    label = "score / standard deviation of the panel"
    axes[0].figure.colorbar(images[0], ax=axes, shrink=0.8, extend="both", pad=0.01, label=label)


def draw_map(ax: Axes, memory: Stored) -> AxesImage:
    """One memory; positions have an axis of numbers, other questions and answers their marks, if there is room."""
    words, scores = memory.labels, memory.scores().float().cpu().numpy()
    in_spreads = scores / (scores.std() or 1.0)  # so that panels can share a scale
    image = ax.imshow(in_spreads, cmap="RdBu_r", norm=TwoSlopeNorm(0, -6, 6), interpolation="nearest")
    ax.set(title=literal(words.title), ylabel=literal(words.asks), xlabel=literal(words.answers))
    ax.spines[:].set_visible(False)
    ax.grid(visible=False)
    places = [(ax.yaxis, words.rows), (ax.xaxis, words.columns)]
    if all(mark.isdecimal() for _, marks in places for mark in marks):
        top, left = int(words.rows[0]), int(words.columns[0])
        image.set_extent((left - 0.5, left + len(words.columns) - 0.5, top + len(words.rows) - 0.5, top - 0.5))
        return image
    for axis, marks in places:
        letters = max(map(len, marks)) <= 2 and len(marks) <= MOST_LETTERS
        every = 1 if letters else ceil(len(marks) / MOST_WORDS)  # words need room, and long ones stand upright below
        token_ticks(axis, [*map(literal, marks)], every)
    ax.tick_params(axis="x", rotation=90 if max(map(len, words.columns)) > 2 else 0)
    return image


@house_style()
def strengths_and_maps(records: Sequence[Record]) -> Figure:
    """Maps and diagonals of the first training that keeps its weights; what the strengths go with in all seeds."""
    shown = next((record for record in records if record.snapshot_steps), None)
    fig = Figure(figsize=(15, 11.6) if shown else (11, 3.4))
    *parts, below = fig.subfigures(3 if shown else 1, 1, height_ratios=[1.7, 1, 1] if shown else [1], squeeze=False)[
        :, 0
    ]
    if shown:
        draw_maps(list(parts[0].subplots(1, 3)), [memory for memory in shown.memories() if memory.has_answers])
        _diagonals(list(parts[1].subplots(1, 3)), shown)
    _correlations(below.subplots(1, 2, sharey=True).tolist(), records)
    about = "How strong the right answers of each memory are: one dot per seed, ring and bar: mean"
    return headline(fig, f"{about}. {describe(records)}")


def _diagonals(axes: Sequence[Axes], record: Record) -> None:
    """Strength over what makes an association frequent: its token, or its position."""
    task = record.train.task
    assert isinstance(task, Bigram)
    found = strengths(record.memories())
    for ax, name in zip(axes, ("W_O2", "W_K2"), strict=False):
        ax.semilogx(task.table.unigram, found[name], "o", ms=3, color=CYCLE[0])
        ax.set(xlabel="frequency of the token π_u", title=f"{name}: a dot for each token")
    axes[2].plot(np.arange(2, len(found["W_K1"]) + 2), found["W_K1"], "o", ms=3, color=CYCLE[0])
    axes[2].set(xlabel="position t", title="W_K1: a dot for each position")
    for ax in axes:
        ax.set_ylabel("strength (score)")
        ax.axhline(0, color=MUTED, lw=0.8)


def _correlations(axes: Sequence[Axes], records: Sequence[Record]) -> None:
    """What the strength goes with, and how unevenly each memory is filled, in every seed."""
    for y, (name, goes_with) in enumerate(GOES_WITH.items()):
        for ax, key in zip(axes, (goes_with, "variation"), strict=True):
            values = [record.last(f"diagonal.{name}.{key}") for record in records]
            ax.plot(values, np.full(len(values), y), "o", ms=5, alpha=0.5, color=f"C{y}")
            ax.plot(np.mean(values), y, "o", ms=10, mfc="none", mec=f"C{y}", mew=1.6)
            bars(ax, [y], [mean_interval(values)], f"C{y}", across=True)
    words = [f"{name}, by {goes_with}" for name, goes_with in GOES_WITH.items()]
    axes[0].set_yticks(range(len(words)), words)
    axes[0].set(
        xlim=(-1.05, 1.05),
        xlabel="rank correlation of strength with frequency or position",
        ylim=(-0.6, len(words) - 0.4),
    )
    axes[0].set_title("← strong where rare or early          strong where frequent or late →", loc="center", fontsize=9)
    axes[0].axvline(0, color=MUTED, lw=0.8)
    axes[1].set(xlim=(0, None), xlabel="spread of the strengths over their mean (0: all equally strong)")
    axes[1].set_title("How unevenly a memory is filled", loc="center", fontsize=9)
    for ax in axes:
        ax.grid(visible=False)
        ax.grid(axis="x")
    axes[0].invert_yaxis()
