"""Rows of numbers read by the kernel."""

import json
from dataclasses import dataclass

import numpy as np

from engram.native import call, kernel

MOST_COLUMNS = 4096


@dataclass(frozen=True)
class ReadRows:
    """Every number of some rows, in the order in which they stand; names are those of all columns."""

    rows: int
    names: list[str]
    column: np.ndarray
    step: np.ndarray
    value: np.ndarray


def read_rows(text: bytes, first: int, known: list[str]) -> ReadRows | None:
    """The rows of steps `first`, `first` + 1, …; None without a kernel, and for lines of anything but plain numbers."""
    keys = [json.dumps(name, ensure_ascii=False).encode(errors="surrogatepass") for name in known]
    if kernel() is None or len(keys) > MOST_COLUMNS or first + text.count(b"\n") >= 1 << 31:
        return None
    most = text.count(b":")
    column, step, value = np.zeros(most, np.int32), np.zeros(most, np.int32), np.zeros(most)
    begins, stops, seen = (np.full(MOST_COLUMNS, -1, np.int32) for _ in range(3))
    ends, sizes = np.cumsum([len(key) for key in keys], dtype=np.int32), np.zeros(2, np.int32)
    lines, before = (np.frombuffer(part or b" ", np.uint8) for part in (text, b"".join(keys)))
    given = [lines, len(text), first, before, ends, len(keys), MOST_COLUMNS]
    n = call("read_rows", [*given, begins, stops, seen, column, step, value, sizes])
    new = _names([text[begins[k] : stops[k]] for k in range(len(keys), sizes[1])])
    return None if n < 0 or new is None else ReadRows(int(sizes[0]), [*known, *new], column[:n], step[:n], value[:n])


def _names(keys: list[bytes]) -> list[str] | None:
    try:
        return [json.loads(key) for key in keys]
    except ValueError:  # not even text
        return None
