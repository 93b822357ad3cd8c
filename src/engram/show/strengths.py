"""Fig. 7: the maps of the trained memories, and how strong each association is."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.probes.recall import strengths
from engram.records import Record
from engram.show.curves import describe, headline
from engram.show.memories import draw_maps
from engram.show.style import CYCLE, MUTED, house_style
from engram.tasks import Bigram


@house_style()
def strengths_and_maps(records: Sequence[Record]) -> Figure:
    """Maps and diagonals of the first training that keeps its weights; correlations of all."""
    shown = next((record for record in records if record.snapshot_steps), None)
    fig = Figure(figsize=(12.4, 8.6 if shown else 3.9))
    rows = fig.subplots(3 if shown else 1, 3, height_ratios=(1.5, 1, 1)[: 3 if shown else 1], squeeze=False).tolist()
    if shown:
        draw_maps(fig, rows[0], [memory for memory in shown.memories() if memory.has_answers])
        _diagonals(rows[1], shown)
    _correlations(rows[-1], records)
    about = "Every question (row) with every answer (column), and how strong the right answers are"
    headline(fig, f"{about}. {describe(records)}")
    return fig


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
        ax.grid(axis="y")


def _correlations(axes: Sequence[Axes], records: Sequence[Record]) -> None:
    """One dot a seed: what the strength goes with, and how unevenly each memory is filled."""
    shown = {"W_O2.frequency": 0, "W_K2.frequency": 1, "W_K1.position": 2}
    for column, i in shown.items():
        name = column.partition(".")[0]
        for x, key in enumerate((column, f"{name}.variation")):
            values = [record.last(f"diagonal.{key}") for record in records]
            axes[i].plot(x + np.linspace(-0.1, 0.1, len(values)), values, "o", ms=5, alpha=0.7, color=CYCLE[x + 1])
        labels = [f"rank correlation\nwith {column.partition('.')[2]}", "coefficient\nof variation"]
        axes[i].set_xticks((0, 1), labels, fontsize=8.5)
        axes[i].set(title=f"{name}, every seed", xlim=(-0.6, 1.6), ylim=(-1.1, 1.3))
        axes[i].axhline(0, color=MUTED, lw=0.8)
        axes[i].grid(axis="y")
    axes[0].set_ylabel("value")
