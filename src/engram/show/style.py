"""One look for all figures: colours that colour-blind readers can tell apart (Okabe–Ito), legible letters and axes."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from math import floor, log10
from typing import Any, ParamSpec

from cycler import cycler
from matplotlib import rc_context
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from engram.show.grey import tell_apart

P = ParamSpec("P")
SMALLEST = 7  # points: nothing in a figure has smaller letters
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
    "svg.fonttype": "none",  # text stays text, which can be searched and edited
    "pdf.fonttype": 42,  # TrueType: publishers refuse matplotlib's default, type 3
    "ps.fonttype": 42,
}


class house_style(AbstractContextManager[None]):  # noqa: N801  # `with house_style():`, and `@house_style()`
    """The style while something is drawn; a function under it returns a figure whose axes can be read."""

    def __enter__(self) -> None:
        self._settings = rc_context(RC)
        self._settings.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._settings.__exit__(*error)

    def __call__(self, draw: Callable[P, Figure]) -> Callable[P, Figure]:
        @wraps(draw)
        def drawn(*given: P.args, **named: P.kwargs) -> Figure:
            with house_style():
                figure = draw(*given, **named)
                readable_axes(figure)
                tell_apart(figure)
                return figure

        return drawn


def readable_axes(figure: Figure) -> None:
    """Logarithmic axes have at least two numbers each, written out where they can be."""
    for axis in (axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)):
        if axis.get_scale() == "log" and not isinstance(axis.get_major_locator(), FixedLocator):
            _number_log_axis(axis)


def _number_log_axis(axis: Axis) -> None:
    """Powers of ten over many decades; over few, 1, 2 and 5 of each; within a factor of three, even steps."""
    low, high = sorted(axis.get_view_interval())
    decades = log10(high / low) if low > 0 else 9
    if decades > MANY_DECADES or getattr(axis.get_transform(), "base", 10) != 10:
        return
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)) if decades > FEW_DECADES else MaxNLocator(5, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: written_out(value)))
    axis.set_minor_formatter(NullFormatter())


MANY_DECADES, FEW_DECADES = 2.6, 0.8


def written_out(value: float) -> str:
    """As a person writes it.

    >>> [written_out(value) for value in (0.005, 20, 2000, 50_000, 2e7)]
    ['0.005', '20', '2,000', '50,000', '2·10⁷']
    """
    if 1e-4 <= abs(value) < 1e6 or value == 0:
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    power = floor(log10(abs(value)))
    return f"{value / 10**power:.3g}·10{str(power).translate(RAISED)}"


RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
