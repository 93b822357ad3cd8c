"""Fig. 4 right: probes of all memories together, and where the right answers come from."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.records import Record
from engram.show.birth import draw_recalls
from engram.show.curves import describe, headline, seed_curves
from engram.show.style import CYCLE, INK, MUTED, house_style

PARTS = {
    "embedding": "residual",
    "head1": "layer 1",
    "head2": "induction head, directly",
    "W_F.embedding": "W_F from the current token",
    "W_F.head1": "W_F from layer 1",
    "W_F.head2": "W_F from the induction head",
}


@house_style()
def probes_and_shares(records: Sequence[Record]) -> Figure:
    """Accuracy and probes over training on the left, the shares of the trained model on the right."""
    fig = Figure(figsize=(12.4, 6.0))
    axes = fig.subplot_mosaic("as;ms", width_ratios=(1.5, 1), height_ratios=(1, 1.6))
    seed_curves(axes["a"], records, "accuracy.in_context", INK, "in-context accuracy")
    axes["a"].set(ylabel="in-context accuracy", ylim=(0, 1.02))
    _memories(fig, axes["m"], records)
    _shares(axes["s"], records)
    for ax in (axes["a"], axes["m"]):
        ax.grid(axis="y")
        ax.set_xlim(0, records[0].train.steps)
    headline(fig, describe(records))
    return fig


def _memories(fig: Figure, ax: Axes, records: Sequence[Record]) -> None:
    """Recalls on the left axis, the KL of W_F on the right one."""
    draw_recalls(ax, records)
    ax.set(xlabel="training step", ylabel="recall", title="Memories and W_F")
    right = ax.twinx()
    seed_curves(right, records, "kl.W_F", CYCLE[4], "W_F (right axis)")
    right.set(ylabel="KL(π_b ‖ W_F) in nats", ylim=(0, 2.5))
    right.spines["right"].set_visible(True)
    lines = [*ax.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
    labels = [str(line.get_label()) for line in lines]
    fig.legend(lines, labels, loc="outside lower left", ncols=len(lines), fontsize=9)


def _shares(ax: Axes, records: Sequence[Record]) -> None:
    """How much each part adds to the lead of the right answer, in context and at global positions; one dot per seed."""
    y = np.arange(len(PARTS))[::-1]
    for i, (group, words) in enumerate({"in_context": "in context", "global": "global"}.items()):
        found = np.array([[record.last(f"attribution.{group}.{part}") for part in PARTS] for record in records])
        at = y - 0.36 * (i - 0.5)
        ax.barh(at, found.mean(axis=0), height=0.34, color=CYCLE[i], alpha=0.4, label=words)
        for values in found:
            ax.plot(values, at, "o", ms=3, color=CYCLE[i])
    ax.set_yticks(y, list(PARTS.values()))
    ax.set(xlabel="logit of the right answer above the mean (nats)", title="Where right answers come from")
    ax.axvline(0, color=MUTED, lw=0.8)
    ax.grid(axis="x")
    ax.legend(fontsize=9, loc="upper right")
