"""The figure of a sweep: its axes are the swept fields, and no mean is taken over different settings."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.transforms import Affine2D, Transform

from engram.claims.summaries import setting_in_words
from engram.probes.columns import axis, column, is_share
from engram.show.literal import literal
from engram.show.panels import ANY, MARKS, SHADES, SHARE, bars, log_sizes, panels
from engram.show.series import quiet
from engram.show.style import CYCLE, house_style
from engram.show.subtitles import UNBROKEN, headline

Row = Mapping[str, Any]  # as a sweep's --json says it
Place = Callable[[Row], float]  # where a row stands on the x axis
Aside = Callable[[float], Transform]  # moves what is drawn by a share of the least gap; its numbers stay what they are
Spots = Sequence[tuple[float, Row]]  # places on the x axis, and what was measured there
WIDE = 8  # a range of values from which on the axis is logarithmic
SIDE_BY_SIDE = 0.36  # of the gap between two names on the x axis: from the first colour to the last
APART = 0.03  # of the least gap between two numbers there: from the seeds of one line to those of the next
LETTERS = 12  # of a name on the x axis; longer ones are written aslant
IN_LEGEND = 12  # letters of a legend that fit into an inch


@house_style()
def sweep_figure(
    rows: Sequence[Row], fields: Sequence[str], metrics: Sequence[str], about: str, zipped: bool
) -> Figure:
    """The first field with numbers on the x axis, a colour for each value of the next, a panel for every further one.

    Of values that were paired (zipped) each pair is a place on the x axis, and so is a label where no field was swept.
    """
    across, *further = sorted([] if zipped else fields, key=lambda field: not _sizes(rows, field)) or [""]
    by_panel = _grouped(rows, lambda row: _panel_of(row, further[1:], across))
    width = max(5.6, min(14.0, 1.6 + 3.6 * len(by_panel)))
    axes = panels(
        width, 1.1 + 2.6 * len(metrics), len(metrics), len(by_panel), squeeze=False, sharex="col", sharey="row"
    )
    for at, (title, same) in enumerate(by_panel.items()):
        for ax, metric in zip(axes[:, at], metrics, strict=True):
            _draw(ax, same, across, further[:1], metric)
            ax.set_title(title if len(by_panel) > 1 and ax is axes[0, at] else "")
            ax.set_ylabel(_name(metric) if at == 0 else "")
        axes[-1, at].set_xlabel(across or ", ".join(fields) or "what was run")
    for row, metric in zip(axes, metrics, strict=True):
        _fit(row[0], [value for one in rows for value in one["metrics"][metric]["values"]], is_share(metric))
    fig = axes[0, 0].get_figure(root=True)
    _name_colours(fig, axes)
    return headline(fig, ", ".join([about, *_fixed(rows, fields)]) + f". {_what_is_drawn(rows)}")


def _fixed(rows: Sequence[Row], fields: Sequence[str]) -> list[str]:
    """Fields that were set to one value: no axis says them."""
    first = rows[0]["settings"]
    same = [name for name in first if name not in fields and all(r["settings"].get(name) == first[name] for r in rows)]
    return [f"{name} = {setting_in_words(first[name])}".replace(" ", UNBROKEN) for name in same]


def _what_is_drawn(rows: Sequence[Row]) -> str:
    means = "means over the last tenth of the steps"
    ends = [numbers["low"] for row in rows for numbers in row["metrics"].values()]
    said = "intervals are cut at the edge" if any(end is not None for end in ends) else "too few for intervals"
    return f"Dots: seeds ({means}); {said}." if _several(rows) else f"{means.capitalize()}."


def _several(rows: Sequence[Row]) -> bool:
    """Whether there is more than one seed anywhere, so that there are means and intervals."""
    return any(row["n"] > 1 for row in rows)


def _name(metric: str) -> str:
    """A column as other figures call it: accuracy in context, recall of W_O2."""
    _, group, title = column(metric)
    said = title if title.startswith(group) else f"{group} of {title}"
    return literal(said + axis(group).removeprefix(group))


def _name_colours(fig: Figure, axes: Any) -> None:
    """Below all panels, where nothing is covered; a label may lack some of the values."""
    shown = {label: line for ax in axes.flat for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    if shown:
        ncols = int(IN_LEGEND * fig.get_figwidth() / (4 + max(map(len, shown))))
        fig.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=max(1, min(ncols, len(shown))))


def _fit(ax: Axes, values: Sequence[float], share: bool) -> None:
    """The seeds fill the panel: intervals of two or three seeds may be ten times as long."""
    low, high = min(values), max(values)
    room = 0.25 * (high - low) or 0.05 * max(abs(high), 0.1)
    least, most = (-0.02, 1.02) if share else ANY
    ax.set_ylim(max(low - room, least), min(high + room, most))


def _grouped(rows: Sequence[Row], key: Any) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def _panel_of(row: Row, fields: Sequence[str], across: str) -> str:
    """Labels are places on the axis where nothing else is."""
    values = [f"{name} = {row['settings'][name]}" for name in fields if name in row["settings"]]
    return ", ".join(filter(None, [row["label"] if across else "", *values]))


def _draw(ax: Axes, rows: Sequence[Row], across: str, by: Sequence[str], metric: str) -> None:
    (place, moved), joined = _places(ax, rows, across), "-" if _sizes(rows, across) else ""
    lines = _grouped(
        rows, lambda row: ", ".join(f"{name} = {setting_in_words(row['settings'].get(name, '–'))}" for name in by)
    )
    step = APART if joined else SIDE_BY_SIDE / max(1, len(lines) - 1)
    for i, (label, same) in enumerate(lines.items()):
        aside, known = step * (i - (len(lines) - 1) / 2), [row for row in same if row["n"]]
        spots = [(place(row), row["metrics"][metric]) for row in known]
        look: dict[str, Any] = {"color": _colour(i, len(lines)), "marker": MARKS[i % len(MARKS)], "ls": joined}
        named = label or quiet(metric)
        if _several(rows):
            _draw_seeds(ax, spots, named, look["color"], moved(aside), is_share(metric))
        where = ax.transData if joined else moved(aside)  # a line says where
        means = [found["mean"] for _, found in spots]
        ax.plot([x for x, _ in spots], means, ms=5, lw=1.5, label=named, transform=where, **look)


def _colour(i: int, of: int) -> str:
    return CYCLE[i] if of <= len(CYCLE) else to_hex(colormaps[SHADES](i / (of - 1)))


def _value(row: Row, across: str) -> Any:
    if across:
        return setting_in_words(row["settings"].get(across, "–"))
    settings = ", ".join(f"{name.rpartition('.')[2]}={value}" for name, value in row["settings"].items())
    return "\n".join(filter(None, [row["label"], settings]))


def _sizes(rows: Sequence[Row], across: str) -> list[float]:
    """The values of a field in their order, if all are numbers; else none."""
    found = [row["settings"].get(across) for row in rows]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in found):
        return []
    return sorted({float(value) for value in found})  # type: ignore[arg-type]


def _places(ax: Axes, rows: Sequence[Row], across: str) -> tuple[Place, Aside]:
    """Numbers where they belong, on a logarithmic axis if they lie far apart; names one after the other."""
    ax.margins(x=0.1)
    sizes = _sizes(rows, across)
    by_size: Place = lambda row: row["settings"][across]  # noqa: E731
    if sizes and _far_apart(sizes):
        log_sizes(ax, sizes)
        ratio = min(b / a for a, b in pairwise(sizes))
        return by_size, lambda aside: Affine2D().scale(ratio**aside, 1) + ax.transData
    if sizes:
        shown = sizes if len(sizes) < 8 else sizes[::2]
        ax.set_xticks(shown, [f"{size:g}" for size in shown])
        gap = min((b - a for a, b in pairwise(sizes)), default=1.0)
        return by_size, lambda aside: Affine2D().translate(gap * aside, 0) + ax.transData
    names = list(dict.fromkeys(_value(row, across) for row in rows))
    slant = {"rotation": 20, "ha": "right"} if max(map(_width, names)) > LETTERS else {}
    ax.set_xticks(range(len(names)), names, **slant)
    ax.set_xlim(-0.5, len(names) - 0.5)
    by_name: Place = lambda row: names.index(_value(row, across))  # noqa: E731
    return by_name, lambda aside: Affine2D().translate(aside, 0) + ax.transData


def _far_apart(sizes: Sequence[float]) -> bool:
    """Over a wide range, or each the same multiple of the one before: 16, 32, 64."""
    if sizes[0] <= 0 or len(sizes) < 2:
        return False
    ratios = [b / a for a, b in pairwise(sizes)]
    even = len(sizes) > 2 and min(ratios) > 1.3 and max(ratios) < 1.1 * min(ratios)
    return even or sizes[-1] >= WIDE * sizes[0]


def _width(name: str) -> int:
    return max(map(len, name.split("\n")))


def _draw_seeds(ax: Axes, spots: Spots, label: str, colour: str, moved: Transform, share: bool) -> None:
    """Seeds and intervals, beside each other so that they do not hide those of the next line."""
    seeds = quiet(f"{label.removeprefix('_')}, seeds")
    points = [(x, value) for x, found in spots for value in found["values"]]
    if points:
        ax.plot(*zip(*points, strict=True), "o", mfc="w", mec=colour, ms=4, zorder=3, label=seeds, transform=moved)
    known = [(x, (found["low"], found["high"])) for x, found in spots if found["low"] is not None]
    if known:
        bars(ax, [x for x, _ in known], [ends for _, ends in known], colour, within=SHARE if share else ANY)
        ax.collections[-1].set_transform(moved)
