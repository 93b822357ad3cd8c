"""One matrix of a network truncated: what becomes of answers, for every layer, matrix and share of singular values."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from engram.show.panels import panels
from engram.show.style import INK, house_style
from engram.show.subtitles import headline

NAMES = {"W_G": "gate", "W_I": "up", "W_F": "down"}


@house_style()
def laser_map(
    table: Sequence[Mapping[str, Any]], metric: str, full: float, best: Mapping[str, Any], about: str
) -> Figure:
    """A panel for each kind of matrix: layers from left to right, shares from bottom to top, the best cut framed."""
    kinds = list(dict.fromkeys(row["matrix"].rstrip("0123456789") for row in table))
    axes = panels(2.2 + 3.4 * len(kinds), 3.8, 1, len(kinds), sharey=True, squeeze=False)[0]
    far = max(1e-6, *(abs(row[metric] - full) for row in table))
    for ax, kind in zip(axes, kinds, strict=True):
        own = [row for row in table if row["matrix"].rstrip("0123456789") == kind]
        _draw(ax, own, metric, full, far)
        ax.set(title=f"{kind[0]}$_{{{kind[2:]}}}$ ({NAMES[kind]})" if kind in NAMES else kind, xlabel="layer")
        if best["matrix"].rstrip("0123456789") == kind:
            shares = sorted({row["share"] for row in own})
            at = best["layer"] - own[0]["layer"] - 0.5, shares.index(best["share"]) - 0.5
            ax.add_patch(Rectangle(at, 1, 1, fill=False, ec=INK, lw=1.8))
    axes[0].set_ylabel("singular values kept")
    fig = axes[0].get_figure(root=True)
    words = {"lead": "change of mean log p(answer)/p(rival), nats", "log_p": "change of mean log p(answer), nats"}
    fig.colorbar(axes[-1].images[0], ax=list(axes), label=words[metric], fraction=0.04)
    return headline(fig, about)


def _draw(ax: Axes, rows: Sequence[Mapping[str, Any]], metric: str, full: float, far: float) -> None:
    layers, shares = (sorted({row[name] for row in rows}) for name in ("layer", "share"))
    found = {(row["layer"], row["share"]): row[metric] - full for row in rows}
    values = np.array([[found[layer, share] for layer in layers] for share in shares])
    every = 5 if len(layers) > 12 else 1
    ticks = [i for i, layer in enumerate(layers) if layer % every == 0 or every == 1]
    ax.set_xticks(ticks, [str(layers[i]) for i in ticks])
    ax.set_yticks(range(len(shares)), [f"{100 * share:g} %" for share in shares])
    ax.grid(visible=False)
    ax.imshow(values, origin="lower", aspect="auto", cmap="RdBu", vmin=-far, vmax=far)
