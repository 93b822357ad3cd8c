"""Figures of whole transformers: how far one and two layers get, what each head does, where attention looks."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from engram.probes.edges import Edges, previous_edges, successor_edges
from engram.records import Record
from engram.show.birth import Runs, draw_accuracy, draw_recalls, of_all
from engram.show.curves import seed_curves
from engram.show.literal import literal
from engram.show.panels import averaged, finished, mean_and_interval, panels, token_ticks
from engram.show.style import CYCLE, INK, MUTED, house_style
from engram.show.subtitles import describe, headline
from engram.tasks import Task
from engram.tasks.batch import marks_of

Edge = tuple[int, int]
RIGHT, OTHER = CYCLE[1], CYCLE[2]  # after an earlier visit of a trigger; of another token
LEVELS = {
    "ceiling": "best predictor",
    "bag": "good guess from the bag of tokens",
    "stands_out": "token that stands out most in the bag",
}


@house_style()
def one_and_two_layers(runs: Runs, levels: dict[str, dict[str, float]]) -> Figure:
    """Fig. 2: accuracy of one and two layers, and the attention of two layers where weights are kept."""
    kept = {kind: next((r for r in runs.get((kind, 2), ()) if r.snapshot_steps), None) for kind in levels}
    maps = {kind: record for kind, record in kept.items() if record is not None}
    fig = Figure(figsize=(12.4, 4.2 + 6.4 * len(maps)))
    parts = fig.subfigures(1 + len(maps), 1, height_ratios=[4.2, *[6.4] * len(maps)], squeeze=False)[:, 0]
    draw_accuracies(list(parts[0].subplots(1, len(levels))), runs, levels)
    for part, (kind, record) in zip(parts[1:], maps.items(), strict=True):
        draw_layers(part, record, f"{kind} triggers. ")
    return headline(fig, f"{of_all(runs)}. Curves are means over about 1/125 of the steps. {BOXES if maps else ''}")


def draw_accuracies(axes: Sequence[Axes], runs: Runs, levels: dict[str, dict[str, float]]) -> None:
    """In-context accuracy of one and two layers, a panel for each kind of triggers; dashed: what theory allows."""
    for ax, kind in zip(axes, levels, strict=True):
        for layers, colour, words in ((2, CYCLE[0], "2 layers"), (1, CYCLE[1], "1 layer")):
            if (kind, layers) in runs:
                curves = [averaged(record.curve("accuracy.in_context")) for record in runs[kind, layers]]
                mean_and_interval(ax, curves, colour, words)
                _mark_end(ax, runs[kind, layers][0], max(r[0].train.steps for r in _of_kind(runs, kind)), colour)
        for (name, words), style in zip(LEVELS.items(), ("--", "-.", ":"), strict=True):
            value = levels[kind][name]
            ax.axhline(value, color=MUTED, ls=style, lw=1, label=f"{words}: {value:.2f}")
        ax.set(title=f"{kind} triggers", xlabel="training step", ylabel="in-context accuracy", ylim=(0, 1.03))
        ax.legend(loc="lower right")


def _of_kind(runs: Runs, kind: str) -> list[Sequence[Record]]:
    return [records for label, records in runs.items() if label[0] == kind]


def _mark_end(ax: Axes, record: Record, longest: int, colour: str) -> None:
    """A curve that is shorter than its neighbour ends because its training does."""
    steps, values = record.curve("accuracy.in_context")
    if record.train.steps < longest:
        ax.plot(steps[-1], np.mean(values[-20:]), "s", ms=6, color=colour)
        note = f"trained for\n{record.train.steps} steps only"
        ax.annotate(
            note, (steps[-1], np.mean(values[-20:])), (8, 0), textcoords="offset points", va="center", fontsize=8
        )


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


@house_style()
def attention_maps(record: Record, step: int | None = None, length: int = 44) -> Figure:
    """Attention of both layers of one training, all heads together."""
    fig = Figure(figsize=(12.4, 6.8))
    draw_layers(fig, record, "", step, length)
    return headline(fig, f"{BOXES}. {describe([record])}")


def draw_layers(fig: FigureBase, record: Record, name: str, step: int | None = None, length: int = 36) -> None:
    """Layers 1 and 2 side by side, each the mean over its heads."""
    readable, axes = Readable(record, length), fig.subplots(1, 2)
    trace = record.model(step)(readable.tokens)
    layer1, layer2 = trace.attention1[0].numpy(), trace.attention2[0].numpy()
    readable.draw(axes[0], layer1, readable.previous, f"{name}Layer 1 (boxes: previous position)")
    image = readable.draw(axes[1], layer2, readable.successors, f"{name}Layer 2 (boxes: after an earlier visit)")
    fig.colorbar(image, ax=axes, shrink=0.8, pad=0.01, label="attention")


def draw_heads(fig: FigureBase, record: Record, titles: dict[tuple[int, int], str], length: int = 28) -> None:
    """Every head of every layer, one row per layer (Fig. 11); `titles` say what each was found to do."""
    readable = Readable(record, length)
    patterns = [layer[0].numpy() for layer in record.model()(readable.tokens).attention]
    axes = fig.subplots(len(patterns), max(map(len, patterns)), squeeze=False)
    for i, h in titles:
        boxes = readable.previous if i == 1 else readable.successors
        readable.draw(axes[i - 1][h - 1], patterns[i - 1][h - 1], boxes, titles[i, h])
    fig.colorbar(axes[0][0].images[0], ax=axes, shrink=0.5, pad=0.01, label="attention")


BOXES = (
    "Boxes: where an induction head would look. Layer 1, black: the position before. Layer 2: after an earlier visit "
    "of the current token, orange if it is a trigger, green if not. "
    "The sequence was chosen for its variety among unseen ones, whatever the model does with it"
)


class Readable:
    """A readable sequence of a training's task with its boxes."""

    def __init__(self, record: Record, length: int):
        self.tokens, asked = readable_sequence(record.train.task, record.train.seed, length)
        marks = marks_of(record.train.task, record.train.seed)
        self.marks = [literal(marks[z]) for z in self.tokens]
        z = torch.from_numpy(self.tokens)[None]
        self.previous = {(t, s): INK for t, s in _pairs(previous_edges(z))}
        self.successors = {(t, s): RIGHT if asked[t] else OTHER for t, s in _pairs(successor_edges(z))}

    def draw(self, ax: Axes, pattern: Float[np.ndarray, "T k"], boxes: dict[Edge, str], title: str) -> AxesImage:
        for (t, s), colour in boxes.items():
            ax.add_patch(Rectangle((s - 0.5, t - 0.5), 1, 1, fill=False, ec=colour, lw=0.8, alpha=0.9))
        return draw_pattern(ax, pattern, self.marks, title)


def draw_pattern(ax: Axes, pattern: Float[np.ndarray, "T k"], marks: Sequence[str], title: str) -> AxesImage:
    """Where each token looks: white is nowhere, and what comes later is left empty."""
    for axis in (ax.xaxis, ax.yaxis):
        token_ticks(axis, marks)
    ax.grid(visible=False)
    ax.set(title=title, xlabel="attends to", ylabel="current token")
    seen = np.tri(*pattern.shape, dtype=bool)
    return ax.imshow(np.where(seen, pattern, np.nan), cmap="Blues", vmin=0, vmax=1)


def _pairs(edges: Edges) -> list[list[int]]:
    """[t, s] for every edge of a single sequence."""
    return edges[0].nonzero().tolist()


def readable_sequence(task: Task, seed: int, length: int) -> tuple[Int[np.ndarray, " T"], Bool[np.ndarray, " T"]]:
    """The beginning of an unseen sequence with many predictions in context and no token that repeats itself."""
    batch = task.sample(seed, 2**41, 128)
    length = min(length, task.T)
    tokens, asked = batch.tokens[:, :length], batch.groups["in_context"][:, :length]
    repeats = (tokens == batch.targets[:, :length]).sum(axis=1)
    variety = np.array([len(set(sequence.tolist())) for sequence in tokens])
    best = int(np.argmax(np.minimum(asked.sum(axis=1), 8) + 0.5 * variety - 4 * repeats))
    return tokens[best], asked[best]
