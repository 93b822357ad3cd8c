"""Figures of "Birth of a Transformer": losses, accuracies and recalls over training, for several kinds of training."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.probes.columns import memories
from engram.records import Record
from engram.show.curves import seed_curves
from engram.show.literal import literal
from engram.show.panels import (
    SHARE,
    BySize,
    averaged,
    bars,
    finished,
    legends_below,
    lines_and_mean,
    log_sizes,
    mean_and_interval,
    mean_interval,
    panels,
)
from engram.show.style import COLOURS, CYCLE, INK, MUTED, REFERENCE, house_style
from engram.show.subtitles import describe, headline
from engram.tasks import Bigram

LEVEL = 0.9
PARTS = {
    "embedding": "residual",
    "head1": "layer 1",
    "head2": "induction head, directly",
    "W_F.embedding": "W_F from the current token",
    "W_F.head1": "W_F from layer 1",
    "W_F.head2": "W_F from the induction head",
}
Runs = Mapping[Any, Sequence[Record]]  # by label, which names the kind of training


@house_style()
def schedules(runs: Runs) -> Figure:
    """Fig. 3: a column for each schedule, accuracy above, recalls below; a line where the frozen matrices thaw."""
    axes = panels(3.1 * len(runs), 5.4, 2, len(runs), sharex=True, sharey="row", squeeze=False, height_ratios=(1, 1.3))
    for (name, same), top, bottom in zip(runs.items(), *axes, strict=True):
        draw_accuracy(top, same)
        draw_recalls(bottom, same)
        top.set_title(name if name == "joint" else f"{name} until {_thaw(same[0])}")
        for ax in (top, bottom) if _thaw(same[0]) else ():
            ax.axvline(_thaw(same[0]), **REFERENCE)
        bottom.set(xlabel="training step", xlim=(0, same[0].train.steps))
    axes[0, 0].set_ylabel("in-context accuracy")
    axes[1, 0].set_ylabel("recall")
    fig = axes[0, 0].figure
    fig.legend(*axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return headline(
        fig, f"Learning the induction head alone; dotted: the frozen matrices begin to move. {of_all(runs)}"
    )


def _thaw(record: Record) -> int:
    return max(record.train.plan.frozen_until.values(), default=0)


def draw_accuracy(ax: Axes, records: Sequence[Record]) -> None:
    seed_curves(ax, records, "accuracy.in_context", INK, "in-context accuracy")
    ax.set_ylim(0, 1.02)


def draw_recalls(ax: Axes, records: Sequence[Record]) -> None:
    """Recall of every memory; one that nothing competes with (a single fixed trigger) is left out."""
    for i, memory in enumerate(memories(records[0].columns)):
        if not np.isnan([record.column(memory.name)[-1] for record in records]).any():
            seed_curves(ax, records, memory.name, COLOURS.get(memory.name, f"C{i}"), literal(memory.title))
    ax.set_ylim(0, 1.02)


@house_style()
def losses_by_data(runs: Runs, floors: dict[str, float]) -> Figure:
    """Fig. 4 left: loss in context, and global loss above its floor, for each law of the data."""
    left, right = panels(11.4, 4.6, 1, 2, sharex=True)
    for (name, same), colour in zip(runs.items(), CYCLE, strict=False):
        local, everywhere = ([averaged(r.curve(f"loss.{group}")) for r in same] for group in ("in_context", "global"))
        mean_and_interval(left, local, colour, name)
        above = [(steps, values - floors[name]) for steps, values in everywhere]
        mean_and_interval(right, above, colour, f"{name} (floor {floors[name]:.2f})")
    spec = next(iter(runs.values()))[0].train
    left.set(xlabel="training step", ylabel="loss (nats)", xlim=(0, spec.steps), ylim=(0, None), title="In context")
    right.set(
        xlabel="training step", ylabel="loss minus its floor (nats)", ylim=(0, 1.5), title="Global, above its floor"
    )
    finished(right, loc="upper right")
    about = (
        "The floor is what a model that knows the bigrams still loses. Curves are means over about 1/125 of the steps"
    )
    return headline(finished(left, loc="upper right"), f"{of_all(runs)}. {about}")


@house_style()
def memories_by_kind(runs: Runs, title: str) -> Figure:
    """Figs. 5 and 6: one panel per memory, one line per kind of training."""
    recalled = {memory.name: literal(memory.title) for memory in memories(next(iter(runs.values()))[0].columns)}
    columns = recalled | {"kl.W_F": "W_F: KL to the bigram"}
    axes = panels(3.0 * len(columns), 3.9, 1, len(columns), sharex=True)
    for ax, (column, name) in zip(axes, columns.items(), strict=True):
        for (kind, same), colour in zip(runs.items(), CYCLE, strict=False):
            if not np.isnan(same[0].column(column)[-1]):  # a single fixed trigger has nothing to compete with
                seed_curves(ax, same, column, colour, kind)
        ax.set(title=name, xlabel="training step", ylim=(0, 2.6 if column == "kl.W_F" else 1.02))
        ax.set_ylabel("nats" if column == "kl.W_F" else "recall")
    fig = axes[0].figure
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(runs))
    return headline(fig, f"{title}. {of_all(runs)}")


@house_style()
def transfer(runs: Runs) -> Figure:
    """Fig. 4 center: in-context accuracy on unseen sequences; colour says the training, line style the test."""
    ax = panels(7.2, 4.6)
    for (trained, same), colour in zip(runs.items(), CYCLE, strict=False):
        for tested, style in {"uniform": "-", "bigram": "--"}.items():
            column = f"test.{tested}.accuracy.in_context"
            seed_curves(ax, same, column, colour, f"trained on {trained}, tested on {tested}", ls=style)
    ax.set(xlabel="training step", ylabel="in-context accuracy", ylim=(0, 1.02))
    ax.set_title("Outputs of training and of testing")
    return headline(finished(ax, loc="lower right"), of_all(runs))


def of_all(runs: Runs) -> str:
    """What trainings of every kind share."""
    return describe([record for same in runs.values() for record in same])


@house_style()
def probes_and_shares(records: Sequence[Record]) -> Figure:
    """Fig. 4 right: accuracy and probes over training, and where the right answers of the trained model come from."""
    fig = Figure(figsize=(13, 7))
    axes = fig.subplot_mosaic("as;ms;ks", width_ratios=(1.5, 1), height_ratios=(1, 1.7, 1))
    draw_accuracy(axes["a"], records)
    axes["a"].set(ylabel="accuracy", title="Prediction in context")
    draw_recalls(axes["m"], records)
    axes["m"].set(ylabel="recall", title="Memories")
    axes["m"].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    seed_curves(axes["k"], records, "kl.W_F", CYCLE[4], "W_F")
    axes["k"].set(
        ylabel="KL (nats)", ylim=(0, 2.5), title="W_F: KL(π_b ‖ W_F), its distance from the bigrams of the text"
    )
    _shares(axes["s"], records)
    for name in "amk":
        axes[name].set(xlim=(0, records[0].train.steps), xlabel="training step" if name == "k" else "")
        axes[name].sharex(axes["k"])
        axes[name].tick_params(labelbottom=name == "k")
    return headline(fig, describe(records))


def _shares(ax: Axes, records: Sequence[Record]) -> None:
    """How much each part adds to the lead of the right answer, in context and at global positions; one dot per seed."""
    y = np.arange(len(PARTS))[::-1]
    for i, (group, words) in enumerate({"in_context": "in context", "global": "global"}.items()):
        found = np.array([[record.last(f"attribution.{group}.{part}") for part in PARTS] for record in records])
        at = y - 0.36 * (i - 0.5)
        ax.barh(at, found.mean(axis=0), height=0.34, color=CYCLE[i], alpha=0.4, label=words)
        for values in found:
            ax.plot(values, at, "o", ms=3, color=CYCLE[i])
        bars(ax, at, np.transpose(mean_interval(found)).tolist(), INK, across=True)
    ax.set_yticks(y, list(PARTS.values()))
    ax.set(xlabel="logit of the right answer above the mean (nats)", title="Where right answers come from")
    ax.axvline(0, color=MUTED, lw=0.8)
    ax.grid(visible=False)
    ax.grid(axis="x")
    ax.legend(loc="upper right")


@house_style()
def dimension_figure(fixed: Runs, tuned: Runs, tuning: Mapping[int, Mapping[float, float]]) -> Figure:
    """Recall of W_O2 over steps for each width, at the fixed rate and at the tuned ones; and how these were tuned."""
    left, middle, right = panels(12.6, 5, 1, 3, width_ratios=(1.2, 1.2, 1))
    _recalls_of_output(left, {f"d={d}": records for d, records in fixed.items()})
    _recalls_of_output(middle, {f"d={d}, rate {_rate(records):g}": records for d, records in tuned.items()})
    left.set_title(f"Fixed rate {_rate(next(iter(fixed.values()))):g}")
    middle.set_title("Rate tuned for each width")
    _rates(right, tuning)
    about = of_all({0: [record for of in (fixed, tuned) for same in of.values() for record in same]})
    return headline(legends_below(left, middle, right), f"Recall of the output memory. {about}")


def _recalls_of_output(ax: Axes, runs: Mapping[str, Sequence[Record]]) -> None:
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
    left, right = panels(10.4, 4.8, 1, 2, sharey=True)
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
    return legends_below(left, right, ncols=3)


def _over_seeds(ax: Axes, by_size: BySize, colour: str, label: str) -> None:
    curves = [(list(by_size), seed) for seed in zip(*by_size.values(), strict=True)]
    lines_and_mean(ax, curves, colour, label, within=SHARE, marker="o", ms=4)


def _chance(ax: Axes, N: int) -> None:
    ax.axhline(1 / N, **REFERENCE, label=f"chance, 1/{N}")
