"""One look for all figures: colours that colour-blind readers can tell apart (Okabe–Ito), legible letters."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cycler import cycler
from matplotlib import rc_context

INK, MUTED = "#1b1f24", "#6e7781"
COLOURS = {
    "accuracy": INK,
    "recall.W_O2": "#D55E00",
    "recall.W_K2": "#0072B2",
    "recall.W_K1.t<64": "#009E73",
    "recall.W_K1": "#CC79A7",
}
CYCLE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", INK]
THEORY: dict[str, Any] = {"color": INK, "ls": "--", "lw": 1.2}
REFERENCE: dict[str, Any] = {"color": MUTED, "ls": ":", "lw": 1.2}  # beside the theory: an asymptote, a level, chance

RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.prop_cycle": cycler(color=CYCLE),
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#d8dee4",
    "grid.linewidth": 0.6,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 160,
    "svg.hashsalt": "engram",
    "svg.fonttype": "none",
}


@contextmanager
def house_style() -> Iterator[None]:
    with rc_context(RC):
        yield
