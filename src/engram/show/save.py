"""A figure as files: PNG to look at, SVG and PDF for papers, JSON and CSV with the numbers that were drawn."""

import csv
import io
import json
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from engram.errors import EngramError
from engram.records.files import replace, writing_to
from engram.show.literal import plain
from engram.show.series import Names, names_of
from engram.show.style import house_style

FORMATS = {
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}  # no clock in a figure
MOST_BYTES = 60_000  # of a figure in a document
SMALLER = [(dpi, quality) for dpi in (120, 100, 85, 70) for quality in (88, 75, 60)]  # the first that fits


def figure_paths(folder: Path, name: str) -> list[Path]:
    return [folder / f"{name}.{kind}" for kind in (*FORMATS, "csv", "json")]


def save_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Writes name.png, .svg, .pdf, .csv and .json into the folder."""
    *images, table, numbers = paths = figure_paths(folder, name)
    drawn = drawn_data(figure)
    with writing_to(folder):
        for path in images:
            replace(path, image_bytes(figure, path.suffix[1:]))
        replace(table, as_csv(drawn).encode())
        replace(numbers, json.dumps(drawn).encode())
    return paths


def save_as(figure: Figure, path: Path) -> None:
    """One file, whose suffix says what it is: a picture, or the numbers in it."""
    kind = path.suffix[1:].lower()
    known_suffix(path)
    with writing_to(path.parent):
        if kind in FORMATS:
            replace(path, image_bytes(figure, kind))
        else:
            drawn = drawn_data(figure)
            replace(path, (as_csv(drawn) if kind == "csv" else json.dumps(drawn)).encode())


def known_suffix(path: Path) -> None:
    known = [f".{kind}" for kind in (*FORMATS, "csv", "json")]
    if path.suffix.lower() not in known:
        raise EngramError(f"-o {str(path)!r}: use one of these extensions: {', '.join(known)}")


@lru_cache(maxsize=8)  # the report shows the pictures that were just saved
def image_bytes(figure: Figure, kind: str) -> bytes:
    """The same bytes for the same figure: the style's settings for saving hold, and there is no clock."""
    buffer = io.BytesIO()
    with house_style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a letter that the font lacks is drawn as a box
        figure.savefig(buffer, format=kind, metadata=FORMATS[kind])
        figure.set_layout_engine("none")  # laid out once: the other formats take the same places
    return buffer.getvalue()


def small_image(figure: Figure, note: str) -> bytes:
    """A WebP for a document, as sharp as fits into its size; the note stands in the file as it is."""
    for dpi, quality in SMALLER:
        buffer, how = io.BytesIO(), {"quality": quality, "method": 6, "xmp": note.encode()}
        with house_style():
            figure.savefig(buffer, format="webp", dpi=dpi, pil_kwargs=how)
        if len(buffer.getvalue()) <= MOST_BYTES:
            return buffer.getvalue()
    raise EngramError(f"a figure of at most {MOST_BYTES // 1000} kB cannot be drawn; show fewer panels or lines")


def drawn_data(figure: Figure) -> dict[str, Any]:
    """Exactly what the figure shows, panel by panel: lines with their points, images with cells, boxes, shapes."""
    panels = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    drawn = [ax for ax in panels if ax.lines or ax.images or ax.patches or ax.collections]
    return {"panels": [_panel(ax, names) for ax, names in zip(drawn, names_of(drawn), strict=True)]}


COLUMNS: tuple[str, ...] = (
    "panel",
    "title",
    "x_label",
    "y_label",
    "kind",
    "series",
    "label",
    "part",
    "x",
    "y",
    "width",
    "height",
    "value",
)


def as_csv(drawn: dict[str, Any]) -> str:
    """The same numbers as one long table: a row for each point of a line or shape, cell of an image, and box."""
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    table.writeheader()
    for i, panel in enumerate(drawn["panels"], 1):
        about = {"panel": i, "title": panel["title"], "x_label": panel["x"], "y_label": panel["y"]}
        table.writerows(about | row for row in _rows(panel))
    return text.getvalue()


def _rows(panel: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for i, line in enumerate(panel["lines"], 1):
        named = {"kind": "line", "series": i, "label": line["label"]}
        yield from (named | {"x": x, "y": y} for x, y in zip(line["x"], line["y"], strict=True))
    for i, image in enumerate(panel["images"], 1):
        cells = ((x, y, value) for y, row in enumerate(image) for x, value in enumerate(row))
        yield from ({"kind": "image", "series": i, "x": x, "y": y, "value": value} for x, y, value in cells)
    for i, box in enumerate(panel["boxes"], 1):
        named = {"kind": "box", "series": i, "label": panel["box_labels"][i - 1]}
        yield named | dict(zip(("x", "y", "width", "height"), box, strict=True))
    for i, shape in enumerate(panel["shapes"], 1):
        named = {"kind": "shape", "series": i, "label": panel["shape_labels"][i - 1]}
        points = ((part, x, y) for part, path in enumerate(shape, 1) for x, y in path)
        yield from (named | {"part": part, "x": x, "y": y} for part, x, y in points)


def _panel(ax: Axes, names: Names) -> dict[str, Any]:
    rectangles = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    return {
        "title": plain(ax.get_title(loc="left")),
        "x": plain(ax.get_xlabel()),
        "y": plain(ax.get_ylabel()),
        "lines": [
            {"label": names.of(line), "x": _numbers(line.get_xdata()), "y": _numbers(line.get_ydata())}
            for line in ax.lines
        ],
        "images": [_numbers(image.get_array()) for image in ax.images],
        "boxes": [_numbers([*box.get_xy(), box.get_width(), box.get_height()]) for box in rectangles],
        "shapes": [[_numbers(path.vertices) for path in shape.get_paths()] for shape in ax.collections],
        "box_labels": [names.of(box) for box in rectangles],
        "shape_labels": [names.of(shape) for shape in ax.collections],
    }


def _numbers(values: Any) -> list[Any]:
    array = np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)
    if array.ndim > 1:
        return [_numbers(row) for row in array]
    return [None if cell != cell else float(f"{cell:.5g}") for cell in array.ravel()]
