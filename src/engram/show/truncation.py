"""What a model says with one matrix truncated: a map of matrices and shares for each metric."""

from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.probes.truncation import Map, percent
from engram.show.literal import literal
from engram.show.panels import SHADES, panels
from engram.show.style import INK, house_style
from engram.show.subtitles import headline

TITLES = {
    "accuracy": "accuracy",
    "loss": "loss (nats)",
    "p_correct": "probability of the right token",
    "p_noise": "probability of the noise token",
}


@house_style()
def truncation_figure(found: Map, about: str) -> Figure:
    """A panel for each metric: matrices in the order of the model, the share of singular values that is kept."""
    columns = 2 if len(found.metrics) % 2 == 0 else len(found.metrics)
    rows = ceil(len(found.metrics) / columns)
    height = rows * (0.27 * len(found.matrices) + 1.15) + 0.4
    axes = panels(0.6 + 5.2 * columns, height, rows, columns, sharey=True, squeeze=False)
    for ax, metric in zip(axes.flat, found.metrics, strict=True):
        draw_metric(ax, found, metric)
    for ax in axes[:, 0]:
        ax.set_ylabel("truncated matrix")
    return headline(axes.flat[0].figure, about)


def draw_metric(ax: Axes, found: Map, metric: str) -> None:
    """One metric; probabilities and accuracies share a scale, and the colour bar marks the full model."""
    values = np.array([[found.at(name, share)[metric] for share in found.shares] for name in found.matrices])
    low, high = (values.min(), values.max()) if metric == "loss" else (0.0, 1.0)
    image = ax.imshow(values, aspect="auto", cmap=SHADES, vmin=low, vmax=high)
    for (i, j), value in np.ndenumerate(values):
        dark = value < low + 0.6 * (high - low)
        ax.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=7, color="w" if dark else INK)
    ax.set_xticks(range(len(found.shares)), [percent(share) for share in found.shares], fontsize=8)
    ax.set_yticks(range(len(found.matrices)), [*map(literal, found.matrices)], fontsize=8)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.grid(visible=False)
    full = found.full[metric]
    ax.set(title=f"{TITLES[metric]}; full model {full:.2f}", xlabel="singular values kept")
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02, shrink=0.95)
    bar.ax.axhline(full, color="w", lw=3)
    bar.ax.axhline(full, color=INK, lw=1.2)
