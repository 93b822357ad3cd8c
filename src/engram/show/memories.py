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
from engram.show.curves import describe, headline
from engram.show.literal import literal
from engram.show.panels import panels
from engram.show.style import CYCLE, MUTED, house_style
from engram.tasks import Bigram

MOST_LETTERS, MOST_WORDS = 100, 32  # that can be read on an axis
GOES_WITH = {"W_O2": "frequency", "W_K2": "frequency", "W_K1": "position"}  # the strength of an association


@house_style()
def memory_maps(record: Record, step: int | None = None) -> Figure:
    """Every memory of a model in its association basis, as in Fig. 7: one that recalls is a bright diagonal."""
    memories = record.memories(step)
    axes = panels(4.15 * len(memories), 4.3, 1, len(memories), squeeze=False)[0].tolist()
    draw_maps(axes, memories)
    at = record.snapshot_steps[-1] if step is None else step
    return headline(axes[0].figure, f"Scores of every question (row) with every answer (column) at step {at}")


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
    places = [(ax.set_yticks, words.rows), (ax.set_xticks, words.columns)]
    if all(mark.isdecimal() for _, marks in places for mark in marks):
        top, left = int(words.rows[0]), int(words.columns[0])
        image.set_extent((left - 0.5, left + len(words.columns) - 0.5, top + len(words.rows) - 0.5, top - 0.5))
        return image
    for set_ticks, marks in places:
        letters = max(map(len, marks)) <= 2 and len(marks) <= MOST_LETTERS
        every = 1 if letters else ceil(len(marks) / MOST_WORDS)  # words need room, and long ones stand upright below
        set_ticks(range(0, len(marks), every), [*map(literal, marks[::every])], fontsize=4.5 if letters else 5.5)
    ax.tick_params(axis="x", length=0, rotation=90 if max(map(len, words.columns)) > 2 else 0)
    ax.tick_params(axis="y", length=0)
    return image


@house_style()
def strengths_and_maps(records: Sequence[Record]) -> Figure:
    """Maps and diagonals of the first training that keeps its weights; correlations of all."""
    shown = next((record for record in records if record.snapshot_steps), None)
    heights = [1.5, 1, 1] if shown else [1]
    rows = panels(12.4, 8.6 if shown else 3.9, len(heights), 3, height_ratios=heights, squeeze=False).tolist()
    if shown:
        draw_maps(rows[0], [memory for memory in shown.memories() if memory.has_answers])
        _diagonals(rows[1], shown)
    _correlations(rows[-1], records)
    about = "Every question (row) with every answer (column), and how strong the right answers are"
    return headline(rows[0][0].figure, f"{about}. {describe(records)}")


def _diagonals(axes: Sequence[Axes], record: Record) -> None:
    """Strength over what makes an association frequent: its token, or its position."""
    task = record.train.task
    assert isinstance(task, Bigram)
    found = strengths(record.memories())
    for ax, name in zip(axes, ("W_O2", "W_K2"), strict=False):
        ax.semilogx(task.table.unigram, found[name], "o", ms=3, color=CYCLE[0])
        ax.set_xlabel("frequency of the token π_u")
    axes[2].plot(np.arange(2, len(found["W_K1"]) + 2), found["W_K1"], "o", ms=3, color=CYCLE[0])
    axes[2].set_xlabel("position t")
    axes[0].set_ylabel("strength (score)")
    for ax in axes:
        ax.axhline(0, color=MUTED, lw=0.8)


def _correlations(axes: Sequence[Axes], records: Sequence[Record]) -> None:
    """One dot a seed: what the strength goes with, and how unevenly each memory is filled."""
    for ax, (name, goes_with) in zip(axes, GOES_WITH.items(), strict=True):
        for x, key in enumerate((goes_with, "variation")):
            values = [record.last(f"diagonal.{name}.{key}") for record in records]
            ax.plot(x + np.linspace(-0.1, 0.1, len(values)), values, "o", ms=5, alpha=0.7, color=CYCLE[x + 1])
        ax.set_xticks((0, 1), [f"rank correlation\nwith {goes_with}", "coefficient\nof variation"], fontsize=8.5)
        ax.set(title=f"{name}, every seed", xlim=(-0.6, 1.6), ylim=(-1.1, 1.3))
        ax.axhline(0, color=MUTED, lw=0.8)
    axes[0].set_ylabel("value")
