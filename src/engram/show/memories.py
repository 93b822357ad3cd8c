"""Memories as heat maps: the score of every question with every answer, as in Fig. 7."""

from collections.abc import Sequence
from math import ceil

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from engram.memory.stored import Stored
from engram.records import Record
from engram.show.curves import headline
from engram.show.style import house_style

MOST_LETTERS, MOST_WORDS = 100, 32  # that can be read on an axis


@house_style()
def memory_maps(record: Record, step: int | None = None) -> Figure:
    """Every memory of a model in its association basis, as in Fig. 7: one that recalls is a bright diagonal."""
    memories = record.memories(step)
    fig = Figure(figsize=(4.15 * len(memories), 4.3))
    draw_maps(fig, list(fig.subplots(1, len(memories), squeeze=False)[0]), memories)
    at = record.snapshot_steps[-1] if step is None else step
    headline(fig, f"Scores of every question (row) with every answer (column) at step {at}")
    return fig


def draw_maps(fig: Figure, axes: Sequence[Axes], memories: Sequence[Stored]) -> None:
    """A map for each memory, all on one scale."""
    images = [draw_map(ax, memory) for ax, memory in zip(axes, memories, strict=True)]
    label = "score / standard deviation of the panel"
    fig.colorbar(images[0], ax=axes, shrink=0.8, extend="both", pad=0.01, label=label)


def draw_map(ax: Axes, memory: Stored) -> AxesImage:
    """One memory; positions have an axis of numbers, other questions and answers their marks, if there is room."""
    words = memory.labels
    image = _draw_scores(ax, memory.scores().float().cpu().numpy(), words.title, words.asks, words.answers)
    places = [(ax.set_yticks, words.rows), (ax.set_xticks, words.columns)]
    if all(mark.isdecimal() for _, marks in places for mark in marks):
        top, left = int(words.rows[0]), int(words.columns[0])
        image.set_extent((left - 0.5, left + len(words.columns) - 0.5, top + len(words.rows) - 0.5, top - 0.5))
        return image
    for set_ticks, marks in places:
        letters = max(map(len, marks)) <= 2 and len(marks) <= MOST_LETTERS
        every = 1 if letters else ceil(len(marks) / MOST_WORDS)  # words need room, and long ones stand upright below
        set_ticks(range(0, len(marks), every), marks[::every], fontsize=4.5 if letters else 5.5)
    ax.tick_params(axis="x", length=0, rotation=90 if max(map(len, words.columns)) > 2 else 0)
    ax.tick_params(axis="y", length=0)
    return image


def _draw_scores(ax: Axes, scores: Float[np.ndarray, "n m"], title: str, rows: str, columns: str) -> AxesImage:
    """One diverging map centred at 0, in units of its spread, so that panels can share a scale."""
    spread = scores.std() or 1.0
    ax.set(title=title, ylabel=rows, xlabel=columns)
    ax.spines[:].set_visible(False)
    return ax.imshow(scores / spread, cmap="RdBu_r", norm=TwoSlopeNorm(0, -6, 6), interpolation="nearest")
