"""Curves over training: losses, accuracies and the recall of each memory."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.claims.readings import birth
from engram.probes.columns import axis, column, is_share, memories
from engram.records import Record
from engram.show.literal import literal
from engram.show.panels import ANY, SHARE, bars, dots, finished, lines_and_mean, mean_interval, panels
from engram.show.style import COLOURS, INK, MUTED, THEORY, house_style
from engram.show.subtitles import describe, headline
from engram.specs import Train
from engram.specs.encode import digest_of


@house_style()
def birth_curves(records: Sequence[Record]) -> Figure:
    """Accuracy and the recall of each memory over steps; one thin line a seed, the mean thick."""
    top, bottom = panels(7.2, 5.8, 2, sharex=True, height_ratios=(1, 1.25))
    spec = records[0].train
    seed_curves(top, records, "accuracy.in_context", INK, "in-context accuracy")
    top.axhline(1 / spec.task.N, color=MUTED, ls=":", lw=1)
    guess = f"a guess among {spec.task.N} tokens: {1 / spec.task.N:.3f}"
    top.text(spec.steps, 1 / spec.task.N + 0.02, guess, color=MUTED, fontsize=8, ha="right")
    top.set(ylabel="accuracy", ylim=(0, 1.02), xlim=(0, spec.steps), title="Prediction in context")
    for i, memory in enumerate(memories(records[0].columns)):
        colour = COLOURS.get(memory.name, f"C{i}")
        born = _mark_birth((top, bottom), records, memory.name, colour)
        seed_curves(bottom, records, memory.name, colour, literal(memory.title) + born)
    bottom.set(xlabel="training step", ylabel="recall", ylim=(0, 1.02), title="Memories")
    text = f"Birth of an induction head: {describe(records)}; dashed: born (recall above 0.5)"
    return headline(finished(bottom), text)


@house_style()
def curves(records: Sequence[Record], names: Sequence[str] | None = None) -> Figure:
    """Columns that were measured over steps, all unless some are named, by what they are: losses, accuracies, …"""
    measured = [column(name) for name in over_steps(records[0]) if names is None or name in names]
    groups = sorted({c.group for c in measured})
    axes = panels(7.2, 2.3 * len(groups), len(groups), sharex=True, squeeze=False)[:, 0]
    for ax, group in zip(axes, groups, strict=True):
        for i, c in enumerate(c for c in measured if c.group == group):
            seed_curves(ax, records, c.name, COLOURS.get(c.name, f"C{i}"), literal(c.title))
        ax.set_ylabel(literal(axis(group)))
    axes[-1].set_xlabel("training step")
    _mark_events(list(axes), records)
    return headline(finished(*axes), describe(records))


def plain_curves(records: Sequence[Record]) -> list[Figure]:
    """A figure for each kind of training: those that differ in their seed only."""
    kinds: dict[str, list[Record]] = {}
    for record in records:
        if isinstance(record.spec, Train):
            kinds.setdefault(digest_of(record.spec.model_copy(update={"seed": 0})), []).append(record)
    return [curves(same) for same in kinds.values()]


def _mark_events(axes: Sequence[Axes], records: Sequence[Record]) -> None:
    """A line at each intervention, with its words above it, where all these runs have the same ones."""
    first, *others = [record.train.events if record.may_run else () for record in records]
    for event in () if any(events != first for events in others) else first:
        for ax in axes:
            ax.axvline(event.step, color=INK, ls="--", lw=0.9)
        above = {"rotation": 20, "fontsize": 8, "ha": "left", "va": "bottom"}
        axes[0].text(event.step, 1.01, literal(event.sentence), transform=axes[0].get_xaxis_transform(), **above)


def over_steps(record: Record) -> list[str]:
    """Columns with more than one number, so that there is a line to draw; of a single row, all that have one."""
    least = min(2, len(record.table))
    columns = (name for name in record.columns if name not in ("step", "loss"))
    return sorted(name for name in columns if len(record.curve(name)[0]) >= least)


@house_style()
def levels_by_size(
    series: dict[str, dict[int, list[float]]], lines: dict[str, float], xlabel: str, ylabel: str, title: str
) -> Figure:
    """Measured levels against a size, one dot per seed; reference levels as dashed lines, named beside them."""
    ax = panels(7.4, 4.2)
    for i, (name, by_size) in enumerate(series.items()):
        apart = {size + 0.16 * (i - 0.5): values for size, values in by_size.items()}
        dots(ax, apart, i, name)
        bars(ax, list(apart), [mean_interval(values) for values in apart.values()], f"C{i}")
    for name, value in lines.items():
        ax.axhline(value, **THEORY, label=f"{name}: {value:.4f}")
    ax.set(xlabel=xlabel, ylabel=ylabel, xticks=sorted({size for by_size in series.values() for size in by_size}))
    ax.set_title(title)
    return finished(ax, loc="upper left", bbox_to_anchor=(0, -0.18))


def seed_curves(ax: Axes, records: Sequence[Record], column: str, colour: str, label: str, ls: str = "-") -> None:
    """A column over steps: each seed as a faint line and their mean as a strong one."""
    within = SHARE if is_share(column) else ANY
    lines_and_mean(ax, [record.curve(column) for record in records], colour, label, ls, within)


def _mark_birth(axes: Sequence[Axes], records: Sequence[Record], memory: str, colour: str) -> str:
    """A dashed line at the mean birth over seeds, if the memory was born in all of them; its step for the legend."""
    births = [birth(record, memory) for record in records]
    if None in births:
        return ""
    step = float(np.mean(births))  # type: ignore[arg-type]
    for ax in axes:
        ax.axvline(step, color=colour, ls="--", lw=0.9, alpha=0.8)
    return f", born at {step:.0f}"
