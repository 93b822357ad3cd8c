"""A sweep as a table: a line for each setting."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engram.claims.summaries import setting_in_words
from engram.probes.columns import is_share

Line = Mapping[str, Any]


def lines_of(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Fields, then the mean of each metric with the ends of its interval where there is one, then how many seeds."""
    labels = len({row["label"] for row in rows}) > 1
    known = {name for row in rows for name, found in row["metrics"].items() if found["low"] is not None}
    return [({"label": row["label"]} if labels else {}) | row["settings"] | _means(row, known) for row in rows]


def _means(row: Mapping[str, Any], known: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, numbers in row["metrics"].items():
        ends = {f"{name}, {end}": _cut(numbers[end], name) for end in ("low", "high")} if name in known else {}
        found |= {name: numbers["mean"], **ends}
    return found | {"seeds": row["n"]}


def _cut(end: float | None, name: str) -> float | None:
    """No share lies outside 0 and 1, whatever its interval does."""
    return min(1.0, max(0.0, end)) if end is not None and is_share(name) else end


def columns_of(lines: Sequence[Line]) -> dict[str, np.ndarray]:
    """The same by column; numbers that are not there are NaN."""
    names = list(dict.fromkeys(name for line in lines for name in line))
    return {name: _column([line.get(name) for line in lines]) for name in names}


def _column(values: list[Any]) -> np.ndarray:
    if all(value is None or isinstance(value, float) for value in values):
        return np.array([np.nan if value is None else value for value in values])
    return np.array(values, dtype=None if len(set(map(type, values))) == 1 else object)


def cells(lines: Sequence[Line]) -> list[list[str]]:
    """Words for each cell, beginning with the names of the columns."""
    names = list(dict.fromkeys(name for line in lines for name in line))
    return [names, *([cell(line.get(name)) for name in names] for line in lines)]


def cell(value: Any) -> str:
    return "–" if value is None else f"{value:.4g}" if isinstance(value, float) else setting_in_words(value)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """
    >>> aligned([["d", "loss"], ["128", "1.5"]])
    ['d    loss', '128  1.5']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(n) for text, n in zip(row, widths, strict=True)).rstrip() for row in rows]
