"""Attention over a readable sequence, as in Figs. 2 and 11; boxes mark where an induction head would look."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from engram.probes.edges import Edges, previous_edges, successor_edges
from engram.records import Record
from engram.show.curves import headline
from engram.show.style import CYCLE, house_style
from engram.tasks import Task
from engram.tasks.batch import marks_of

Edge = tuple[int, int]
RIGHT, OTHER = CYCLE[1], CYCLE[2]  # after an earlier visit of a trigger; of another token


@house_style()
def attention_maps(record: Record, step: int | None = None, length: int = 44) -> Figure:
    """Attention of both layers of one training, all heads together."""
    fig = Figure(figsize=(12.4, 6.6))
    draw_layers(fig, record, "", step, length)
    return headline(fig, BOXES)


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
        readable.draw(axes[i - 1][h - 1], patterns[i - 1][h - 1], boxes, titles[i, h], size=5)
    fig.colorbar(axes[0][0].images[0], ax=axes, shrink=0.5, pad=0.01, label="attention")


BOXES = (
    "Boxes: where an induction head would look. Layer 1: the position before. Layer 2: after an earlier visit of the "
    "current token; orange if it is a trigger, green if not. "
    "The sequence was chosen for its variety among unseen ones, whatever the model does with it"
)


class Readable:
    """A readable sequence of a training's task with its boxes."""

    def __init__(self, record: Record, length: int):
        self.tokens, asked = readable_sequence(record.train.task, record.train.seed, length)
        marks = marks_of(record.train.task, record.train.seed)
        self.marks = [marks[z] for z in self.tokens]
        z = torch.from_numpy(self.tokens)[None]
        self.previous = {(t, s): RIGHT for t, s in _pairs(previous_edges(z))}
        self.successors = {(t, s): RIGHT if asked[t] else OTHER for t, s in _pairs(successor_edges(z))}

    def draw(
        self, ax: Axes, pattern: Float[np.ndarray, "T k"], boxes: dict[Edge, str], title: str, size: float = 7.5
    ) -> AxesImage:
        for (t, s), colour in boxes.items():
            ax.add_patch(Rectangle((s - 0.5, t - 0.5), 1, 1, fill=False, ec=colour, lw=0.8, alpha=0.9))
        ax.set_xticks(range(len(self.marks)), self.marks, fontsize=size)
        ax.set_yticks(range(len(self.marks)), self.marks, fontsize=size)
        ax.tick_params(length=0)
        ax.grid(visible=False)
        ax.set(title=title, xlabel="attends to", ylabel="current token")
        seen = np.tri(len(pattern), dtype=bool)
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
