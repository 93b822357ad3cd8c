"""A real model and its facts: late feed-forward parts taken away, and facts rewritten."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.show.panels import INTERVAL, finished, mean_interval, panels
from engram.show.style import MUTED, REFERENCE, house_style
from engram.show.subtitles import headline

ByLayer = Mapping[int, np.ndarray]  # seeds × templates
Shares = Mapping[str, Mapping[str, tuple[float, float, float, int]]]  # by how and kind: share, interval, facts
BANDS = {"write": (0.75, 1.0), "rome": (0.0, 0.4)}
HOW = {"write": "outer product at the last token, late layer", "rome": "value optimised at the subject, early layer"}


@house_style()
def dropped_parts(leads: ByLayer, shares: ByLayer, about: str) -> Figure:
    """The change of the lead, and the share of the right country, layer by layer; a dot for each seed."""
    left, right = panels(11.4, 4.4, 1, 2, width_ratios=(1.3, 1))
    templates = next(iter(leads.values())).shape[1]
    for ax, by_layer in ((left, leads), (right, shares)):
        for t in range(templates):
            _draw_template(ax, by_layer, t, templates)
        ax.set_xticks(range(len(by_layer)), [f"MLP {layer}" if layer else "none" for layer in by_layer])
        ax.set_xlabel("taken away")
    left.axhline(0, **REFERENCE, label="no change")
    left.set(title="Who prefers the country to “ the”", ylabel="change of log p(country)/p(the), nats")
    right.set(title="Who knows the right country", ylabel="share of the right country among all", ylim=(0, 1))
    return headline(finished(left, ncols=2), f"{about}; dots are seeds")


def _draw_template(ax: Axes, by_layer: ByLayer, t: int, templates: int) -> None:
    aside = (t - (templates - 1) / 2) * 0.17
    for i, values in enumerate(by_layer.values()):
        own, place = values[:, t], i + aside
        ax.plot([place] * len(own), own, "o", color=f"C{t}", ms=3.5, alpha=0.4)
        ax.plot(place, own.mean(), "_", color=f"C{t}", ms=11, mew=2, label=f"template {t + 1}" if i == 0 else None)
        ax.vlines(place, *mean_interval(own), color=f"C{t}", lw=1.8, alpha=0.8, gid=INTERVAL)


@house_style()
def edited_facts(shares: Shares, about: str) -> Figure:
    """Shares with their intervals, and the registered bands behind them."""
    axes = panels(11.4, 3.4, 1, len(shares), sharey=True)
    for i, (ax, (how, kinds)) in enumerate(zip(axes, shares.items(), strict=True)):
        for row, (kind, (value, low, high, n)) in enumerate(kinds.items()):
            banded = kind.startswith("other") or (how == "write" and not kind.startswith("para"))
            if banded:
                ax.barh(row, BANDS[how][1] - BANDS[how][0], left=BANDS[how][0], color=MUTED, alpha=0.15, height=0.7)
            ax.hlines(row, max(low, 0), min(high, 1), color=f"C{i}", lw=2.2)
            ax.plot(value, row, "o", color=f"C{i}", ms=6)
            side = "right" if value > 0.8 else "left" if value < 0.2 else "center"
            ax.text(value, row - 0.16, f"{value:.0%}, {n} facts", ha=side, va="bottom", fontsize=8)
        ax.set_yticks(range(len(kinds)), list(kinds))
        ax.set(xlim=(-0.05, 1.05), ylim=(len(kinds) - 0.5, -0.6), xlabel="share", title=HOW[how])
        ax.grid(visible=False)
        ax.grid(axis="x")
    return headline(
        axes[0].get_figure(root=True), f"{about}; lines: 95 % intervals over facts, shaded: registered bands"
    )
