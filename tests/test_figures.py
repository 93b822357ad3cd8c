"""Figures for readers and for papers: fonts that publishers take, numbers beside pictures, axes that can be read."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from engram.claims.intervals import Student
from engram.runner.execute import execute
from engram.show.gallery import gallery
from engram.show.panels import mean_interval, panels, seed_dots
from engram.show.save import image_bytes, save_figure
from engram.show.style import SMALLEST, house_style
from engram.specs import Train
from engram.specs.settings import with_settings
from figures import panels as drawn_panels
from figures import shown_texts


@house_style()
def two_panels() -> Figure:
    """Lines, an image, boxes, a shape and a number that is missing."""
    left, right = panels(6, 3, 1, 2)
    left.plot([1, 2, 3], [0.25, np.nan, 4], label="a, line")
    left.fill_between([1, 2], [0, 1], [2, 3])
    left.set(title='a "title"', xlabel="size\nd", ylabel="y")
    right.imshow([[0.0, 1.0], [2.0, np.nan]])
    right.bar([0, 1], [3, 4])
    return left.figure


def test_fonts_are_embedded_as_truetype_and_svg_keeps_its_text() -> None:
    """Publishers refuse type 3, matplotlib's default."""
    pdf, svg = (image_bytes(two_panels(), kind) for kind in ("pdf", "svg"))
    assert b"/FontType 42" in pdf or b"CIDFontType2" in pdf
    assert b"/Type3" not in pdf
    assert b"a &quot;title&quot;</text>" in svg or b'a "title"</text>' in svg


def test_the_csv_beside_a_figure_has_the_numbers_of_its_json(tmp_path: Path) -> None:
    paths = save_figure(two_panels(), tmp_path, "f")
    assert [path.suffix for path in paths] == [".png", ".svg", ".pdf", ".csv", ".json"]
    with paths[-2].open(newline="") as file:
        rows = list(csv.DictReader(file))
    for i, panel in enumerate(json.loads(paths[-1].read_text())["panels"], 1):
        own = [row for row in rows if row["panel"] == str(i)]
        assert {(row["title"], row["x_label"], row["y_label"]) for row in own} == {
            (panel["title"], panel["x"], panel["y"])
        }
        lines = [{"label": line["label"], "x": [*line["x"]], "y": [*line["y"]]} for line in panel["lines"]]
        assert [_line(own, str(k)) for k in range(1, len(lines) + 1)] == lines
        assert _numbers(own, "image", "value") == [cell for image in panel["images"] for row in image for cell in row]
        assert _numbers(own, "box", "x", "y", "width", "height") == [side for box in panel["boxes"] for side in box]
        points = [side for shape in panel["shapes"] for path in shape for point in path for side in point]
        assert _numbers(own, "shape", "x", "y") == points


def _line(rows: list[dict[str, str]], series: str) -> dict[str, Any]:
    own = [row for row in rows if row["kind"] == "line" and row["series"] == series]
    return {"label": own[0]["label"], "x": _numbers(own, "line", "x"), "y": _numbers(own, "line", "y")}


def _numbers(rows: list[dict[str, str]], kind: str, *columns: str) -> list[float | None]:
    cells = [row[column] for row in rows if row["kind"] == kind for column in columns]
    return [float(cell) if cell else None for cell in cells]


def test_intervals_are_those_of_the_ledger() -> None:
    values = np.random.default_rng(0).normal(size=(5, 3))
    low, high = mean_interval(values)
    for i in range(3):
        assert Student(tuple(values[:, i])).interval == pytest.approx((low[i], high[i]))
    assert mean_interval([[2.0]]) == (2.0, 2.0)


@pytest.mark.parametrize(("low", "high"), [(30, 70), (3, 80), (0.02, 0.3), (1e-7, 1e3)])
def test_a_logarithmic_axis_has_several_numbers(low: float, high: float) -> None:
    @house_style()
    def draw() -> Figure:
        ax = panels(4, 3)
        ax.plot([low, high], [low, high])
        ax.set(xscale="log", yscale="log", xlabel="x", ylabel="y")
        return ax.figure

    (ax,) = draw().axes
    for axis in (ax.xaxis, ax.yaxis):
        inside = [text.get_text() for text, at in zip(axis.get_ticklabels(), axis.get_ticklocs(), strict=True)
                  if low <= at <= high and text.get_text()]  # fmt: skip
        assert len(inside) == len(set(inside)) >= 2


def test_means_of_seeds_have_intervals_and_the_subtitle_says_so() -> None:
    from engram.show.subtitles import INTERVALS, headline

    ax = panels(4, 3)
    seed_dots(ax, {1: [1.0, 2.0, 3.0], 2: [2.0, 2.5, 3.0]}, "C0", "mean")
    assert INTERVALS in headline(ax.figure, "5 seeds").get_suptitle().replace("\n", " ")


def test_pictures_of_one_run_can_be_read(home: Path, tiny: Callable[..., Train]) -> None:
    """Memories with all their tokens, and attention: every token has a legible mark."""
    for picture in gallery(execute(tiny(), home)):
        assert min(float(text.get_fontsize()) for text in shown_texts(picture.figure)) >= SMALLEST, picture.name
        assert picture.figure.get_suptitle(), picture.name
        assert all(ax.get_xlabel() and ax.get_ylabel() for ax in drawn_panels(picture.figure)[-1:]), picture.name


def test_figures_of_a_text_of_ones_own_name_it(home: Path, tmp_path: Path, tiny: Callable[..., Train]) -> None:
    """Its file, not the folders around it; nothing is said of the text that comes with Engram."""
    (tmp_path / "mine.txt").write_text("the quick brown fox jumps over the lazy dog " * 20)
    spec = with_settings(tiny(), {"task.corpus": str(tmp_path / "mine.txt")})
    pictures = gallery(execute(spec, home))
    assert len(pictures) == 3
    for picture in pictures:
        assert "text mine.txt," in " ".join(picture.figure.get_suptitle().split()), picture.name
        assert str(tmp_path) not in picture.figure.get_suptitle()
    assert not [p.name for p in gallery(execute(tiny(), home)) if "text " in p.figure.get_suptitle()]
