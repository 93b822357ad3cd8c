"""Figures from records: curves of training, memories as heat maps, attention over a readable sequence."""

from collections.abc import Sequence
from functools import reduce
from textwrap import fill

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from engram.claims.readings import birth
from engram.probes.columns import axis, column, memories
from engram.probes.recall import as_simplified, scores_W_K1, scores_W_K2, scores_W_O2, two_layers
from engram.records import Record
from engram.show.style import COLOURS, INK, MUTED, house_style, visible
from engram.specs import Train
from engram.tasks import Bigram


@house_style()
def birth_curves(records: Sequence[Record]) -> Figure:
    """Accuracy and the recall of each memory over steps; one thin line a seed, the mean thick."""
    fig = Figure(figsize=(7.2, 5.8))
    top, bottom = fig.subplots(2, 1, sharex=True, height_ratios=(1, 1.25))
    spec = records[0].train
    seed_curves(top, records, "accuracy.in_context", INK, "in-context accuracy")
    top.axhline(1 / spec.task.N, color=MUTED, ls=":", lw=1)
    guess = f"a guess among {spec.task.N} tokens: {1 / spec.task.N:.3f}"
    top.text(spec.steps, 1 / spec.task.N + 0.02, guess, color=MUTED, fontsize=8, ha="right")
    top.set(ylabel="accuracy", ylim=(0, 1.02), title="Prediction in context")
    for i, memory in enumerate(memories(records[0].columns)):
        colour = COLOURS.get(memory.name, f"C{i}")
        seed_curves(bottom, records, memory.name, colour, memory.title)
        _mark_birth((top, bottom), records, memory.name, colour)
    bottom.set(xlabel="training step", ylabel="recall", ylim=(0, 1.02), title="Memories")
    bottom.legend(fontsize=9)
    for ax in (top, bottom):
        ax.grid(axis="y")
        ax.set_xlim(0, spec.steps)
    headline(fig, f"Birth of an induction head: {describe(records)}; dashed: born (recall above 0.5)")
    return fig


@house_style()
def curves(records: Sequence[Record]) -> Figure:
    """Every column that was measured over steps, grouped by what it is: losses, accuracies, recalls, …"""
    measured = [column(name) for name in over_steps(records[0])]
    groups = sorted({c.group for c in measured})
    fig = Figure(figsize=(7.2, 2.3 * len(groups)))
    axes = fig.subplots(len(groups), 1, sharex=True, squeeze=False)
    for ax, group in zip(axes[:, 0], groups, strict=True):
        for i, c in enumerate(c for c in measured if c.group == group):
            seed_curves(ax, records, c.name, COLOURS.get(c.name, f"C{i}"), c.title)
        ax.set_ylabel(axis(group))
        ax.grid(axis="y")
        ax.legend(fontsize=8)
    axes[-1, 0].set_xlabel("training step")
    headline(fig, describe(records))
    return fig


def over_steps(record: Record) -> list[str]:
    """Columns with more than one number, so that there is a line to draw; of a single row, all that have one."""
    least = min(2, len(record.rows))
    columns = (name for name in record.columns if name not in ("step", "loss"))
    return sorted(name for name in columns if len(record.curve(name)[0]) >= least)


@house_style()
def levels_by_size(
    series: dict[str, dict[int, list[float]]], lines: dict[str, float], xlabel: str, ylabel: str
) -> Figure:
    """Measured levels against a size, one dot a seed; reference levels as dashed lines."""
    fig = Figure(figsize=(6, 3.6))
    ax = fig.subplots()
    for i, (name, by_size) in enumerate(series.items()):
        x = [size + 0.12 * (i - 0.5) for size, values in by_size.items() for _ in values]
        ax.plot(x, [value for values in by_size.values() for value in values], "o", ms=5, alpha=0.7, label=name)
    for name, value in lines.items():
        ax.axhline(value, color=MUTED, ls="--", lw=1, label=f"{name} ({value:.4f})")
    ax.set(xlabel=xlabel, ylabel=ylabel, xticks=sorted({size for by_size in series.values() for size in by_size}))
    ax.grid(axis="y")
    ax.legend(fontsize=9)
    return fig


def seed_curves(ax: Axes, records: Sequence[Record], column: str, colour: str, label: str, ls: str = "-") -> None:
    """Each seed as a faint line and their mean as a strong one."""
    measured = [record.curve(column) for record in records]
    for steps, values in measured if len(records) > 1 else []:
        ax.plot(steps, values, color=colour, lw=0.7, alpha=0.3, ls=ls)
    shared = reduce(np.intersect1d, [steps for steps, _ in measured])
    mean = np.mean([values[np.isin(steps, shared)] for steps, values in measured], axis=0)
    ax.plot(shared, mean, color=colour, lw=1.8, label=label, ls=ls)


def describe(records: Sequence[Record]) -> str:
    """What all these trainings share, and how many seeds there are."""
    seeds = {record.train.seed for record in records}
    return ", ".join([*shared(records), f"{len(seeds)} seeds" if len(seeds) > 1 else f"seed {min(seeds)}"])


def shared(records: Sequence[Record]) -> list[str]:
    """Only what is the same in all of them, in words: "K=5", "batch 128", "SGD lr 0.2", …"""
    first, *others = [_sizes(record.train) for record in records]
    return [size for size in first if all(size in of_other for of_other in others)]


def _sizes(spec: Train) -> list[str]:
    parts, optimiser = (spec.task, spec.model), spec.plan.optimiser
    sizes = [f"{name}={getattr(part, name)}" for part in parts for name in ("K", "T", "d") if hasattr(part, name)]
    return [*sizes, f"batch {spec.plan.batch}", f"{type(optimiser).__name__} lr {optimiser.lr:g}"]


def _mark_birth(axes: Sequence[Axes], records: Sequence[Record], memory: str, colour: str) -> None:
    """A dashed line at the mean birth over seeds, if the memory was born in all of them."""
    births = [birth(record, memory) for record in records]
    if None in births:
        return
    step = float(np.mean(births))  # type: ignore[arg-type]
    for ax in axes:
        ax.axvline(step, color=colour, ls="--", lw=0.9, alpha=0.8)
    axes[-1].annotate(f"{step:.0f}", (step, 0.02), (2, 0), textcoords="offset points", fontsize=8, color=colour)


def headline(fig: Figure, text: str) -> None:
    """A line above the figure, or as many as its width asks for."""
    fig.suptitle(fill(text, int(13 * fig.get_figwidth())), fontsize=9.5, color=MUTED, x=0.01, ha="left")


@house_style()
def memory_maps(record: Record, step: int | None = None) -> Figure:
    """The three memories in their association bases, as in Fig. 7: a memory that recalls is a bright diagonal."""
    fig = Figure(figsize=(12.4, 4.3))
    draw_maps(fig, list(fig.subplots(1, 3)), record, step)
    at = record.snapshot_steps[-1] if step is None else step
    headline(fig, f"Scores of every question (row) with every answer (column) at step {at}")
    return fig


def draw_maps(fig: Figure, axes: Sequence[Axes], record: Record, step: int | None = None) -> None:
    """W_O2, W_K2 and W_K1 on three axes, on one scale."""
    model, letters = record.train.model, letters_of(record)
    assert two_layers(model)
    w = as_simplified(model, record.model(step).weights)
    image = heat(axes[0], scores_W_O2(w).numpy(), "W_O2: the token to write", "token attended to", "token written")
    heat(axes[1], scores_W_K2(w).numpy(), "W_K2: the token to look for", "current token", "token before the key")
    positions = heat(
        axes[2], scores_W_K1(w).numpy(), "W_K1: the position to look at", "current position t", "position s"
    )
    T = len(w["P"])
    positions.set_extent((0.5, T - 0.5, T + 0.5, 1.5))  # rows are t = 2 … T, columns s = 1 … T − 1
    if letters:
        for ax in axes[:2]:
            label_tokens(ax, letters, size=4.5)
    fig.colorbar(image, ax=axes, shrink=0.8, extend="both", pad=0.01, label="score / standard deviation of the panel")


def letters_of(record: Record) -> str | None:
    task = record.train.task
    return task.table.alphabet if isinstance(task, Bigram) else None


def heat(ax: Axes, scores: Float[np.ndarray, "n m"], title: str, rows: str, columns: str) -> AxesImage:
    """One diverging map centred at 0, in units of its spread, so that panels can share a scale."""
    spread = scores.std() or 1.0
    ax.set(title=title, ylabel=rows, xlabel=columns)
    ax.spines[:].set_visible(False)
    return ax.imshow(scores / spread, cmap="RdBu_r", norm=TwoSlopeNorm(0, -6, 6), interpolation="nearest")


def label_tokens(ax: Axes, letters: Sequence[str], size: float) -> None:
    marks = [visible(letter) for letter in letters]
    ax.set_xticks(range(len(marks)), marks, fontsize=size)
    ax.set_yticks(range(len(marks)), marks, fontsize=size)
    ax.tick_params(length=0)
