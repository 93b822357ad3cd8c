"""Figures of "Birth of a Transformer": losses, accuracies and recalls over training, for several kinds of training."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.probes.columns import memories
from engram.records import Record
from engram.show.curves import describe, headline, seed_curves
from engram.show.style import COLOURS, CYCLE, INK, MUTED, house_style

Runs = Mapping[Any, list[Record]]  # by label, which names the kind of training


@house_style()
def schedules(runs: Runs) -> Figure:
    """Fig. 3: a column for each schedule, accuracy above, recalls below; a line where the frozen matrices thaw."""
    fig, axes = _columns(runs, height_ratios=(1, 1.3))
    for (name, same), top, bottom in zip(runs.items(), *axes, strict=True):
        seed_curves(top, same, "accuracy.in_context", INK, "in-context accuracy")
        draw_recalls(bottom, same)
        top.set_title(name if name == "joint" else f"{name} until {_thaw(same[0])}")
        for ax in (top, bottom):
            ax.axvline(_thaw(same[0]), color=MUTED, ls=":", lw=1.2) if _thaw(same[0]) else None
        bottom.set_xlabel("training step")
    axes[0][0].set_ylabel("in-context accuracy")
    axes[1][0].set_ylabel("recall")
    fig.legend(*axes[1][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9)
    headline(fig, f"Learning the induction head alone; dotted: the frozen matrices begin to move. {of_all(runs)}")
    return fig


def _thaw(record: Record) -> int:
    return max(record.train.plan.frozen_until.values(), default=0)


def draw_recalls(ax: Axes, records: Sequence[Record]) -> None:
    """Recall of every memory; one that nothing competes with (a single fixed trigger) is left out."""
    for i, memory in enumerate(memories(records[0].columns)):
        if not np.isnan([record.column(memory.name)[-1] for record in records]).any():
            seed_curves(ax, records, memory.name, COLOURS.get(memory.name, f"C{i}"), memory.title)
    ax.set_ylim(0, 1.02)


@house_style()
def losses_by_data(runs: Runs, floors: dict[str, float]) -> Figure:
    """Fig. 4 left: loss in context (solid) and global (dashed) for each law of the data; dotted: the global floor."""
    fig = Figure(figsize=(8.2, 4.8))
    ax = fig.subplots()
    for (name, same), colour in zip(runs.items(), CYCLE, strict=False):
        seed_curves(ax, same, "loss.in_context", colour, name)
        seed_curves(ax, same, "loss.global", colour, "_", ls="--")
        ax.axhline(floors[name], color=colour, ls=":", lw=0.8, alpha=0.8)
    spec = next(iter(runs.values()))[0].train
    ax.plot([], [], color=MUTED, ls="--", label="global loss")
    ax.plot([], [], color=MUTED, ls=":", label="floor of the global loss")
    ax.set(xlabel="training step", ylabel="loss (nats)", xlim=(0, spec.steps), ylim=(0, 6))
    ax.set_title("Loss in context (solid) and global (dashed)")
    ax.grid(axis="y")
    ax.legend(fontsize=8.5, ncols=2)
    headline(fig, of_all(runs))
    return fig


@house_style()
def memories_by_kind(runs: Runs, title: str) -> Figure:
    """Figs. 5 and 6: one panel per memory, one line per kind of training."""
    recalled = {memory.name: memory.title for memory in memories(next(iter(runs.values()))[0].columns)}
    columns = recalled | {"kl.W_F": "W_F: KL to the bigram"}
    fig = Figure(figsize=(3.0 * len(columns), 3.9))
    axes = fig.subplots(1, len(columns), sharex=True)
    for ax, (column, name) in zip(axes, columns.items(), strict=True):
        for (kind, same), colour in zip(runs.items(), CYCLE, strict=False):
            if not np.isnan(same[0].column(column)[-1]):  # a single fixed trigger has nothing to compete with
                seed_curves(ax, same, column, colour, kind)
        ax.set(title=name, xlabel="training step")
        ax.set_ylim(*((0, 2.6) if column == "kl.W_F" else (0, 1.02)))
        ax.grid(axis="y")
    axes[0].set_ylabel("recall")
    axes[-1].set_ylabel("nats")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(runs), fontsize=8.5)
    headline(fig, f"{title}. {of_all(runs)}")
    return fig


@house_style()
def transfer(runs: Runs) -> Figure:
    """Fig. 4 center: in-context accuracy on unseen sequences; colour says the training, line style the test."""
    fig = Figure(figsize=(7.2, 4.6))
    ax = fig.subplots()
    for (trained, same), colour in zip(runs.items(), CYCLE, strict=False):
        for tested, style in {"uniform": "-", "bigram": "--"}.items():
            column = f"test.{tested}.accuracy.in_context"
            seed_curves(ax, same, column, colour, f"trained on {trained}, tested on {tested}", ls=style)
    ax.set(
        xlabel="training step", ylabel="in-context accuracy", ylim=(0, 1.02), title="Outputs of training and of testing"
    )
    ax.grid(axis="y")
    ax.legend(fontsize=9, loc="lower right")
    headline(fig, of_all(runs))
    return fig


def _columns(runs: Runs, height_ratios: tuple[float, float]) -> tuple[Figure, list[list[Axes]]]:
    fig = Figure(figsize=(3.1 * len(runs), 5.4))
    axes = fig.subplots(2, len(runs), sharex=True, sharey="row", squeeze=False, height_ratios=height_ratios)
    for ax in axes.flat:
        ax.grid(axis="y")
        ax.set_xlim(0, next(iter(runs.values()))[0].train.steps)
    axes[0, 0].set_ylim(0, 1.02)
    return fig, axes.tolist()


def of_all(runs: Runs) -> str:
    """What trainings of every kind share."""
    return describe([record for same in runs.values() for record in same])
