"""Figures from records: curves of training, memories as heat maps, attention over a readable sequence."""

from collections.abc import Sequence
from functools import reduce
from itertools import groupby

import numpy as np
from jaxtyping import Bool, Float, Int
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from engram.probes.recall import scores_W_K1, scores_W_K2, scores_W_O2
from engram.records import Record
from engram.records.readings import MEMORIES, birth
from engram.show.style import COLOURS, INK, MUTED, house_style, visible
from engram.tasks import Bigram, Task


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
    for column, name in MEMORIES.items():
        seed_curves(bottom, records, column, COLOURS[column], name)
        _mark_birth((top, bottom), records, column)
    bottom.set(xlabel="training step", ylabel="recall", ylim=(0, 1.02), title="Memories")
    bottom.legend(loc="center right", fontsize=9)
    for ax in (top, bottom):
        ax.grid(axis="y")
        ax.set_xlim(0, spec.steps)
    _headline(fig, f"Birth of an induction head: {describe(records)}; dashed: born (recall above 0.5)")
    return fig


@house_style()
def curves(records: Sequence[Record]) -> Figure:
    """Every measured column over steps, grouped by what it is: losses, accuracies, recalls, …"""
    columns = sorted(name for name in records[0].columns if name not in ("step", "loss"))
    families = {kind: list(names) for kind, names in groupby(columns, key=lambda name: name.partition(".")[0])}
    fig = Figure(figsize=(7.2, 2.3 * len(families)))
    axes = fig.subplots(len(families), 1, sharex=True, squeeze=False)
    for ax, (kind, names) in zip(axes[:, 0], families.items(), strict=True):
        for i, name in enumerate(names):
            seed_curves(ax, records, name, COLOURS.get(name, f"C{i}"), name.partition(".")[2] or name)
        ax.set_ylabel(f"{kind} (nats)" if kind in ("loss", "kl") else kind)
        ax.grid(axis="y")
        ax.legend(fontsize=8)
    axes[-1, 0].set_xlabel("training step")
    _headline(fig, describe(records))
    return fig


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


def seed_curves(ax: Axes, records: Sequence[Record], column: str, colour: str, label: str) -> None:
    """Each seed as a faint line and their mean as a strong one."""
    measured = [record.curve(column) for record in records]
    for steps, values in measured if len(records) > 1 else []:
        ax.plot(steps, values, color=colour, lw=0.7, alpha=0.3)
    shared = reduce(np.intersect1d, [steps for steps, _ in measured])
    mean = np.mean([values[np.isin(steps, shared)] for steps, values in measured], axis=0)
    ax.plot(shared, mean, color=colour, lw=1.8, label=label)


def describe(records: Sequence[Record]) -> str:
    spec = records[0].train
    seeds = f"seed {spec.seed}" if len(records) == 1 else f"{len(records)} seeds"
    sizes = [
        f"{name}={getattr(part, name)}"
        for part in (spec.task, spec.model)
        for name in ("K", "T", "d")
        if hasattr(part, name)
    ]
    return f"{', '.join(sizes)}, batch {spec.plan.batch}, {seeds}"


def _mark_birth(axes: Sequence[Axes], records: Sequence[Record], column: str) -> None:
    """A dashed line at the mean birth over seeds, if the memory was born in all of them."""
    births = [birth(record, column) for record in records]
    if None in births:
        return
    step = float(np.mean(births))  # type: ignore[arg-type]
    for ax in axes:
        ax.axvline(step, color=COLOURS[column], ls="--", lw=0.9, alpha=0.8)
    axes[-1].annotate(
        f"{step:.0f}", (step, 0.02), (2, 0), textcoords="offset points", fontsize=8, color=COLOURS[column]
    )


def _headline(fig: Figure, text: str) -> None:
    fig.suptitle(text, fontsize=9.5, color=MUTED, x=0.01, ha="left")


@house_style()
def memory_maps(record: Record, step: int | None = None) -> Figure:
    """The three memories in their association bases, as in Fig. 7: a memory that recalls is a bright diagonal."""
    w, letters = record.model(step).weights, _letters(record)
    fig = Figure(figsize=(12.4, 4.3))
    axes = fig.subplots(1, 3)
    image = _heat(axes[0], scores_W_O2(w).numpy(), "W_O2: the token to write", "token attended to", "token written")
    _heat(axes[1], scores_W_K2(w).numpy(), "W_K2: the token to look for", "current token", "token before the key")
    positions = _heat(
        axes[2], scores_W_K1(w).numpy(), "W_K1: the position to look at", "current position t", "position s"
    )
    T = len(w["P"])
    positions.set_extent((0.5, T - 0.5, T + 0.5, 1.5))  # rows are t = 2 … T, columns s = 1 … T − 1
    if letters:
        for ax in axes[:2]:
            label_tokens(ax, letters, size=4.5)
    fig.colorbar(image, ax=axes, shrink=0.8, extend="both", pad=0.01, label="score / standard deviation of the panel")
    at = record.snapshot_steps[-1] if step is None else step
    _headline(fig, f"Scores of every question (row) with every answer (column) at step {at}")
    return fig


def _letters(record: Record) -> str | None:
    task = record.train.task
    return task.table.alphabet if isinstance(task, Bigram) else None


def _heat(ax: Axes, scores: Float[np.ndarray, "n m"], title: str, rows: str, columns: str) -> AxesImage:
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


@house_style()
def attention_maps(record: Record, step: int | None = None, length: int = 44) -> Figure:
    """Attention of both layers over a readable sequence, as in Fig. 2; boxes: where an induction head must look."""
    tokens, in_context = readable_sequence(record.train.task, record.train.seed, length)
    trace, letters = record.model(step)(tokens), _letters(record)
    marks = [letters[z] if letters else str(z) for z in tokens]
    previous = [(t, t - 1) for t in range(1, len(tokens))]
    asked = np.flatnonzero(in_context).tolist()
    successors = [(t, s) for t in asked for s in range(1, t + 1) if tokens[s - 1] == tokens[t]]
    fig = Figure(figsize=(12.4, 6.6))
    axes = fig.subplots(1, 2)
    _attend(axes[0], trace.attention1[0].numpy(), marks, previous, "Layer 1: look at the previous position")
    image = _attend(axes[1], trace.attention2[0].numpy(), marks, successors, "Layer 2: look after an earlier visit")
    fig.colorbar(image, ax=axes, shrink=0.8, pad=0.01, label="attention")
    _headline(fig, "Boxes: where an induction head must look (in layer 2 for triggers that came before)")
    return fig


def readable_sequence(task: Task, seed: int, length: int) -> tuple[Int[np.ndarray, " T"], Bool[np.ndarray, " T"]]:
    """The beginning of an unseen sequence with many predictions in context and no token that repeats itself."""
    batch = task.sample(seed, 2**41, 128)
    length = min(length, task.T)
    tokens, asked = batch.tokens[:, :length], batch.groups["in_context"][:, :length]
    repeats = (tokens == batch.targets[:, :length]).sum(axis=1)
    variety = np.array([len(set(sequence.tolist())) for sequence in tokens])
    best = int(np.argmax(np.minimum(asked.sum(axis=1), 8) + 0.5 * variety - 4 * repeats))
    return tokens[best], asked[best]


def _attend(
    ax: Axes, pattern: Float[np.ndarray, "T k"], marks: Sequence[str], boxes: Sequence[tuple[int, int]], title: str
) -> AxesImage:
    for t, s in boxes:
        ax.add_patch(Rectangle((s - 0.5, t - 0.5), 1, 1, fill=False, ec="#D55E00", lw=0.7, alpha=0.8))
    label_tokens(ax, marks, size=7.5)
    ax.set(title=title, xlabel="attends to", ylabel="current token")
    seen = np.tri(len(pattern), dtype=bool)
    return ax.imshow(np.where(seen, pattern, np.nan), cmap="Blues", vmin=0, vmax=1)
