"""Figures of hops written by hand: what a layer is worth, and how little a part of the permutations tells."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.claims import Measure
from engram.records import Record
from engram.show.panels import finished, listed, panels
from engram.show.style import MUTED, REFERENCE, house_style


@house_style()
def depth_and_hops(doubling: Sequence[Record], distances: Sequence[Measure], n: int) -> Figure:
    """Errors over k with ⌊log₂k⌋ + 2 layers and with one less; how far the answer is from uniform, by what is given."""
    left, right = panels(11, 4, 1, 2, width_ratios=(1.7, 1))
    k, layers = (doubling[0].column(name) for name in ("k", "layers"))
    for i, (name, label) in enumerate((("wrong", "⌊log₂k⌋ + 2 layers"), ("shallower", "one layer less, its best"))):
        values = np.stack([record.column(name) for record in doubling])
        errors = values if name == "wrong" else 1 - values
        left.fill_between(k, errors.min(axis=0), errors.max(axis=0), color=f"C{i}", alpha=0.2, lw=0)
        left.plot(k, errors.mean(axis=0), "o-", ms=4, color=f"C{i}", label=label)
    _depths(left, k, layers)
    left.set(xlabel="hops k", ylabel="share answered wrongly", ylim=(-0.03, 1.12), title="Pointer doubling, planted")
    _given(right, distances, n)
    return finished(left, loc="center right")


def _depths(ax: Axes, k: np.ndarray, layers: np.ndarray) -> None:
    """Where one layer more is needed, and how many there are from there on."""
    for first in np.flatnonzero(np.diff(layers, prepend=0)):
        ax.axvline(k[first] - 0.5, **REFERENCE)
        ax.annotate(f"L = {layers[first]:g}", (k[first] - 0.35, 1.06), fontsize=8.5, color=MUTED)
    ax.set_xticks([2**j for j in range(int(k[-1]).bit_length())])


def _given(ax: Axes, distances: Sequence[Measure], n: int) -> None:
    """Bars: the largest |P(y) − 1/n|, with both permutations given, and with one averaged over."""
    first, second, both = (measure.measured for measure in distances)
    names = ["both given", "only σ₂ given", "only σ₁ given"]
    ax.barh(names, [1 - 1 / n - both, first, second], color="C2", height=0.5)
    ax.set(xlim=(0, 1), xlabel="largest distance of P(answer) from 1/n", title=f"Two hops of {n} values, enumerated")
    listed(ax)
