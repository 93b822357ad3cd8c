"""Figures from records: curves of training, memories as heat maps, attention over a readable sequence."""

from collections.abc import Sequence
from itertools import groupby

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from engram.probes.recall import scores_W_K1, scores_W_K2, scores_W_O2
from engram.records import Record
from engram.records.readings import MEMORIES, birth
from engram.show.style import COLOURS, INK, MUTED, house_style, visible
from engram.tasks import Bigram


@house_style()
def birth_curves(records: Sequence[Record]) -> Figure:
    """Accuracy and the recall of each memory over steps; one thin line a seed, the mean thick."""
    fig, (top, bottom) = plt.subplots(2, 1, figsize=(7.2, 5.6), sharex=True, height_ratios=(1, 1.25))
    seed_curves(top, records, "accuracy.in_context", INK, "in-context accuracy")
    chance = 1 / records[0].train.task.N
    top.axhline(chance, color=MUTED, ls=":", lw=1)
    top.text(0, chance + 0.02, f" chance {chance:.3f}", color=MUTED, fontsize=8)
    top.set(ylabel="accuracy", ylim=(0, 1.02), title="Prediction in context")
    for column, name in MEMORIES.items():
        seed_curves(bottom, records, column, COLOURS[column], name)
        for axes in (top, bottom):
            _mark_birth(axes, records, column)
    bottom.set(
        xlabel="training step",
        ylabel="recall",
        ylim=(0, 1.02),
        title="Memories (dashed: born, recall above 0.5)",
    )
    bottom.legend(loc="center right", fontsize=9)
    for axes in (top, bottom):
        axes.grid(axis="y")
        axes.set_xlim(0, records[0].train.steps)
    fig.suptitle(f"Birth of an induction head: {describe(records)}", fontsize=9.5, color=MUTED, x=0.01, ha="left")
    return fig


@house_style()
def curves(records: Sequence[Record]) -> Figure:
    """Every measured column over steps, grouped by what it is: losses, accuracies, recalls, …"""
    columns = sorted(name for name in records[0].columns if name not in ("step", "loss"))
    families = {kind: list(names) for kind, names in groupby(columns, key=lambda name: name.partition(".")[0])}
    fig, axes = plt.subplots(len(families), 1, figsize=(7.2, 2.3 * len(families)), sharex=True, squeeze=False)
    for ax, (kind, names) in zip(axes[:, 0], families.items(), strict=True):
        for i, name in enumerate(names):
            seed_curves(ax, records, name, COLOURS.get(name, f"C{i}"), name.partition(".")[2] or name)
        ax.set_ylabel(f"{kind} (nats)" if kind in ("loss", "kl") else kind)
        ax.grid(axis="y")
        ax.legend(fontsize=8)
    axes[-1, 0].set_xlabel("training step")
    fig.suptitle(describe(records), fontsize=9.5, color=MUTED, x=0.01, ha="left")
    return fig


@house_style()
def levels_by_size(
    series: dict[str, dict[int, list[float]]], lines: dict[str, float], xlabel: str, ylabel: str
) -> Figure:
    """Measured levels against a size, one dot a seed; reference levels as dashed lines."""
    fig, ax = plt.subplots(figsize=(6, 3.6))
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
    shortest = min(len(steps) for steps, _ in measured)
    mean = np.mean([values[:shortest] for _, values in measured], axis=0)
    ax.plot(measured[0][0][:shortest], mean, color=colour, lw=1.8, label=label)


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


def _mark_birth(ax: Axes, records: Sequence[Record], column: str) -> None:
    births = [birth(record, column) for record in records]
    if all(step is not None for step in births):
        ax.axvline(
            float(np.mean([step for step in births if step is not None])),
            color=COLOURS[column],
            ls="--",
            lw=0.9,
            alpha=0.8,
        )


@house_style()
def memory_maps(record: Record, step: int | None = None) -> Figure:
    """The three memories in their association bases, as in Fig. 7: a memory that recalls is a bright diagonal."""
    task, model = record.train.task, record.model(step)
    fig, axes = plt.subplots(1, 3, figsize=(12.4, 4.5))
    letters = task.table.alphabet if isinstance(task, Bigram) else None
    w = model.weights
    _heat(
        axes[0],
        scores_W_O2(w).numpy(),
        "W_O2: which token is written",
        "token attended to",
        "token written",
        letters,
    )
    _heat(
        axes[1],
        scores_W_K2(w).numpy(),
        "W_K2: which token is sought",
        "current token",
        "token before the key",
        letters,
    )
    _heat(
        axes[2],
        scores_W_K1(w).numpy(),
        "W_K1: which position is sought",
        "current position t",
        "position s",
        None,
    )
    at = record.snapshot_steps[-1] if step is None else step
    fig.suptitle(
        f"Scores of every question (row) with every answer (column) at step {at}, in units of each panel's spread",
        fontsize=9.5,
        color=MUTED,
        x=0.01,
        ha="left",
    )
    return fig


def _heat(
    ax: Axes, scores: Float[np.ndarray, "n m"], title: str, rows: str, columns: str, letters: str | None
) -> None:
    """One diverging map centred at 0. Scores are divided by their standard deviation."""
    spread = scores.std() or 1.0
    image = ax.imshow(scores / spread, cmap="RdBu_r", norm=TwoSlopeNorm(0, -6, 6), interpolation="nearest")
    ax.set(title=title, ylabel=rows, xlabel=columns)
    for side in ax.spines.values():
        side.set_visible(False)
    if letters:
        label_tokens(ax, letters)
    ax.figure.colorbar(image, ax=ax, shrink=0.72, label="score / std")


def label_tokens(ax: Axes, letters: str) -> None:
    marks = [visible(letter) for letter in letters]
    ax.set_xticks(range(len(marks)), marks, fontsize=4.5)
    ax.set_yticks(range(len(marks)), marks, fontsize=4.5)
    ax.tick_params(length=0)


@house_style()
def attention_maps(record: Record, step: int | None = None, length: int = 44) -> Figure:
    """Attention of both layers over a readable sequence, as in Fig. 2; boxes: where an induction head must look."""
    task = record.train.task
    tokens, in_context = readable_sequence(task, record.train.seed, length)  # type: ignore[arg-type]
    trace = record.model(step)(tokens)
    letters = task.table.alphabet if isinstance(task, Bigram) else None
    marks = [visible(letters[z]) if letters else str(z) for z in tokens]
    fig, axes = plt.subplots(1, 2, figsize=(12.4, 6.2))
    previous = [(t, t - 1) for t in range(1, length)]
    successors = [
        (t, s) for t in np.flatnonzero(in_context).tolist() for s in range(1, t + 1) if tokens[s - 1] == tokens[t]
    ]
    _attend(axes[0], trace.attention1[0].numpy(), marks, previous, "Layer 1 (boxes: previous position)")
    _attend(
        axes[1],
        trace.attention2[0].numpy(),
        marks,
        successors,
        "Layer 2 (boxes: after an earlier visit of the same trigger)",
    )
    return fig


def readable_sequence(task: Bigram, seed: int, length: int) -> tuple[Int[np.ndarray, " T"], np.ndarray]:
    """The beginning of an unseen sequence with varied tokens and many predictions in context."""
    batch = task.sample(seed, 2**41, 64)
    length = min(length, task.T)
    asked = batch.groups["in_context"][:, :length]
    variety = np.array([len(set(tokens[:length].tolist())) for tokens in batch.tokens])
    best = int(np.argmax(np.minimum(asked.sum(axis=1), 10) + 0.5 * variety))
    return batch.tokens[best, :length], asked[best]


def _attend(ax: Axes, pattern: np.ndarray, marks: list[str], boxes: Sequence[tuple[int, int]], title: str) -> None:
    image = ax.imshow(np.where(np.tri(len(pattern), dtype=bool), pattern, np.nan), cmap="Blues", vmin=0, vmax=1)
    for t, s in boxes:
        ax.add_patch(Rectangle((s - 0.5, t - 0.5), 1, 1, fill=False, ec="#D55E00", lw=0.7, alpha=0.8))
    ax.set_xticks(range(len(marks)), marks, fontsize=7.5)
    ax.set_yticks(range(len(marks)), marks, fontsize=7.5)
    ax.tick_params(length=0)
    ax.set(title=title, xlabel="attends to", ylabel="current token")
    ax.figure.colorbar(image, ax=ax, shrink=0.7, label="attention")
