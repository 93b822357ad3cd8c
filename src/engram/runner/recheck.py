"""A record against itself: every digest, and as many of its rows, computed again, as the time allows."""

import math
import random
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from engram.errors import EngramError
from engram.records import Record
from engram.records.audit import refuse_damaged
from engram.records.compare import Mismatch, mismatch
from engram.records.files import Row
from engram.records.manifest import refuse_unlisted
from engram.records.state import NAME, State
from engram.runner.execute import environment, path_of, refuse_lost
from engram.runner.stretches import Stretch, snapshot_rows, stretches, whole
from engram.specs import Search, Spec, Train

MOST_SPANS = 6  # are told one by one


@dataclass(frozen=True)
class Extent:
    """How much of a record is computed again.

    steps         rows from its beginning, however long they take
    seconds       for what is drawn at random beyond that: stretches from stored states, sizes of a Search; or, where
                  there is nothing to draw from, for more of the beginning
    everything    all rows from the very beginning, however long they take
    pick          the seed of the draw
    """

    steps: int = 20
    seconds: float = 20.0
    everything: bool = False
    pick: int = field(default_factory=lambda: secrets.randbelow(1_000_000))

    def refuse_odd(self) -> None:
        if self.steps < 1:
            raise EngramError(f"--steps: must be at least 1; got {self.steps}")
        if not (math.isfinite(self.seconds) and self.seconds >= 0):
            raise EngramError(f"--seconds: must be a number of seconds, 0 or more; got {self.seconds}")


def recheck(record: Record, extent: Extent, cores: int) -> dict[str, Any]:
    """A record against its digests, with all that it holds, and against rows that are computed again.

    To the byte where versions, processor and threads are those of the record; else to 0.1 %, and what is equal to the
    byte all the same is said to be.
    """
    extent.refuse_odd()
    refuse_unlisted(record)
    refuse_damaged(record)
    spec = record.spec
    if isinstance(spec, Train) and record.ended is None and (record.place / NAME).exists():
        refuse_lost(record, spec, State.read(record.place).step)
    then = record.env["sittings"][0]
    torch.set_num_threads(min(then["threads"], cores))
    path = "reference" if then["path"] == "reference" else path_of(spec)
    same = _what_rounds(environment("cpu", path)) == _what_rounds(then)
    comparison = Comparison(record.rows, same, record.ended is not None)
    _compute(comparison, record, spec, path, extent)
    return _told(record, comparison, extent)


def _what_rounds(env: dict[str, Any]) -> dict[str, Any]:
    """Records of before 2026-11-19 do not name their processor: it counts as another one."""
    return {
        name: env.get(name)
        for name in ("torch", "numpy", "processor", "machine", "system", "device", "threads", "path")
    }


@dataclass
class Comparison:
    """Stored rows beside those that are computed again; it ends at the first that differs.

    to_the_byte    whether they have to be the same
    exact          whether all have been
    """

    stored: Sequence[Row]
    to_the_byte: bool
    sealed: bool
    exact: bool = True
    seen: set[int] = field(default_factory=set)
    found: Mismatch | None = None
    drawn: bool = False  # whether chance chose what was computed
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0

    def compare(self, stretch: Stretch, until: float, least: int = 0) -> None:
        """Row by row to the end of the stretch, or until the time is over; but so many rows at least."""
        while stretch.at < stretch.end and self.found is None:
            if stretch.at - stretch.begin >= least and self.elapsed >= until:
                return
            stored, again = self.stored[stretch.at], next(stretch.again, None)
            self.exact = self.exact and mismatch(stretch.at, stored, again, to_the_byte=True) is None
            self.found = None if self.exact else mismatch(stretch.at, stored, again, self.to_the_byte)
            self.seen.add(stretch.at)
            stretch.at += 1
            if stretch.at == len(self.stored) and self.sealed and self.found is None:
                self.found = mismatch(stretch.at, None, next(stretch.again, None), self.to_the_byte)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began


def _compute(now: Comparison, record: Record, spec: Spec, path: str, extent: Extent) -> None:
    n, chance = len(now.stored), random.Random(extent.pick)
    if extent.everything and n:
        now.compare(whole(spec, path, n), math.inf)
        _all(now, snapshot_rows(record, spec, path, n), math.inf)
    elif n:
        parts, rows = stretches(record, spec, path, n, extent.steps), snapshot_rows(record, spec, path, n)
        _begin(now, parts if isinstance(spec, Search) else parts[:1], extent.steps)
        if not now.to_the_byte:  # differences in rounding grow: what is far from its start says nothing
            parts = [_cut(part, extent.steps) for part in parts] if isinstance(spec, Train) else []
        now.drawn = len(parts) > 1
        _all(now, chance.sample(rows, len(rows)), extent.seconds / 2)
        _all(now, chance.sample(parts, len(parts)), extent.seconds)
    now.seconds = now.elapsed


def _begin(now: Comparison, parts: Sequence[Stretch], steps: int) -> None:
    """The first rows in any case."""
    for part in parts:
        now.compare(part, 0.0, max(0, steps - part.begin))


def _all(now: Comparison, parts: Iterable[Stretch], until: float) -> None:
    for part in parts:
        now.compare(part, until)


def _cut(part: Stretch, steps: int) -> Stretch:
    part.end = max(part.at, min(part.end, part.begin + steps))
    return part


def _told(record: Record, now: Comparison, extent: Extent) -> dict[str, Any]:
    n = len(now.stored)
    done, left = spans(now.seen), spans(set(range(n)) - now.seen)
    return {
        "ok": now.found is None and n > 0,
        "record": record.id,
        "rows": n,
        "compared": len(now.seen),
        "recomputed": done,
        "not_recomputed": left,
        "seconds": round(now.seconds, 2),
        "budget": None if extent.everything else extent.seconds,
        "pick": extent.pick if now.drawn else None,
        "to_the_byte": now.exact,
        "mismatch": vars(now.found) if now.found else None,
        "message": f"{record.id}: {_message(now, done, left, extent)}",
    }


def _message(now: Comparison, done: list[list[int]], left: list[list[int]], extent: Extent) -> str:
    n, seconds = len(now.stored), f"{now.seconds:.3g} s"
    if not n:
        return "there are no rows to compare"
    other = "the versions, processor or threads are not known to be those of the record"
    drawn = f", chosen by --pick {extent.pick}" if now.drawn and left else ""
    which = f"rows {_in_words(done)} of {n}" if left else f"all {n} rows" if n > 1 else "its one row"
    if now.found:
        grown = "" if now.to_the_byte else f" ({other}, and differences in rounding grow with the steps)"
        return f"{now.found.sentence}{grown}; {which} recomputed in {seconds}{drawn}"
    seal = "the digest matches" if now.sealed else "not finished, so there is no digest"
    how = "to the byte" if now.exact else f"to 0.1 % ({other})"
    more = "--all recomputes every row" if not now.to_the_byte else "--seconds gives more time, --all recomputes all"
    rest = f"; not recomputed: rows {_in_words(left)} ({more})" if left else ""
    return f"{seal}; {which} recomputed in {seconds}{drawn} agree {how}{rest}"


def spans(numbers: Iterable[int]) -> list[list[int]]:
    """The first and the last of each run of numbers.

    >>> spans({4, 0, 1, 2})
    [[0, 2], [4, 4]]
    """
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def _in_words(found: Sequence[Sequence[int]]) -> str:
    told = [f"{first}" if first == last else f"{first} … {last}" for first, last in found[:MOST_SPANS]]
    return ", ".join(told) + (f" and {len(found) - MOST_SPANS} more stretches" if len(found) > MOST_SPANS else "")
