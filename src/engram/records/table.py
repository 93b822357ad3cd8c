"""The rows of a run by column: read in pieces, so that a million rows take seconds and little memory."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np

from engram.native.rows import MOST_COLUMNS, read_rows
from engram.records import files
from engram.records.files import Row
from engram.records.frames import named

PIECE = 1 << 16  # bytes of rows that Python parses at a time: larger pieces are slower
LONG = 1 << 18  # from this many bytes on the kernel is worth calling
NUMBERS = {int, float, type(None)}
ROOM = 1.25  # how much larger a column is made than it must be


class Unfit(ValueError):
    """A line that is not the next row; says in a few words why."""


@contextmanager
def naming_damage(place: files.Place) -> Iterator[None]:
    """A line that does not fit is damage of the record that holds it."""
    try:
        yield
    except Unfit as error:
        raise files.corrupt(place, str(error)) from None


class Column:
    """The steps at which something was measured and its values there; what is added at the end is not copied again."""

    def __init__(self) -> None:
        self._steps, self._values, self._n = np.zeros(16, np.int32), np.zeros(16), 0

    @property
    def steps(self) -> np.ndarray:
        return self._steps[: self._n]

    @property
    def values(self) -> np.ndarray:
        return self._values[: self._n]

    def __repr__(self) -> str:
        return f"<column of {self._n} numbers: .steps, .values>"

    def add(self, steps: np.ndarray, values: np.ndarray) -> None:
        end = self._n + len(steps)
        if end > len(self._steps):
            self._steps, self._values = (np.resize(part, int(ROOM * end)) for part in (self._steps, self._values))
        self._steps[self._n : end], self._values[self._n : end], self._n = steps, values, end

    def since(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Steps and values from a step on."""
        begin = int(np.searchsorted(self.steps, step))
        return self.steps[begin:], self.values[begin:]

    def cut(self, length: int) -> None:
        self._n = int(np.searchsorted(self.steps, length))


class Table:
    """All columns of a run, in the order in which they first occur; rows are added at the end."""

    def __init__(self) -> None:
        self.length = 0
        self.cuts = 0  # how often rows were taken back
        self.columns: dict[str, Column] = {}

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"<{self.length} rows of {named(list(self.columns))}>"

    @property
    def measured(self) -> list[str]:
        """Columns with a number in them."""
        return [name for name, column in self.columns.items() if len(column.values)]

    def add(self, lines: Sequence[bytes]) -> list[Row]:
        """The next rows, each of which must say that it is the next."""
        if self.length + len(lines) > files.MOST_ROWS:
            raise Unfit(f"rows.jsonl has more than {files.MOST_ROWS} rows")
        rows = _parsed(lines)
        for step, row in enumerate(rows, self.length):
            if row["step"] != step:
                raise Unfit(f"line {step + 1} of rows.jsonl says it is step {row['step']}")
        names = dict.fromkeys(chain.from_iterable(rows))
        if len(self.columns.keys() | names) > MOST_COLUMNS:
            raise Unfit(f"rows.jsonl has more than {MOST_COLUMNS} columns")
        for name in names:
            values = _numbers([row.get(name) for row in rows])
            there = np.flatnonzero(np.isfinite(values))
            self.columns.setdefault(name, Column()).add(there + self.length, values[there])
        self.length += len(rows)
        return rows

    def add_text(self, text: bytes) -> None:
        """The next rows, as whole lines of text; where there is a kernel, it reads long ones many times faster."""
        if len(text) < LONG or not self._add_fast(text):
            for lines in lines_in([text]):
                self.add(lines)

    def _add_fast(self, text: bytes) -> bool:
        """Whether all lines are plain rows of numbers; if not, nothing is added."""
        found = read_rows(text, self.length, list(self.columns))
        if found is None or self.length + found.rows > files.MOST_ROWS:
            return False
        by_column = np.argsort(found.column, kind="stable")
        ends = np.searchsorted(found.column[by_column], np.arange(1, len(found.names)))
        for name, own in zip(found.names, np.split(by_column, ends), strict=bool(found.names)):  # no text has no names
            self.columns.setdefault(name, Column()).add(found.step[own], found.value[own])
        self.length += found.rows
        return True

    def last_row(self) -> dict[str, float]:
        """The numbers of the last row; none if there is no row."""
        found = {name: column.since(self.length - 1)[1] for name, column in self.columns.items()}
        return {name: float(values[0]) for name, values in found.items() if len(values)}

    def cut(self, length: int) -> None:
        """Only the first rows stay: a resumed run computes the others again."""
        if length < self.length:
            self.length, self.cuts = length, self.cuts + 1
            for column in self.columns.values():
                column.cut(length)

    def dense(self, name: str) -> np.ndarray:
        """One value for each row; NaN where it was not measured."""
        found = np.full(self.length, np.nan)
        if name in self.columns:
            found[self.columns[name].steps] = self.columns[name].values
        return found


def step_of(line: bytes) -> int:
    """Which row a line is."""
    step = _parsed([line])[0]["step"]
    if type(step) is not int or step < 0:
        raise Unfit(f"rows.jsonl has a row of step {step!r}")
    return step


def texts_in(content: Iterable[bytes]) -> Iterator[bytes]:
    """Whole lines, some at a time; a last one without its end was cut by a kill and does not count."""
    rest = b""
    for piece in content:
        end = piece.rfind(b"\n") + 1
        if end:
            yield rest + piece[:end]
        rest = piece[end:] if end else rest + piece
        if len(rest) > files.MOST_LINE:
            raise Unfit(f"rows.jsonl has a line of more than {files.MOST_LINE >> 20} MB")


def lines_in(content: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The same as lines, fewer at a time."""
    for text in texts_in(content):
        start = 0
        while start < len(text):
            end = text.find(b"\n", min(start + PIECE, len(text) - 1)) + 1
            yield text[start : end - 1].split(b"\n")
            start = end


def _parsed(lines: Sequence[bytes]) -> list[Row]:
    """All at once, which is faster than line by line."""
    if any(len(line) > files.MOST_LINE for line in lines):
        raise Unfit(f"rows.jsonl has a line of more than {files.MOST_LINE >> 20} MB")
    try:
        rows = json.loads(b"[" + b",".join(lines) + b"]")
    except (ValueError, RecursionError):
        rows = []
    if len(rows) != len(lines) or not all(isinstance(row, dict) and "step" in row for row in rows):
        raise Unfit("rows.jsonl has an unreadable line")
    return rows


def _numbers(values: list[Any]) -> np.ndarray:
    """What is no number, in a damaged or a foreign row, counts as not measured."""
    if not set(map(type, values)) <= NUMBERS:
        values = [value if type(value) in NUMBERS else None for value in values]
    try:
        return np.array(values, dtype=float)
    except OverflowError:  # whole numbers without end
        return np.array([None if type(value) is int and abs(value) > 1e300 else value for value in values], dtype=float)
