"""Rows packed column by column: they come back to the byte, and nobody else's file does harm."""

import json
import lzma
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.errors import EngramError
from engram.records import Record, files
from engram.records.bundle import bundle
from engram.records.columns import by_columns, by_rows
from engram.records.places import places
from engram.runner.execute import execute
from engram.specs import Train

Tiny = Callable[..., Train]

NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.none(), st.booleans())
NAMES = st.sampled_from(["step", "loss", "recall.W_O2", "accuracy.hop1", "p(noise)", "50%"])


def written(rows: list[dict[str, object]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


@given(st.lists(st.dictionaries(NAMES, NUMBERS), max_size=30))
def test_rows_come_back_to_the_byte(rows: list[dict[str, object]]) -> None:
    columns = by_columns(written(rows))
    assert columns is not None
    assert b"".join(by_rows(columns)) == written(rows)


@given(st.lists(st.dictionaries(st.text(), st.one_of(NUMBERS, st.text(), st.lists(NUMBERS)))), st.binary())
def test_what_would_not_come_back_is_left_as_it_is(rows: list[dict[str, object]], junk: bytes) -> None:
    for content in (written(rows), junk, written(rows) + junk):
        columns = by_columns(content)
        assert columns is None or b"".join(by_rows(columns)) == content


NONSENSE = (
    "", "[]", '["a"]\n0\n1\n2', '[["a"]]\n0 0\n1', '[["a"]]\n7\n1', '[["a"]]\n-1\n1', '[[["a"]]]\n0\n1', "{}\n0",
    '[["a"], ["b"]]\n0\n1', "[0]\n0\n1", '[["a"]]\nx\n1', "[" * 100_000,
)  # fmt: skip


@pytest.mark.parametrize("columns", NONSENSE, ids=range(len(NONSENSE)))
def test_nonsense_is_named(columns: str, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl.columns.xz").write_bytes(lzma.compress(columns.encode()))
    with pytest.raises(EngramError, match=r"rows.jsonl is missing or unreadable"):
        files.read(tmp_path, "rows.jsonl")


def test_a_bundle_takes_the_smaller_way_and_reads_the_same(home: Path, tmp_path: Path, tiny: Tiny) -> None:
    record = execute(tiny(steps=200), home)
    path = bundle([record], tmp_path / "one.zip")
    assert f"{record.id}/rows.jsonl.columns.xz" in ZipFile(path).namelist()
    (place,) = places(tmp_path)
    assert Record(place).rows == record.rows  # type: ignore[arg-type]
    assert files.read(place, "rows.jsonl") == files.read(record.place, "rows.jsonl")  # type: ignore[arg-type]


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    bomb = lzma.compress(b'[["a"]]\n' + b"0 " * (300 << 19) + b"\n1")
    (tmp_path / "rows.jsonl.columns.xz").write_bytes(bomb)
    with pytest.raises(EngramError, match="larger than 256 MB"):
        files.read(tmp_path, "rows.jsonl")
