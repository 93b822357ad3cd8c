"""Heads of a real model: where they look, what they are worth, whose writing they read, what they copy."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from engram.show.panels import SHADES, finished, panels
from engram.show.style import INK, MUTED, REFERENCE, house_style
from engram.show.subtitles import headline

Head = tuple[int, int]
WORDS = "L2H3 is layer 2, head 3"


def name(head: Head) -> str:
    return f"L{head[0]}H{head[1]}"


@house_style()
def two_scores(by_head: Mapping[Head, Mapping[str, float]], about: str) -> Figure:
    """Both scores of all heads as maps, layers from left to right."""
    axes = panels(11.5, 5.2, rows=2)
    titles = {"induction": "on the token after the last visit", "previous": "on the token before"}
    for ax, (kind, words) in zip(axes, titles.items(), strict=True):
        _map(ax, {head: scores[kind] for head, scores in by_head.items()}, f"Attention {words}: {kind} score")
    return headline(axes[0].figure, f"{about}, mean over seeds; the five largest have their numbers. {WORDS}")


def _map(ax: Axes, values: Mapping[Head, float], title: str) -> None:
    """Layers from left to right, heads from top to bottom; the five largest have their numbers."""
    L, H = max(layer for layer, _ in values), max(h for _, h in values)
    cells = np.full((H, L), np.nan)
    for (layer, h), value in values.items():
        cells[h - 1, layer - 1] = value
    shown = ax.imshow(cells, aspect="auto", vmin=0, vmax=1, cmap=SHADES)
    for layer, h in sorted(values, key=lambda head: -values[head])[:5]:
        colour = "w" if values[layer, h] < 0.6 else INK
        ax.text(layer - 1, h - 1, f"{values[layer, h]:.2f}", ha="center", va="center", fontsize=7, color=colour)
    ax.set(title=title, xlabel="layer", ylabel="head")
    ax.set_xticks(range(L), [str(i + 1) for i in range(L)], fontsize=7.5)
    ax.set_yticks(range(H), [str(h + 1) for h in range(H)], fontsize=7.5)
    ax.grid(visible=False)
    ax.figure.colorbar(shown, ax=ax, label="score", pad=0.01)


@house_style()
def shares_left(shares: Mapping[str, Sequence[float]], bands: Mapping[str, tuple[float, float]], about: str) -> Figure:
    """What is left of the gain, a dot for each seed; registered bands are shaded."""
    ax = panels(7, 3.6)
    _rows_of_dots(ax, shares, bands)
    ax.set(xlabel="share of the gain from a repeat that is left", title="Heads replaced by their mean")
    return headline(ax.figure, f"{about}; a dot is a seed, a bar the mean, shaded: the registered band. {WORDS}")


def _rows_of_dots(
    ax: Axes, rows: Mapping[str, Sequence[float]], bands: Mapping[str, tuple[float, float]], colour: str = "C0"
) -> None:
    for y, (label, values) in enumerate(rows.items()):
        if label in bands:
            low, high = bands[label]
            ax.barh(y, high - low, left=low, height=0.7, color=MUTED, alpha=0.18, lw=0)
        ax.plot(values, [y] * len(values), "o", color=colour, ms=5, alpha=0.6)
        ax.plot([np.mean(values)] * 2, [y - 0.28, y + 0.28], color=colour, lw=2)
        ax.annotate(f"{np.mean(values):.3f}", (1.02, y), xycoords=("axes fraction", "data"), va="center", fontsize=9)
    ax.axvline(1, **REFERENCE)
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(right=max(1.05, ax.get_xlim()[1]))


@house_style()
def keys_cut(
    rows: Mapping[str, Sequence[Mapping[str, Any]]], shares: Mapping[str, Sequence[float]], about: str
) -> Figure:
    """Induction scores of all later heads with the writer in their keys and without, and what is left of the gain."""
    axes = panels(11.5, 4.2, columns=len(rows) + 1)
    for ax, (writer, found) in zip(axes, rows.items(), strict=False):
        x, y = ([row[column] for row in found] for column in ("whole", "induction"))
        ax.plot([0, 1], [0, 1], label="unchanged", **REFERENCE)
        ax.plot(x, y, "o", ms=4, alpha=0.5, label="a later head, a seed")
        ax.set(
            title=f"Keys without what {writer} wrote", xlabel="induction score, whole model", ylabel="with the edge cut"
        )
        ax.legend(loc="upper left")
    bands = {label: (0.0, 0.25) if i == 0 else (0.9, 1.0) for i, label in enumerate(shares)}
    _rows_of_dots(axes[-1], shares, bands)
    axes[-1].set(xlabel="share of the gain that is left", title="What the repeat is still worth")
    return headline(axes[0].figure, f"{about}; shaded: the registered band, a bar is the mean. {WORDS}")


@house_style()
def partners_of(found: Mapping[str, Mapping[str, Mapping[Head, float]]], writer: Head, n: int, about: str) -> Figure:
    """Recall of each reader's keys through every earlier head, by the layer of that head."""
    titles = {"effective": "Effective embeddings", "raw": "Raw embeddings"}
    axes = panels(11.5, 4.4, columns=len(found), sharey=True)
    for ax, (embedding, readers) in zip(axes, found.items(), strict=True):
        for i, (reader, recalls) in enumerate(readers.items()):
            others = [(layer + 0.08 * (h - 5), value) for (layer, h), value in recalls.items() if (layer, h) != writer]
            ax.plot(*zip(*others, strict=True), "o", ms=3, color=f"C{i}", alpha=0.5)
            at = writer[0] + 0.08 * (writer[1] - 5)
            ax.plot(at, recalls[writer], "D", ms=7, color=f"C{i}", mec=INK, mew=0.6, label=reader)
        ax.axhline(1 / n, label="chance", **REFERENCE)
        ax.set(title=titles[embedding], xlabel="layer of the head that writes", ylim=(-0.03, 1.03))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[0].set_ylabel("share of tokens recalled")
    return headline(
        finished(*axes), f"{about}, means; diamonds: through {name(writer)}, dots: through every other head. {WORDS}"
    )


@house_style()
def copied_tokens(found: Mapping[str, Mapping[str, Sequence[float]]], about: str) -> Figure:
    """The share of tokens that a head writes when it looks at them."""
    ax = panels(8, 3.8)
    for i, (embedding, by_head) in enumerate(found.items()):
        for x, values in enumerate(by_head.values()):
            at = x + 0.2 * (i - 0.5)
            ax.plot([at] * len(values), values, "o", color=f"C{i}", ms=5, alpha=0.5)
            ax.plot(
                [at - 0.09, at + 0.09], [np.mean(values)] * 2, color=f"C{i}", lw=2, label=embedding if x == 0 else None
            )
    ax.axhline(0.02, label="raw: at most, for induction heads", **REFERENCE)
    ax.axhline(0.15, label="effective: at least, for L24H3", color=MUTED, ls="--", lw=1.2)
    heads = list(next(iter(found.values())))
    ax.set_xticks(range(len(heads)), heads)
    ax.set(ylabel="share of tokens copied", xlabel="head", title="Tokens that a head writes when it looks at them")
    ax.legend(title="embeddings", loc="upper left")
    return headline(ax.figure, f"{about}, largest of all logits; a dot is a seed, a bar the mean. {WORDS}")
