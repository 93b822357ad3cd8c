"""Figures of global against in-context associations."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.show.panels import BySize, dots, finished, log_sizes, panels
from engram.show.style import MUTED, REFERENCE, THEORY, house_style
from engram.theory.context_samples import attention_limit, attention_samples, crossover, feedforward_crossing

ALPHA = 0.5
LINE = 25  # points of a theoretical curve


@house_style()
def samples_figure(
    feedforward: BySize, attention: Mapping[int, BySize], by_alpha: Mapping[str, BySize], at: tuple[int, int]
) -> Figure:
    """Samples that one step needs: against N for each length T of attention, and against α at `at` = (N, T)."""
    left, right = panels(11, 4.6, 1, 2, width_ratios=(1.2, 1))
    _against_size(left, feedforward, attention)
    _against_noise(right, by_alpha, *at, colour=1 + list(attention).index(at[1]))
    return finished(left, right)


def _against_size(ax: Axes, feedforward: BySize, attention: Mapping[int, BySize]) -> None:
    sizes = np.unique(np.geomspace(min(feedforward), max(feedforward), LINE).astype(int))
    dots(ax, feedforward, 0, "feed-forward: noise leads")
    ax.plot(sizes, [feedforward_crossing(int(N), ALPHA) for N in sizes], **THEORY, label="closed forms")
    for i, (T, by_size) in enumerate(attention.items(), 1):
        dots(ax, by_size, i, f"attention, T={T}: 90 % recalled")
        ax.plot(sizes, [attention_samples(int(N), T, ALPHA) for N in sizes], **THEORY)
        if sizes[0] < crossover(T, ALPHA) < sizes[-1]:
            at = round(crossover(T, ALPHA))
            ax.plot(at, attention_samples(at, T, ALPHA), "*", color=MUTED, ms=9, label=f"crossover, T={T}: N={at}")
    ax.plot(sizes, [attention_limit(int(N), ALPHA) for N in sizes], **REFERENCE, label="N ≫ T²: 3.89 N/(1−α)²")
    ax.set(yscale="log", xlabel="vocabulary N", ylabel="samples n of one gradient step")
    ax.set_title(f"Samples against vocabulary, α = {ALPHA}")
    log_sizes(ax, feedforward)


def _against_noise(ax: Axes, by_alpha: Mapping[str, BySize], N: int, T: int, colour: int) -> None:
    alphas = np.geomspace(min(by_alpha["feedforward"]), max(by_alpha["feedforward"]), LINE).tolist()
    dots(ax, by_alpha["feedforward"], 0, "feed-forward")
    dots(ax, by_alpha["attention"], colour, f"attention, T={T}")
    ax.plot(alphas, [feedforward_crossing(N, alpha) for alpha in alphas], **THEORY, label="closed forms")
    ax.plot(alphas, [attention_samples(N, T, alpha) for alpha in alphas], **THEORY)
    ax.set(yscale="log", xlabel="probability of noise α", ylabel="samples n", title=f"Samples against noise, N = {N}")
    log_sizes(ax, by_alpha["feedforward"])
