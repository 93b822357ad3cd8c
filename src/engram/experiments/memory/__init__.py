"""Experiments on storing and recall: gradients as memories, capacity, bounds, and memories of other shapes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from engram.claims import Measure
    from engram.records import Record
    from engram.records.files import Row


def of_law(records: "Sequence[Record]", law: str, **sizes: int) -> "list[list[Row]]":
    """The rows of every Check of this law with these sizes, one list a record."""
    return [r.rows for r in records if r.check.law == law and sizes.items() <= r.check.sizes.items()]


def exponents(runs: "Sequence[Sequence[Row]]", column: str, size: str) -> list[float]:
    """For each run the least-squares slope of log column in log size over its rows."""
    logs = [np.log([[row[size], row[column]] for row in rows]).T for rows in runs]
    return [float(np.polyfit(x, y, 1)[0]) for x, y in logs]


def worst(runs: "Sequence[Sequence[Row]]", column: str) -> float:
    """The number that is largest in size over all rows of all runs."""
    return max((row[column] for rows in runs for row in rows), key=abs)


def collapse(name: str, constants: "Mapping[str, Sequence[float]]", within: float) -> "tuple[Measure, ...]":
    """That a constant is the same for all shapes: for each, its values over seeds, over the geometric mean."""
    from engram.claims import Measure

    logs = {shape: np.log(values) for shape, values in constants.items()}
    mean = np.mean(list(logs.values()), axis=0)  # one a seed
    return tuple(
        Measure.over_seeds(f"{name} at {shape}, over the mean", np.exp(log - mean).tolist(), 1 - within, 1 + within)
        for shape, log in logs.items()
    )
