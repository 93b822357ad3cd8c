"""Figures of the effect of dimension: the output memory learned alone, and estimated in one step."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.records import Record
from engram.show.curves import seed_curves
from engram.show.style import MUTED, house_style
from engram.tasks import Bigram

LEVEL = 0.9
SEEN = {"color": MUTED, "ls": "--", "lw": 1.2}


@house_style()
def dimension_figure(
    fixed: Mapping[int, Sequence[Record]],
    tuned: Mapping[int, Sequence[Record]],
    tuning: Mapping[int, Mapping[float, float]],
) -> Figure:
    """Recall of W_O2 over steps for each width, at the fixed rate and at the tuned ones; and how these were tuned."""
    fig = Figure(figsize=(12.6, 4))
    left, middle, right = fig.subplots(1, 3, width_ratios=(1.2, 1.2, 1))
    _recalls(left, {f"d={d}": records for d, records in fixed.items()})
    _recalls(middle, {f"d={d}, rate {_rate(records):g}": records for d, records in tuned.items()})
    left.set_title(f"Fixed rate {_rate(next(iter(fixed.values()))):g}")
    middle.set_title("Rate tuned for each width")
    _rates(right, tuning)
    for ax in (left, middle, right):
        ax.grid(axis="y")
    return fig


def _recalls(ax: Axes, runs: Mapping[str, Sequence[Record]]) -> None:
    for i, (name, records) in enumerate(runs.items()):
        seed_curves(ax, records, "recall.W_O2", f"C{i}", name)
    specs = [records[0].train for records in runs.values()]
    ax.axhline(LEVEL, color=MUTED, ls="--", lw=1, label=f"recall {LEVEL}")
    _chance(ax, specs[0].task.N)
    ax.set(xlabel="training step", ylabel="recall of W_O2", xlim=(0, max(s.steps for s in specs)), ylim=(0, 1.02))
    ax.legend(fontsize=8)


def _rate(records: Sequence[Record]) -> float:
    return records[0].train.plan.optimiser.lr


def _rates(ax: Axes, tuning: Mapping[int, Mapping[float, float]]) -> None:
    for i, (d, means) in enumerate(tuning.items()):
        rates, values = list(means), list(means.values())
        best = int(np.argmax(values))
        ax.plot(rates, values, "o-", ms=4, lw=1.4, color=f"C{i}", label=f"d={d}")
        ax.plot(rates[best], values[best], "o", ms=10, mfc="none", mec=f"C{i}", mew=1.4)
    ax.set(xscale="log", xlabel="learning rate", ylabel="mean recall over the run", ylim=(0, 1.02))
    ax.set_title("Tuning on other seeds (ring: chosen)")
    _plain_ticks(ax, list(next(iter(tuning.values()))))


@house_style()
def one_step_figure(
    recalls: Mapping[int, Mapping[int, Sequence[float]]], unseen: Mapping[int, Sequence[float]]
) -> Figure:
    """R1 against the number of batches for each width, and against the width for some numbers of batches."""
    fig = Figure(figsize=(10.4, 4.2))
    left, right = fig.subplots(1, 2, sharey=True)
    batches = list(next(iter(recalls.values())))
    for i, (d, by_batches) in enumerate(recalls.items()):
        _over_seeds(left, batches, [by_batches[n] for n in batches], f"C{i}", f"d={d}")
    N = Bigram().N  # the law of Fig. 9 draws from the bundled text
    left.plot(batches, [1 - np.mean(unseen[n]) / N for n in batches], label="tokens seen as an answer", **SEEN)
    widths, shown = list(recalls), batches[:: max(1, len(batches) // 3)]
    for i, n in enumerate(shown):
        _over_seeds(right, widths, [recalls[d][n] for d in widths], f"C{i}", f"{n} batch{'es' if n > 1 else ''}")
    left.set(xlabel="batches of 32 sequences of 256 tokens (8192 each)", ylabel="one-step recall R1", title="More data")
    right.set(xlabel="width d", title="Wider")
    for ax, ticks in ((left, batches), (right, widths)):
        ax.set(xscale="log", ylim=(0, 1.02))
        _plain_ticks(ax, ticks)
        _chance(ax, N)
        ax.grid(axis="y")
        ax.legend(fontsize=8.5)
    return fig


def _over_seeds(ax: Axes, x: Sequence[int], values: Sequence[Sequence[float]], colour: str, label: str) -> None:
    """Each seed as a faint line and their mean as a strong one."""
    for seed in zip(*values, strict=True):
        ax.plot(x, seed, color=colour, lw=0.7, alpha=0.3)
    ax.plot(x, [np.mean(of_x) for of_x in values], "o-", ms=4, color=colour, lw=1.8, label=label)


def _chance(ax: Axes, N: int) -> None:
    ax.axhline(1 / N, color=MUTED, ls=":", lw=1, label=f"chance, 1/{N}")


def _plain_ticks(ax: Axes, sizes: Sequence[float]) -> None:
    ax.set_xticks(list(sizes), [f"{size:g}" for size in sizes])
    ax.set_xticks([], minor=True)
