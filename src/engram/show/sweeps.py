"""The figure of a sweep: its axes are the swept fields, and no mean is taken over different settings."""

from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.show.panels import log_sizes, panels
from engram.show.style import CYCLE, house_style
from engram.show.subtitles import headline
from engram.specs.encode import TAGS

Row = Mapping[str, Any]  # as a sweep's --json says it
WIDE = 8  # a range of values from which on the axis is logarithmic
LETTERS = 12  # of a name on the x axis; longer ones are written aslant


@house_style()
def sweep_figure(
    rows: Sequence[Row], fields: Sequence[str], metrics: Sequence[str], about: str, zipped: bool
) -> Figure:
    """The first field on the x axis, a line for each value of the second, a panel for each label and further value.

    Of values that were paired (zipped) each pair is a place on the x axis, and so is a label where no field was swept.
    """
    across, *further = ([] if zipped else list(fields)) or [""]
    by_panel = _grouped(rows, lambda row: _panel_of(row, further[1:], across))
    width = max(5.6, min(14.0, 1.6 + 3.6 * len(by_panel)))
    axes = panels(width, 0.9 + 2.6 * len(metrics), len(metrics), len(by_panel), squeeze=False, sharey="row")
    for column, (title, same) in enumerate(by_panel.items()):
        for ax, metric in zip(axes[:, column], metrics, strict=True):
            _draw(ax, same, across, further[:1], metric)
            ax.set_title(title if len(by_panel) > 1 and ax is axes[0, column] else "")
            ax.set_ylabel(f"{metric} at the end" if column == 0 else "")
        axes[-1, column].set_xlabel(across or ", ".join(fields) or "what was run")
    for row, metric in zip(axes, metrics, strict=True):
        _fit(row[0], [value for one in rows for value in one["metrics"][metric]["values"]])
    if further:
        axes[0, 0].legend(fontsize=8)
    about = f"{about}. Dots: seeds (means over the last tenth of the steps); bars: 95 % of their mean, cut at the edge."
    return headline(axes[0, 0].get_figure(root=True), about)


def _fit(ax: Axes, values: Sequence[float]) -> None:
    """The seeds fill the panel: intervals of two or three seeds may be ten times as long."""
    low, high = min(values), max(values)
    room = 0.25 * (high - low) or 0.05 * max(abs(high), 0.1)
    ax.set_ylim(low - room, high + room)


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
    place = _places(ax, rows, across)
    lines = _grouped(rows, lambda row: ", ".join(f"{name} = {row['settings'].get(name, '–')}" for name in by))
    for i, (label, same) in enumerate(lines.items()):
        measured = [(place[_value(row, across)], row["metrics"][metric]) for row in same if row["n"]]
        _draw_line(ax, measured, CYCLE[i % len(CYCLE)], label)


def _value(row: Row, across: str) -> Any:
    if across:
        return _in_words(row["settings"].get(across, "–"))
    settings = ", ".join(f"{name.rpartition('.')[2]}={value}" for name, value in row["settings"].items())
    return "\n".join(filter(None, [row["label"], settings]))


def _in_words(value: Any) -> str:
    """An object such as SGD(lr=0.1) by its class and the fields that are not empty or zero."""
    if not isinstance(value, dict):
        return str(value)
    kind = str(value.get("class", "")).rpartition(".")[2]
    return shorten(
        " ".join([kind, *(f"{k}={v}" for k, v in value.items() if k not in TAGS and v)]), 24, placeholder="…"
    )


def _places(ax: Axes, rows: Sequence[Row], across: str) -> dict[str, float]:
    """Numbers where they belong, on a logarithmic axis if they lie far apart; names one after the other."""
    names = list(dict.fromkeys(_value(row, across) for row in rows))
    ax.margins(x=0.1)
    numbers = [row["settings"].get(across) for row in rows]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in numbers):
        sizes = sorted({float(value) for value in numbers})  # type: ignore[arg-type]
        far = sizes[0] > 0 and sizes[-1] >= WIDE * sizes[0]
        log_sizes(ax, sizes) if far else ax.set_xticks(sizes, [f"{size:g}" for size in sizes])
        return {_in_words(value): float(value) for value in numbers}  # type: ignore[arg-type]
    slant = {"rotation": 20, "ha": "right"} if max(map(_width, names)) > LETTERS else {}
    ax.set_xticks(range(len(names)), names, **slant)
    return {name: float(i) for i, name in enumerate(names)}


def _width(name: str) -> int:
    return max(map(len, name.split("\n")))


def _draw_line(ax: Axes, measured: Sequence[tuple[float, Row]], colour: str, label: str) -> None:
    for x, found in measured:
        ax.plot([x] * len(found["values"]), found["values"], "o", color=colour, ms=3, alpha=0.35)
    known = [(x, found) for x, found in measured if found["low"] is not None]
    spans = [
        [found["mean"] - found["low"] for _, found in known],
        [found["high"] - found["mean"] for _, found in known],
    ]
    xs, means = [x for x, _ in measured], [found["mean"] for _, found in measured]
    ax.plot(xs, means, "o-", color=colour, ms=5, lw=1.5, label=label)
    ax.errorbar(
        [x for x, _ in known], [f["mean"] for _, f in known], spans, fmt="none", color=colour, capsize=3, lw=1.2
    )
