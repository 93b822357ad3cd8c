"""A published curve beside our runs, with the interval in which one more run of ours would lie."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.claims.prediction import limit
from engram.probes.columns import axis, column
from engram.show.literal import literal
from engram.show.panels import panels
from engram.show.style import COLOURS, INK, MUTED, house_style
from engram.show.subtitles import headline

SLATE = "#56718a"  # for what is no memory
Beside = tuple[np.ndarray, np.ndarray]  # our runs, one row each, and the published one


@house_style()
def beside_published(
    steps: np.ndarray, columns: Mapping[str, Beside], worst: Mapping[str, float], whose: str
) -> Figure:
    """Every column a panel: our seeds as thin lines, a 95 % prediction interval at each step, the published run."""
    axes = panels(10.5, 5.8, 2, -(-len(columns) // 2), sharex=True)
    for ax, (name, beside) in zip(axes.flat, columns.items(), strict=True):
        _draw(ax, steps, *beside, COLOURS.get(name, SLATE), whose)
        shown = column(name)
        ax.set(title=literal(shown.title), ylabel=literal(axis(shown.group)), xlim=(steps[0], steps[-1]))
        ax.set_ylim(0, None if name == "loss" else 1.02)
        ax.set_title(f"largest |z| {worst[name]:.1f}", loc="right", fontsize=8.5, fontweight="normal", color=MUTED)
    for ax in axes[-1]:
        ax.set_xlabel("training step")
    axes.flat[len(columns) - 1].legend(loc="upper left")  # the last recall stays low
    n = len(next(iter(columns.values()))[0])
    text = f"{whose[0].upper()}{whose[1:]}, one run, beside {n} seeds of ours, read every {steps[1] - steps[0]:g} steps"
    return headline(axes[0, 0].get_figure(root=True), text)


def _draw(ax: Axes, steps: np.ndarray, ours: np.ndarray, published: np.ndarray, colour: str, whose: str) -> None:
    mean, n = ours.mean(axis=0), len(ours)
    half = limit(n, 1) * ours.std(axis=0, ddof=1) * np.sqrt(1 + 1 / n)
    band = "one more of ours (95 % at each step)"
    ax.fill_between(steps, mean - half, mean + half, color=colour, alpha=0.15, lw=0, label=band)
    for i, run in enumerate(ours):
        ax.plot(steps, run, color=colour, lw=0.8, alpha=0.6, label="ours" if i == 0 else None)
    ax.plot(steps, published, "o-", color=INK, lw=1.1, ms=2.6, label=whose)
