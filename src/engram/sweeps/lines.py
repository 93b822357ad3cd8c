"""A sweep as a table: a line for each setting."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engram.claims.summaries import setting_in_words

Line = Mapping[str, Any]


def lines_of(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Fields, then the mean of each metric with the ends of its interval where there is one, then how many seeds."""
    labels = len({row["label"] for row in rows}) > 1
    known = {name for row in rows for name, found in row["metrics"].items() if found["low"] is not None}
    return [({"label": row["label"]} if labels else {}) | row["settings"] | _means(row, known) for row in rows]


def _means(row: Mapping[str, Any], known: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, numbers in row["metrics"].items():
        ends = {f"{name}, {end}": numbers[end] for end in ("low", "high")} if name in known else {}
        found |= {name: numbers["mean"], **ends}
    return found | {"seeds": row["n"]}


def tidy(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A line for each setting, seed and metric: what was measured, without means."""
    labels = len({row["label"] for row in rows}) > 1
    fields = list(dict.fromkeys(name for row in rows for name in row["settings"]))
    return [
        ({"label": row["label"]} if labels else {})
        | {name: row["settings"].get(name) for name in fields}
        | {"seed": seed, "metric": metric, "value": value}
        for row in rows
        for metric, numbers in row["metrics"].items()
        for seed, value in zip(row["seeds"], numbers["values"], strict=True)
    ]


def as_csv(lines: Sequence[Line]) -> str:
    """The lines as a file; objects such as an optimiser as JSON."""
    text = io.StringIO()
    table = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    table.writeheader()
    table.writerows({name: _in_csv(value) for name, value in line.items()} for line in lines)
    return text.getvalue()


def _in_csv(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list | tuple | bool) else value


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
