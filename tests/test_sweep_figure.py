"""The figure of a sweep: numbers on a numeric axis, one field as colour, nothing on top of something else."""

from itertools import product
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

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


def _places(ax: Axes, seeds: bool) -> list[list[float]]:
    lines = [line for line in ax.lines if ", seeds" in str(line.get_label())] if seeds else _means(ax)
    return [sorted({_shown(ax, line, float(x)) for x in line.get_xdata()}) for line in lines]  # type: ignore[union-attr]


def _shown(ax: Axes, line: Line2D, x: float) -> float:
    """Where on the axis a point of a line lies in the picture."""
    return float((line.get_transform() - ax.transData).transform((x, 0.5))[0])


def _means(ax: Axes) -> list[Line2D]:
    return [line for line in ax.lines if not str(line.get_label()).startswith("_")]


@pytest.mark.parametrize("d", [[16, 32, 64], [1, 2, 3]])
def test_lines_are_drawn_at_their_values_and_seeds_of_neighbours_hardly_aside(d: list[int]) -> None:
    """What is read off the axis is what was run; the seeds of one line do not hide those of the next."""
    for ax in drawn(d=d, K=[1, 2, 4]).axes:
        assert _places(ax, seeds=False) == [d] * 3
        aside = _places(ax, seeds=True)
        assert all(sorted({*line.get_xdata()}) == d for line in ax.lines)  # type: ignore[misc]  # the numbers beside it
        assert len({x for places in aside for x in places}) == 9
        assert all(abs(x - at) <= 0.031 * at for places in aside for x, at in zip(places, d, strict=True))


def test_of_one_seed_there_is_one_mark_at_each_value_and_no_word_of_intervals() -> None:
    one = {"values": [0.9], "mean": 0.9, "low": None, "high": None}
    found = [row | {"n": 1, "metrics": {"accuracy": one}} for row in rows(d=[16, 32], K=[1, 2])]
    figure = sweep_figure(found, ["task.d", "task.K"], ["accuracy"], "1 seed", False)
    (ax,) = figure.axes
    assert [[*map(float, line.get_xdata())] for line in ax.lines] == [[16, 32], [16, 32]]  # type: ignore[arg-type]
    assert "interval" not in figure.get_suptitle()


def test_what_was_set_to_one_value_is_said_and_columns_have_their_names() -> None:
    found = [row | {"settings": row["settings"] | {"plan.steps": 150}} for row in rows(d=[16, 32])]
    found = [row | {"metrics": {"accuracy.in_context": row["metrics"]["loss"]}} for row in found]
    figure = sweep_figure(found, ["task.d"], ["accuracy.in_context"], "2 seeds", False)
    assert "plan.steps = 150" in figure.get_suptitle().replace("\u00a0", " ")
    assert figure.axes[0].get_ylabel() == "accuracy in context"


def test_names_stand_side_by_side_and_pairs_are_not_joined() -> None:
    (top, _) = drawn(zipped=True, K=[1, 2], d=[16, 32]).axes
    assert not [line for line in top.lines if line.get_linestyle() not in ("None", "")]
    for ax in drawn(how=["a", "b"], K=["c", "d"]).axes:
        assert len({x for places in _places(ax, seeds=False) for x in places}) == 4


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
