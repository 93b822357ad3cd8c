"""Rows by column: the same numbers as the rows, from any piece of them, in any order of reading and cutting back."""

import json
import time
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.errors import EngramError
from engram.lab.watched_run import MOST_ROWS, WatchedRun, drawn_columns
from engram.native import kernel
from engram.native.rows import read_rows
from engram.records.files import COMMITTED, line_of
from engram.records.kept import Kept
from engram.records.places import Unreadable, places
from engram.records.table import PIECE, Table, Unfit, lines_in
from engram.records.thinning import thinned

ODD = [True, "word", [1.0], {"a": 1}, 10**400, None]
VALUES = st.one_of(st.floats(-1e9, 1e9), st.integers(-9, 9), st.sampled_from(ODD))
ROWS = st.lists(st.dictionaries(st.sampled_from(["loss", "recall.W", "n"]), VALUES), max_size=12)


def lines(rows: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps({"step": step} | row).encode() for step, row in enumerate(rows)]


def by_hand(rows: list[dict[str, Any]], name: str) -> list[float]:
    """What is no number is not measured."""

    def number(value: Any) -> float:
        return float(value) if type(value) in (int, float) and abs(value) < 1e308 else nan

    return [number(row.get(name)) for row in rows]


@given(ROWS, st.integers(0, 12), st.integers(0, 12))
def test_columns_hold_what_the_rows_say(rows: list[dict[str, Any]], first: int, keep: int) -> None:
    table = Table()
    for part in (lines(rows)[:first], lines(rows)[first:]):
        table.add(part)
    table.cut(keep)
    table.add(lines(rows)[keep:])
    assert len(table) == len(rows)
    for name in ("loss", "recall.W", "n", "never"):
        np.testing.assert_array_equal(table.dense(name), by_hand(rows, name))
    assert table.last_row().get("loss") in (None, *by_hand(rows[-1:], "loss"))


def test_committed_records_read_the_same_either_way() -> None:
    found = [Kept(place) for place in places(COMMITTED) if not isinstance(place, Unreadable)][::97]
    for kept in found:
        names = dict.fromkeys(name for row in kept.rows for name in row)
        assert kept.columns == list(names)
        for name in names:
            np.testing.assert_array_equal(
                kept.column(name), np.array([row.get(name) for row in kept.rows], dtype=float)
            )


@pytest.mark.parametrize("line", [b"{}", b"[1]", b"nonsense", b'{"step": 2}', b'{"step": 1}, {"step": 2}', b"[" * 9999])
def test_a_line_that_is_not_the_next_row_is_refused(line: bytes) -> None:
    table = Table()
    table.add([b'{"step": 0}'])
    with pytest.raises(Unfit, match=r"rows\.jsonl"):
        table.add([line])
    assert len(table) == 1


def test_a_wrong_line_is_named_at_every_look(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"step": 0, "loss": 1.0}\n')
    run = WatchedRun(tmp_path)
    run.look()
    for line in ("nonsense", '{"step": -5}', '{"step": 7}', '{"step": "1"}'):
        (tmp_path / "rows.jsonl").write_text(f'{{"step": 0, "loss": 1.0}}\n{line}\n')
        for moment in (time.monotonic(), time.monotonic() + 1):
            run.look(moment)
            assert "rows.jsonl" in str(run.wrong)
    assert len(run.table) <= 1


def test_a_curve_is_a_copy(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"step": 0, "loss": 1.0}\n')
    kept = Kept(tmp_path)
    for values in kept.curve("loss"):
        values *= 0
    assert kept.last("loss") == 1.0


@given(st.lists(st.binary(max_size=9).filter(lambda b: b"\n" not in b)), st.integers(1, 9))
def test_lines_come_whole_however_they_are_cut(content: list[bytes], size: int) -> None:
    whole = b"".join(line + b"\n" for line in content) + b"cut"
    parts = [whole[i : i + size] for i in range(0, len(whole), size)]
    assert [line for some in lines_in(parts) for line in some] == content
    assert max((len(b"".join(some)) for some in lines_in([b"x\n" * PIECE])), default=0) <= PIECE


def test_a_long_curve_keeps_its_peaks_its_beginning_and_its_end() -> None:
    steps = np.arange(100_000)
    values = np.sin(steps / 3000.0)
    values[[777, 51_234]] = 9.0, -9.0
    kept = thinned(steps, values)
    assert {0, 777, 51_234, 99_999} <= set(kept)
    assert len(kept) <= 3001
    assert len(thinned(steps[:4000], values[:4000])) == 4000


def test_a_page_is_sent_what_can_be_seen() -> None:
    table, n = Table(), MOST_ROWS + 5
    rows = [{"step": i, "loss": 1 / (i + 1)} | ({"recall.W": i / n} if i % 100 == 0 else {}) for i in range(n)]
    table.add([line_of(row)[:-1] for row in rows])
    sent = drawn_columns(table, 0)
    assert len(sent["step"]) < 5000
    assert (sent["step"][0], sent["step"][-1]) == (0, n - 1)
    assert [v for v in sent["recall.W"] if v is not None] == list(table.columns["recall.W"].values)
    news = drawn_columns(table, n - 3)
    assert news["step"] == [n - 3, n - 2, n - 1]
    assert news["loss"] == list(table.columns["loss"].values[-3:])


def test_a_record_with_a_wrong_line_says_which(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "rows.jsonl").write_text('{"step": 0}\n{"step": 3}\n')
    with pytest.raises(EngramError, match=r"line 2 of rows\.jsonl says it is step 3"):
        _ = Kept(tmp_path / "run").table


needs_kernel = pytest.mark.skipif(kernel() is None, reason="no C++ compiler on PATH")
PLAIN = st.one_of(st.floats(-1e9, 1e9), st.integers(-(10**20), 10**20), st.none())
WHOLE_ROWS = st.lists(
    st.dictionaries(st.sampled_from(["loss", "recall.W", "n", "größe", 'a"b', "\ud800"]), PLAIN), max_size=12
)


@needs_kernel
@given(WHOLE_ROWS, st.integers(0, 12), st.booleans())
def test_the_kernel_reads_what_python_reads(rows: list[dict[str, Any]], first: int, ascii: bool) -> None:
    """A row may hold anything; what the kernel does not take is left to Python, whole."""
    text = [
        json.dumps({"step": i} | row, ensure_ascii=ascii).encode(errors="surrogatepass") + b"\n"
        for i, row in enumerate(rows)
    ]
    ours, slow = Table(), Table()
    for part in (text[:first], text[first:]):
        if not ours._add_fast(b"".join(part)):
            ours.add([line[:-1] for line in part])
        slow.add([line[:-1] for line in part])
    assert (len(ours), list(ours.columns)) == (len(slow), list(slow.columns))
    for name in slow.columns:
        np.testing.assert_array_equal(ours.dense(name), slow.dense(name))


@needs_kernel
@given(st.floats(width=32), st.integers(1, 17))
def test_numbers_are_read_to_the_last_bit(value: float, digits: int) -> None:
    text = f"{value:.{digits}g}" if abs(value) < 1e300 else "0.5"
    table = Table()
    if table._add_fast(b'{"step": 0, "x": %s}\n' % text.encode()):
        assert table.columns["x"].values.tolist() == [float(text)]
    elif digits < 8:
        assert abs(float(text)) < 1e-14 or abs(float(text)) > 1e21


NOT_NUMBERS = [
    "01",
    ".5",
    "1.",
    "1e",
    "+1",
    "NaN",
    "Infinity",
    "true",
    '"1"',
    "[1]",
    "1" + 400 * "0",
    "1e-400",
    '1, "x": 2',
]
NOT_ROWS = [
    '{"step": 0,}',
    '{"x": 1}',
    '{"step": 1}',
    '{"step": 0}{"step": 1}',
    '{"step": 0',
    "{}",
    " ",
    "[0]",
    "\0" * 9,
]
NOT_ROWS += [
    '{"step": 0 "x": 1}',
    '{"step": 0, "\\u0061": 1}',
    '{"step": 0, "' + 99_999 * "x",
    '{"step": 0, "\xff": 1}',
]
NOT_PLAIN = [f'{{"step": 0, "x": {number}}}' for number in NOT_NUMBERS] + NOT_ROWS


@pytest.mark.parametrize("line", NOT_PLAIN, ids=lambda line: repr(line[:30]))
def test_what_is_not_plain_is_left_to_python(line: str) -> None:
    table = Table()
    for text in (f"{line}\n", line):
        assert not table._add_fast(text.encode("latin-1"))
    assert (len(table), table.columns) == (0, {})


@needs_kernel
def test_any_bytes_are_survived() -> None:
    random = np.random.default_rng(0)
    whole = b'{"step": 0, "loss": 4.5, "recall.W": null}\n{"step": 1, "loss": -1e-05}\n'
    for _ in range(3000):
        text = bytearray(whole)
        for place in random.integers(0, len(text), random.integers(1, 4)):
            text[place] = random.integers(0, 256)
        found = read_rows(bytes(text[: random.integers(0, len(text) + 1)]), 0, [])
        assert found is None or found.rows <= 2
