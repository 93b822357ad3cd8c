"""Columns of numbers: a DataFrame where pandas is installed, else arrays that say in a line what they are."""

from importlib import import_module
from typing import Any

import numpy as np

MOST_NAMES = 6  # of columns, in one line


class Columns(dict[str, np.ndarray]):
    """Arrays of one length by name. Asked for itself it says what it has, not thousands of numbers."""

    def __repr__(self) -> str:
        rows = len(next(iter(self.values()), ()))
        return f"<{rows} rows of {named(list(self))}; with pandas (pip install pandas) a DataFrame>"


def frame_of(columns: dict[str, np.ndarray]) -> Any:
    try:
        return import_module("pandas").DataFrame(columns)
    except ImportError:
        return Columns(columns)


def named(names: list[str]) -> str:
    """How many columns, and the first of them.

    >>> named(["step", "loss"])
    '2 columns: step, loss'
    """
    more = ["…"] * (len(names) > MOST_NAMES)
    return f"{len(names)} column{'s' * (len(names) != 1)}: {', '.join(names[:MOST_NAMES] + more)}"
