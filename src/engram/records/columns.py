r"""Rows column by column: the numbers of one column resemble each other, so xz packs them a fifth to a third smaller.

    [["step", "loss"], ["step", "loss", "recall.W_O2"]]     the kinds of rows, by the names that they have
    1 0 0 0 0 1                                             the kind of each row
    0 1 2 3 4 5                                             the values of every column, as rows.jsonl has them
    …

Columns stand in the order in which their names first appear, values between tabs. Nothing is parsed as a number, so
that the rows come back to the byte; rows that do not (a list in a row, say) are packed as they are.
"""

import json
import re
from collections.abc import Iterator
from itertools import islice

NAME, PLAIN = r'"([^"\\\s]+)"', r'([^\s,"{}\[\]]+)'  # a value is a number, true, false or null
VALUE = re.compile(f"{NAME}: {PLAIN}")
MOST = 1 << 28  # bytes of columns, which are unpacked as a whole
TOGETHER = 1000  # rows that are written at a time


def by_columns(rows: bytes) -> bytes | None:
    """None if they would not come back as they are."""
    found = _columns(rows.decode(errors="replace").splitlines())
    try:
        return found if len(found) <= MOST and b"".join(by_rows(found)) == rows else None
    except ValueError:
        return None


def _columns(lines: list[str]) -> bytes:
    kinds: dict[tuple[str, ...], int] = {}
    values: dict[str, list[str]] = {}
    which = []
    for row in map(VALUE.findall, lines):
        which.append(kinds.setdefault(tuple(name for name, _ in row), len(kinds)))
        for name, value in row:
            values.setdefault(name, []).append(value)
    return "\n".join([json.dumps(list(kinds)), " ".join(map(str, which)), *map("\t".join, values.values())]).encode()


def by_rows(columns: bytes) -> Iterator[bytes]:
    """The rows again, some at a time; a content that is not what `by_columns` writes is a ValueError."""
    first, which, *lines = columns.decode().split("\n")
    kinds = _kinds(first)
    names = list(dict.fromkeys(name for kind in kinds.values() for name in kind))
    values = {name: iter(line.split("\t")) for name, line in zip(names, lines, strict=True)}
    rows = (_row(kinds[int(kind)], values) for kind in which.split())
    while some := "".join(islice(rows, TOGETHER)):
        yield some.encode()


def _kinds(line: str) -> dict[int, list[str]]:
    kinds = json.loads(line)
    lists = kinds if isinstance(kinds, list) else [None]
    if not all(isinstance(kind, list) and all(isinstance(name, str) for name in kind) for kind in lists):
        raise ValueError("its first line does not say which kinds of rows there are")
    return dict(enumerate(kinds))


def _row(names: list[str], values: dict[str, Iterator[str]]) -> str:
    try:
        return "{" + ", ".join([f'"{name}": {next(values[name])}' for name in names]) + "}\n"
    except StopIteration:
        raise ValueError("a column is too short") from None
