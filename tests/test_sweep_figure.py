"""The figure of a sweep: numbers on a numeric axis, one field as colour, nothing on top of something else."""

from itertools import product
from typing import Any

import pytest
from matplotlib.figure import Figure

from engram.show.sweeps import sweep_figure
from figures import faults


def rows(**fields: list[Any]) -> list[dict[str, Any]]:
    """Two seeds at every combination."""
    found = []
    for i, point in enumerate(product(*fields.values())):
        numbers = {"values": [0.9, 1.0 - 0.01 * i], "mean": 0.95 - 0.005 * i, "low": 0.5, "high": 1.5}
        settings = {f"task.{name}": value for name, value in zip(fields, point, strict=True)}
        found.append({"label": "", "settings": settings, "n": 2, "metrics": {"accuracy": numbers, "loss": numbers}})
    return found


def drawn(zipped: Any = False, **fields: list[Any]) -> Figure:
    names = [f"task.{name}" for name in fields]
    return sweep_figure(rows(**fields), names, ["accuracy", "loss"], "2 seeds", zipped)


@pytest.mark.parametrize(
    "fields",
    [{"K": [1, 2, 3]}, {"K": [1, 2, 3], "d": [16, 32, 64]}, {"K": [1, 2, 3], "d": [16, 32, 64], "how": ["a", "b"]}],
)
def test_figures_of_one_two_and_three_fields_can_be_read(fields: dict[str, list[Any]]) -> None:
    figure = drawn(False, **fields)
    assert faults(figure) == []
    assert len(figure.axes) == 2 * len(fields.get("how", ["a"]))
    if len(fields) > 1:
        (legend,) = figure.legends
        assert [text.get_text() for text in legend.get_texts()] == [f"task.d = {d}" for d in fields["d"]]


@pytest.mark.parametrize(
    ("values", "scale"), [([1, 2, 3], "linear"), ([16, 32, 64], "log"), ([0, 1, 100], "linear"), ([1, 3, 10], "log")]
)
def test_geometric_values_have_a_logarithmic_axis(values: list[int], scale: str) -> None:
    assert [ax.get_xscale() for ax in drawn(d=values).axes] == [scale, scale]


def test_numbers_are_on_the_x_axis_whichever_field_comes_first() -> None:
    (top, bottom) = drawn(how=["a", "b"], d=[16, 32, 64]).axes
    assert bottom.get_xlabel() == "task.d"
    assert top.get_xscale() == "log"


def test_no_mark_lies_on_another() -> None:
    for ax in drawn(K=[1, 2, 3], d=[16, 32, 64], how=["a", "b"]).axes:
        means = [line for line in ax.lines if not str(line.get_label()).startswith("_")]
        places = [float(x) for line in means for x in line.get_xdata()]  # type: ignore[union-attr]
        assert len(set(places)) == len(places) == 9
    (top, _) = drawn(zipped=True, K=[1, 2], d=[16, 32]).axes
    assert not [line for line in top.lines if line.get_linestyle() not in ("None", "")]  # pairs are not joined


def test_intervals_of_shares_end_at_one_and_the_line_above_says_so() -> None:
    accuracy, loss = drawn(K=[1, 2, 3]).axes
    ends = [
        max(float(y) for path in ax.collections[0].get_paths() for _, y in path.vertices)  # type: ignore[union-attr]
        for ax in (accuracy, loss)
    ]
    assert ends == [1.0, 1.5]
    said = " ".join(accuracy.get_figure(root=True).get_suptitle().split())  # type: ignore[union-attr]
    assert "those of shares are cut at 0 and 1" in said


def test_more_values_than_colours_are_still_told_apart() -> None:
    figure = drawn(K=[1, 2], d=list(range(12)))
    (legend,) = figure.legends
    assert len({str(line.get_color()) for line in legend.get_lines()}) == 12
