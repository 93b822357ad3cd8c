"""Two runs in one figure: what both measured, over their steps, with the births of their memories."""

from collections.abc import Sequence
from textwrap import wrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.errors import EngramError
from engram.probes.columns import Column, axis, column
from engram.records.kept import Kept
from engram.records.thinning import thinned
from engram.show.literal import literal
from engram.show.panels import finished, panels
from engram.show.style import COLOURS, house_style

STYLES = ("-", "--")  # of the first run and of the second
WIDE = 100  # letters of a line above the panels


@house_style()
def two_runs(a: Kept, b: Kept, titles: tuple[str, str]) -> Figure:
    """A panel for each group of columns: the first run solid, the second dashed; dotted lines where memories are born.

    titles    what the two runs are called
    """
    shared = [column(name) for name in a.columns if name in b.columns and name not in ("step", "loss")]
    shared = [c for c in shared if all(len(run.curve(c.name)[0]) > 1 for run in (a, b))]
    if not shared:
        raise EngramError(f"runs {a.id} and {b.id} have no curve in common")
    groups = sorted({c.group for c in shared})
    axes = panels(7.2, 2.3 * len(groups), len(groups), sharex=True, squeeze=False)[:, 0]
    for ax, group in zip(axes, groups, strict=True):
        _group(ax, a, b, [c for c in shared if c.group == group])
        ax.set_ylabel(literal(axis(group)))
    axes[-1].set_xlabel("training step")
    figure = finished(*axes)
    said = [wrap(f"{style}: {title}", WIDE) for style, title in zip(("solid", "dashed"), titles, strict=True)]
    figure.suptitle("\n".join(literal(line) for lines in said for line in lines), fontsize=9, x=0.01, ha="left")
    return figure


def _group(ax: Axes, a: Kept, b: Kept, columns: Sequence[Column]) -> None:
    for i, c in enumerate(columns):
        colour = COLOURS.get(c.name, f"C{i}")
        for run, style in zip((a, b), STYLES, strict=True):
            steps, values = run.curve(c.name)
            few = thinned(steps, values)
            ax.plot(steps[few], values[few], style, color=colour, lw=1.2, label=literal(c.title) if run is a else None)
            born = run.birth(c.name) if c.group == "recall" else None
            if born is not None:
                ax.axvline(born, color=colour, ls=":", lw=0.9)
