"""Figures of full transformers: how far one and two layers get, and what each head does."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from engram.records import Record
from engram.show.attention import BOXES, draw_heads, draw_layers
from engram.show.birth import Runs, draw_accuracy, draw_recalls, of_all
from engram.show.curves import describe, headline, seed_curves
from engram.show.panels import finished, panels
from engram.show.style import CYCLE, MUTED, house_style

LEVELS = {
    "ceiling": "best predictor",
    "bag": "good guess from the bag of tokens",
    "stands_out": "token that stands out most in the bag",
}


@house_style()
def one_and_two_layers(runs: Runs, levels: dict[str, dict[str, float]]) -> Figure:
    """Fig. 2: accuracy of one and two layers, and the attention of two layers where weights are kept."""
    kept = {kind: next((r for r in runs[kind, 2] if r.snapshot_steps), None) for kind in levels}
    maps = {kind: record for kind, record in kept.items() if record is not None}
    fig = Figure(figsize=(12.4, 4.2 + 6.4 * len(maps)))
    parts = fig.subfigures(1 + len(maps), 1, height_ratios=[4.2, *[6.4] * len(maps)], squeeze=False)[:, 0]
    draw_accuracies(list(parts[0].subplots(1, len(levels))), runs, levels)
    for part, (kind, record) in zip(parts[1:], maps.items(), strict=True):
        draw_layers(part, record, f"{kind} triggers. ")
    return headline(fig, f"{of_all(runs)}. {BOXES if maps else ''}")


def draw_accuracies(axes: Sequence[Axes], runs: Runs, levels: dict[str, dict[str, float]]) -> None:
    """In-context accuracy of one and two layers, a panel for each kind of triggers; dashed: what theory allows."""
    for ax, kind in zip(axes, levels, strict=True):
        for layers, colour, words in ((2, CYCLE[0], "2 layers"), (1, CYCLE[1], "1 layer")):
            seed_curves(ax, runs[kind, layers], "accuracy.in_context", colour, words)
        for (name, words), style in zip(LEVELS.items(), ("--", "-.", ":"), strict=True):
            value = levels[kind][name]
            ax.axhline(value, color=MUTED, ls=style, lw=1, label=f"{words}: {value:.2f}")
        ax.set(title=f"{kind} triggers", xlabel="training step", ylabel="in-context accuracy", ylim=(0, 1.03))
        ax.legend(loc="lower right")


@house_style()
def everything_trained(records: Sequence[Record]) -> Figure:
    """Fig. 10: losses, accuracy and recalls of a model in which everything moves."""
    losses, accuracy, memories = panels(12.4, 3.9, 1, 3)
    seed_curves(losses, records, "loss.in_context", CYCLE[0], "in context")
    seed_curves(losses, records, "loss.global", CYCLE[1], "global")
    losses.set(xlabel="training step", ylabel="loss (nats)", ylim=(0, None), title="Loss")
    draw_accuracy(accuracy, records)
    accuracy.set(xlabel="training step", ylabel="in-context accuracy", title="Accuracy")
    draw_recalls(memories, records)
    memories.set(xlabel="training step", ylabel="recall", title="Memories")
    return headline(finished(losses, memories), describe(records))


@house_style()
def head_figure(records: Sequence[Record], effects: dict[str, list[list[float]]]) -> Figure:
    """Fig. 11: what each head's edges are worth, and its attention where weights are kept."""
    shown = next((record for record in records if record.snapshot_steps), None)
    fig = Figure(figsize=(12.4, 3.6 + (7.4 if shown else 0)))
    parts = fig.subfigures(2 if shown else 1, 1, height_ratios=[3.6, 7.4][: 2 if shown else 1], squeeze=False)[:, 0]
    effect_bars(parts[0].subplots(), effects, "What blocking the circuit's edges of one head costs")
    if shown:
        draw_heads(parts[1], shown, _titles(effects, records.index(shown)))
    return headline(fig, f"{describe(records)}. {BOXES if shown else ''}")


def _titles(effects: dict[str, list[list[float]]], seed: int) -> dict[tuple[int, int], str]:
    """Layer, head and what its edges are worth, in nats."""
    by_layer = [by_seed[seed] for by_seed in effects.values()]
    return {
        (i, h): f"Layer {i}, head {h}: {value:+.2f} nats"
        for i, values in enumerate(by_layer, 1)
        for h, value in enumerate(values, 1)
    }


def effect_bars(ax: Axes, effects: dict[str, list[list[float]]], title: str) -> None:
    """What blocking its edges costs, head by head; one dot per seed, heads in the order of their effect."""
    for i, (name, by_seed) in enumerate(effects.items()):
        ranked = np.array([sorted(values, reverse=True) for values in by_seed])
        x = np.arange(1, ranked.shape[1] + 1) + 0.32 * (i - 0.5)
        ax.bar(x, ranked.mean(axis=0), width=0.3, color=CYCLE[i], alpha=0.35, label=name)
        for values in ranked:
            ax.plot(x, values, "o", ms=4, color=CYCLE[i])
    ax.set(title=title, xlabel="head, in the order of its effect in each seed", ylabel="nats of loss in context")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend()
