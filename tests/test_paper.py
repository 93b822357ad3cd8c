"""Figures for papers: as wide as a column, letters of at least seven points, legends beside data, nothing cut off."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import engram
from engram.errors import EngramError
from engram.show.panels import finished, panels
from engram.show.paper import fitted
from engram.show.style import house_style
from figures import covered, misfits

Said = Callable[..., tuple[int, str, str]]


@house_style()
def crowded(columns: int) -> Figure:
    """Two rows of panels that share axes, with long names and a legend that lies on everything."""
    axes = panels(4 * columns, 6, 2, columns, sharex=True, sharey="row", squeeze=False)
    for i, ax in enumerate(axes.flat):
        for k in range(3):
            ax.plot(np.linspace(0, 1, 50), np.random.default_rng(i + k).random(50), label=f"a long name, number {k}")
        ax.set_title(f"A title that is longer than the panel is wide, {i}")
    for ax in axes[:, 0]:
        ax.set_ylabel("share of what was asked")
    axes[0, 0].figure.suptitle("3 seeds")
    return finished(*axes.flat, loc="center")


@pytest.mark.parametrize("columns", [1, 2, 5])
@pytest.mark.parametrize("width", [3.25, 6.75])
@pytest.mark.parametrize("font", ["sans", "serif"])
def test_any_figure_fits(columns: int, width: float, font: Any) -> None:
    figure = crowded(columns)
    assert covered(figure)
    before = {ax.get_title(loc="left"): [line.get_xydata() for line in ax.lines] for ax in figure.axes}
    assert misfits(fitted(figure, width, font), width) == []
    after = {" ".join(ax.get_title(loc="left").split()): [line.get_xydata() for line in ax.lines] for ax in figure.axes}
    assert all(np.array_equal(old, new) for name in before for old, new in zip(before[name], after[name], strict=True))
    leftmost = [ax for ax in figure.axes if ax.get_subplotspec().colspan.start == 0]  # type: ignore[union-attr]
    assert all(ax.get_ylabel() for ax in leftmost)


def test_the_command_writes_the_format_of_the_suffix(home: Path, said: Said) -> None:
    code, out, err = said("show", "memory.margin", "--width", "8cm", "-o", "fig.pdf")
    assert (code, err) == (0, "")
    assert Path("fig.pdf").read_bytes().startswith(b"%PDF")
    assert b"/Type3" not in Path("fig.pdf").read_bytes()
    assert "figure  fig.pdf\ncaption 55 measurements, 5 seeds" in out
    told = json.loads(said("show", "memory.margin", "-o", "fig.csv", "--json")[1])
    assert [Path(path).name for path in told["figures"]] == ["fig.csv"]
    assert told["caption"].startswith("55 measurements")
    assert Path("fig.csv").read_text().startswith("panel,title,")


def test_python_has_it_too(home: Path) -> None:
    figure = engram.figure("memory.margin", "fig.svg", width=3.25, font="serif")
    assert figure.get_figwidth() == 3.25
    assert "STIXGeneral" in Path("fig.svg").read_text()
    assert not (home / "figures").exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--width", "wide", "-o", "f.pdf"], "--width 'wide': write 2in to 20in"),
        (["--width", "0.1in", "-o", "f.pdf"], "write 2in to 20in"),
        (["--width", "1.2.3in", "-o", "f.pdf"], "write 2in to 20in"),
        (["--width", "3.25in"], "name a file for this figure, too"),
        (["-o", "f.docx"], "use one of these extensions: .png, .svg, .pdf, .csv, .json"),
        (["-o", "f"], "use one of these extensions: .png"),
        (["--font", "comic", "-o", "f.pdf"], "the fonts are sans, serif"),
    ],
)
def test_odd_wishes_are_refused(home: Path, said: Said, words: list[str], why: str) -> None:
    code, _, err = said("show", "memory.margin", *words)
    assert (code, why in err, err.count("\n")) == (2, True, 1), err
    assert not list(Path().glob("f*"))


def test_a_figure_needs_records(home: Path) -> None:
    with pytest.raises(EngramError, match=r"no record of memory\.margin is here or committed"):
        engram.figure("memory.margin", scale="smoke")
