"""Figures of trained hops: accuracy over the steps by what is taught, error over hops by depth, what is needed."""

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.records import Record
from engram.show.curves import describe, headline, seed_curves
from engram.show.panels import BySize, dots_and_mean, finished, log_sizes, panels, seed_dots
from engram.show.style import CYCLE, INK, MUTED, REFERENCE, house_style

Runs = Mapping[str, Sequence[Record]]

RINGS = {"mfc": "none", "ms": 7, "lw": 0.8}


@house_style()
def regimes(runs: Runs, hops: Sequence[int], column: Callable[[int], str]) -> Figure:
    """A panel for each regime: accuracy on unseen sequences at every number of hops; lines where a stage begins."""
    axes = panels(11, 6, 2, (len(runs) + 1) // 2, sharex=True, sharey=True, squeeze=False).ravel()
    for ax, (regime, records) in zip(axes, runs.items(), strict=False):
        for i, k in enumerate(hops):
            seed_curves(ax, records, column(k), CYCLE[i], f"{k} hop{'s' if k > 1 else ''}")
        _mark_stages(ax, records[0])
        ax.set(title=regime, ylim=(-0.02, 1.04))
    first = next(iter(runs.values()))[0].train
    for ax in axes:
        ax.set(xlabel="training step", ylabel="accuracy")
        ax.axhline(1 / first.task.n, **REFERENCE)  # type: ignore[attr-defined]  # a guess
    everything = [record for records in runs.values() for record in records]
    return headline(finished(*axes[: len(runs)], loc="upper left"), f"Compositions: {describe(everything)}")


def _mark_stages(ax: Axes, record: Record) -> None:
    for stage in record.train.plan.stages:
        ax.axvline(stage.step, color=MUTED, ls="--", lw=0.9)


@house_style()
def error_by_depth(
    errors: Mapping[int, BySize], published: Mapping[int, Mapping[int, float]], chance: float, title: str
) -> Figure:
    """Error over the number of hops, a line for each depth, one dot a seed; rings where others published a number."""
    ax = panels(6.4, 4)
    for i, (depth, by_hops) in enumerate(errors.items()):
        seed_dots(ax, by_hops, CYCLE[i], f"L = {depth}")
        others = published.get(depth, {})
        ax.plot(list(others), list(others.values()), "o--", **RINGS, mec=CYCLE[i], color=CYCLE[i])
    if published:
        ax.plot([], [], "o--", **RINGS, mec=INK, color=INK, label="published (100,000 steps, dropout on)")
    ax.axhline(chance, **REFERENCE, label="a guess among four letters")
    ax.set(xlabel="hops k", ylabel="share answered wrongly", ylim=(-0.02, 1.0), title=title)
    ax.set_xticks(sorted({k for by_hops in errors.values() for k in by_hops}))
    return finished(ax)


@house_style()
def needed(by_name: Mapping[str, BySize], xlabel: str, ylabel: str, title: str) -> Figure:
    """What is needed against a size, both logarithmic: one dot a seed and a line through the geometric means."""
    ax = panels(6.4, 4)
    for i, (name, by_size) in enumerate(by_name.items()):
        dots_and_mean(ax, by_size, i, name)
    ax.set(yscale="log", xlabel=xlabel, ylabel=ylabel, title=title)
    log_sizes(ax, sorted({size for by_size in by_name.values() for size in by_size}))
    return finished(ax)
