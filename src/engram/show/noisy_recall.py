"""Noise against the answer from context: while a model trains, matrix by matrix, and over the share of noise."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.records import Record
from engram.show.curves import seed_curves
from engram.show.panels import SHARE, finished, panels, seed_dots
from engram.show.style import CYCLE, MUTED, house_style
from engram.show.subtitles import describe, headline

RIGHT, NOISE = CYCLE[0], CYCLE[1]
Gains = Mapping[str, Sequence[float]]  # by matrix, at every share


@house_style()
def noisy_recall_figure(
    records: Sequence[Record], alpha: float, cut: str, gains: Gains, shares: Sequence[float]
) -> Figure:
    """Over training at one α, and p(correct) gained by truncating each matrix."""
    training, mapped = panels(12.4, 5.0, 1, 2, width_ratios=[1.25, 1])
    draw_training(training, records, alpha, cut)
    draw_gains(mapped, gains, shares)
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.13), "ncols": 3}  # curves cross the whole panel
    return headline(finished(training, **below), describe(records))


@house_style()
def noise_share_figure(by_alpha: Mapping[float, Sequence[Record]], ends: Mapping[str, Any]) -> Figure:
    """p(correct) over training and at the end, for several shares of noise."""
    training, end = panels(12.4, 4.2, 1, 2, width_ratios=[1.25, 1])
    for i, (alpha, records) in enumerate(by_alpha.items()):
        seed_curves(training, records, "noise.p_correct", CYCLE[i], f"α = {alpha}")
        training.axhline(1 - alpha, color=CYCLE[i], ls=":", lw=1)
    training.set(xlabel="training step", ylabel="p(correct) on clean text", ylim=(0, 1.03))
    training.set_title("The answer from context (dotted: best predictor of noisy text)")
    draw_ends(end, ends)
    return headline(finished(training, end), describe([record for same in by_alpha.values() for record in same]))


def draw_training(ax: Axes, records: Sequence[Record], alpha: float, cut: str) -> None:
    """p(correct) and p(noise) on clean text: of the model, and without one matrix."""
    for metric, colour, words in (("p_correct", RIGHT, "right token"), ("p_noise", NOISE, "noise token")):
        seed_curves(ax, records, f"noise.{metric}", colour, words)
        seed_curves(ax, records, f"cut.{cut}.0%.{metric}", colour, f"{words}, {cut} removed", ls="--")
    ax.axhline(alpha, color=MUTED, ls=":", lw=1, label=f"best predictor of noisy text, α = {alpha}")
    ax.set(xscale="symlog", xlim=(0, None), ylim=(0, 1.03), xlabel="training step", ylabel="probability on clean text")
    ax.set_title("Noise is learned first, and hides the answer")


def draw_gains(ax: Axes, gains: Gains, shares: Sequence[float]) -> None:
    """What truncating a matrix does to p(correct): red it loses, blue it gains."""
    table = np.array(list(gains.values()))
    most = max(np.abs(table).max(), 1e-9)
    image = ax.imshow(table, cmap="RdBu", vmin=-most, vmax=most, aspect="auto")
    ax.set_xticks(range(len(shares)), [f"{100 * share:g}" for share in shares])
    ax.set_yticks(range(len(gains)), list(gains))
    ax.grid(visible=False)
    ax.set(xlabel="singular values kept (%)", title="Where the noise is: one matrix truncated")
    figure = ax.get_figure()
    assert figure is not None
    figure.colorbar(image, ax=ax, label="p(correct) gained")


def draw_ends(ax: Axes, ends: Mapping[str, Any]) -> None:
    """p(correct) at the end over α: of the model, and without the matrix; dashed: what the best predictor gives."""
    for colour, (words, by_alpha) in zip((RIGHT, CYCLE[2]), ends.items(), strict=True):
        seed_dots(ax, by_alpha, colour, words, within=SHARE)
    alphas = sorted(next(iter(ends.values())))
    ax.plot(alphas, [1 - alpha for alpha in alphas], color=MUTED, ls="--", lw=1, label="best predictor, 1 − α")
    ax.set(xlabel="share of noise α", ylabel="p(correct) on clean text, at the end", ylim=(0, 1.03))
    ax.set_title("More noise, more to reveal")
