"""Figures of the effect of dimension: the output memory learned alone, and estimated in one step."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.records import Record
from engram.show.curves import seed_curves
from engram.show.panels import BySize, finished, lines_and_mean, log_sizes, panels
from engram.show.style import MUTED, REFERENCE, house_style
from engram.tasks import Bigram

LEVEL = 0.9


@house_style()
def dimension_figure(
    fixed: Mapping[int, Sequence[Record]],
    tuned: Mapping[int, Sequence[Record]],
    tuning: Mapping[int, Mapping[float, float]],
) -> Figure:
    """Recall of W_O2 over steps for each width, at the fixed rate and at the tuned ones; and how these were tuned."""
    left, middle, right = panels(12.6, 4, 1, 3, width_ratios=(1.2, 1.2, 1))
    _recalls(left, {f"d={d}": records for d, records in fixed.items()})
    _recalls(middle, {f"d={d}, rate {_rate(records):g}": records for d, records in tuned.items()})
    left.set_title(f"Fixed rate {_rate(next(iter(fixed.values()))):g}")
    middle.set_title("Rate tuned for each width")
    _rates(right, tuning)
    return finished(left, middle, fontsize=8)


def _recalls(ax: Axes, runs: Mapping[str, Sequence[Record]]) -> None:
    for i, (name, records) in enumerate(runs.items()):
        seed_curves(ax, records, "recall.W_O2", f"C{i}", name)
    specs = [records[0].train for records in runs.values()]
    ax.axhline(LEVEL, color=MUTED, ls="--", lw=1, label=f"recall {LEVEL}")
    _chance(ax, specs[0].task.N)
    ax.set(xlabel="training step", ylabel="recall of W_O2", xlim=(0, max(s.steps for s in specs)), ylim=(0, 1.02))


def _rate(records: Sequence[Record]) -> float:
    return records[0].train.plan.optimiser.lr


def _rates(ax: Axes, tuning: Mapping[int, Mapping[float, float]]) -> None:
    for i, (d, means) in enumerate(tuning.items()):
        rates, values = list(means), list(means.values())
        best = int(np.argmax(values))
        ax.plot(rates, values, "o-", ms=4, lw=1.4, color=f"C{i}", label=f"d={d}")
        ax.plot(rates[best], values[best], "o", ms=10, mfc="none", mec=f"C{i}", mew=1.4)
    ax.set(xlabel="learning rate", ylabel="mean recall over the run", ylim=(0, 1.02))
    ax.set_title("Tuning on other seeds (ring: chosen)")
    log_sizes(ax, next(iter(tuning.values())))


@house_style()
def one_step_figure(recalls: Mapping[int, BySize], unseen: BySize) -> Figure:
    """R1 against the number of batches for each width, and against the width for some numbers of batches."""
    left, right = panels(10.4, 4.2, 1, 2, sharey=True)
    batches = list(next(iter(recalls.values())))
    for i, (d, by_batches) in enumerate(recalls.items()):
        _over_seeds(left, by_batches, f"C{i}", f"d={d}")
    N = Bigram().N  # the law of Fig. 9 draws from the bundled text
    seen = [1 - np.mean(unseen[n]) / N for n in batches]
    left.plot(batches, seen, color=MUTED, ls="--", lw=1.2, label="tokens seen as an answer")
    for i, n in enumerate(batches[:: max(1, len(batches) // 3)]):
        _over_seeds(right, {d: recalls[d][n] for d in recalls}, f"C{i}", f"{n} batch{'es' if n > 1 else ''}")
    left.set(xlabel="batches of 32 sequences of 256 tokens (8192 each)", ylabel="one-step recall R1", title="More data")
    right.set(xlabel="width d", title="Wider", ylim=(0, 1.02))
    for ax, sizes in ((left, batches), (right, recalls)):
        log_sizes(ax, sizes)
        _chance(ax, N)
    return finished(left, right)


def _over_seeds(ax: Axes, by_size: BySize, colour: str, label: str) -> None:
    curves = [(list(by_size), seed) for seed in zip(*by_size.values(), strict=True)]
    lines_and_mean(ax, curves, colour, label, marker="o", ms=4)


def _chance(ax: Axes, N: int) -> None:
    ax.axhline(1 / N, **REFERENCE, label=f"chance, 1/{N}")
