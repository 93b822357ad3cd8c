"""Steps between stored ones: bounded in time and memory, given up when nobody waits, and never beside a training."""

from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from engram.errors import EngramError
from engram.lab import any_step
from engram.lab.any_step import AnyStep, GivenUp
from engram.records import Record
from engram.records.follow import Follower
from engram.runner.execute import execute
from engram.specs import Train

Tiny = Callable[..., Train]


@pytest.fixture
def run(tiny: Tiny, tmp_path: Path) -> Follower:
    return Follower(execute(tiny(steps=7), tmp_path).folder)


def test_what_is_computed_is_the_record(run: Follower) -> None:
    known = AnyStep(lambda: False)
    known.compute(run, 3, Event())
    found, right = known.of(run.folder.name)[3], Record(run.folder).weights(3)
    assert all((found[name] == value).all() for name, value in right.items())


def test_nothing_is_computed_while_something_trains(run: Follower) -> None:
    with pytest.raises(EngramError, match="when no training is running"):
        AnyStep(lambda: True).compute(run, 3, Event())


def test_a_training_that_begins_ends_it(run: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(any_step, "LOOKS", -1.0)
    answers = iter([False, False, True])
    with pytest.raises(EngramError, match="when no training is running"):
        AnyStep(lambda: next(answers)).compute(run, 6, Event())


def test_nobody_waits(run: Follower) -> None:
    gone = Event()
    gone.set()
    with pytest.raises(GivenUp):
        AnyStep(lambda: False).compute(run, 3, gone)


def test_what_takes_long_is_refused(run: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOOKS", "FIRST_SECONDS", "LONGEST"):
        monkeypatch.setattr(any_step, name, -1.0)
    with pytest.raises(EngramError, match=r"too long for a page; in Python: record\.model\(6\)"):
        AnyStep(lambda: False).compute(run, 6, Event())


def test_only_the_last_are_kept(run: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(any_step, "MOST_BYTES", 1)
    known = AnyStep(lambda: False)
    for step in (3, 5, 6):
        known.compute(run, step, Event())
    assert list(known.of(run.folder.name)) == [6]
