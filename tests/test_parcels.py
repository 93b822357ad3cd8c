"""What travels of a run that is computed elsewhere: the record at home is that of a run that was computed here."""

import errno
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engram.engines.guest import PREFIX, SCRATCH, Guest, Job, Tidings
from engram.engines.local import Local
from engram.engines.parcels import Landing, Parcel, Piece, Sender
from engram.errors import EngramError
from engram.models.stores import OneHead
from engram.records import Record, writer
from engram.records.state import State
from engram.runner.execute import execute
from engram.specs import Check, Search, Spec, Train
from engram.specs.settings import with_settings
from engram.tasks.planted import PlantedToken

Tiny = Callable[..., Train]


@pytest.fixture
def guest(monkeypatch: pytest.MonkeyPatch) -> Guest:
    monkeypatch.setattr("engram.engines.guest.SECONDS_BETWEEN_PARCELS", 0.0)
    monkeypatch.setattr(writer, "SECONDS_BETWEEN_STATES", 0.0)
    return Guest()


def tidings(guest: Guest, job: Job) -> Iterator[Tidings]:
    asked: Job | None = job
    while True:
        for one in guest.news(asked, patience=5.0):
            yield one
            if one.over:
                return
        asked = None


def job(landing: Landing) -> Job:
    return Job(landing.folder.name, landing.all(), 1, "cpu", "auto", None)


def content(folder: Path) -> dict[str, bytes]:
    """All that does not depend on a clock."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    clocks = ("env.json", "timing.jsonl", "lock", "about.json")
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.name not in clocks}


def of_here(spec: Spec, home: Path) -> dict[str, bytes]:
    return content(Local(home, threads=1).run([spec], lambda spec, row: None).records[0].folder)


def on_a_text(tiny: Tiny, folder: Path) -> Spec:
    (folder / "mine.txt").write_text("a text of my own, which lies nowhere else. " * 200)
    return with_settings(tiny(seed=3), {"task.corpus": str(folder / "mine.txt")})


def search(tiny: Tiny, folder: Path) -> Spec:
    return Search(task=PlantedToken(N=32, T=16), model=OneHead(), target=0.9, bracket=(2, 128), tolerance=0.3)


def check(tiny: Tiny, folder: Path) -> Spec:
    return Check(law="lemmas.closed_forms", draws=3, sizes={"A": 5, "M": 5, "d": 8})


def training(tiny: Tiny, folder: Path) -> Spec:
    return tiny(seed=3, steps=20)


@pytest.mark.parametrize("kind", [training, on_a_text, search, check])
def test_a_record_that_came_home_is_one_that_was_made_here(
    tiny: Tiny, tmp_path: Path, guest: Guest, kind: Callable[[Tiny, Path], Spec]
) -> None:
    spec = kind(tiny, tmp_path)
    landing = Landing(spec, tmp_path / "home")
    sent = job(landing)
    (tmp_path / "mine.txt").unlink(missing_ok=True)
    told = list(tidings(guest, sent))
    assert told[-1].error is None
    for one in told:
        landing.take(one.parcel)
    landing.close()
    assert len(told) > 2  # they came while it ran
    assert content(landing.folder) == of_here(spec, tmp_path / "here")


@pytest.mark.parametrize("lost_after", [0, 1, 7, 19])
def test_whatever_is_home_when_the_worker_is_lost_goes_on(
    tiny: Tiny, tmp_path: Path, guest: Guest, lost_after: int
) -> None:
    """Another worker goes on from the last state that came, or this machine does: to the same bytes."""
    spec, home = tiny(seed=3, steps=20), tmp_path / "home"
    landing = Landing(spec, home)
    for n, one in enumerate(tidings(guest, job(landing))):
        if n < lost_after:
            landing.take(one.parcel)
    landing.close()
    shutil.copytree(home, tmp_path / "copy")
    again = Landing(spec, home)
    for one in tidings(guest, job(again)):
        again.take(one.parcel)
    again.close()
    expected = of_here(spec, tmp_path / "here")
    assert content(again.folder) == expected
    assert content(execute(spec, tmp_path / "copy").folder) == expected


def test_every_prefix_of_a_parcel_is_a_sound_record(tiny: Tiny, tmp_path: Path, guest: Guest) -> None:
    """The driver may be killed between any two files."""
    spec = tiny(seed=3, steps=6)
    pieces = [piece for one in tidings(guest, job(Landing(spec, tmp_path / "other"))) for piece in one.parcel]
    expected = of_here(spec, tmp_path / "here")
    tidying = "state.safetensors"  # the last piece of all: it goes when the digest is there, and harms nobody
    for n in range(len(pieces) + 1):
        home = tmp_path / str(n)
        landing = Landing(spec, home)
        landing.take(pieces[:n])
        landing.close()
        found = content(execute(spec, home).folder)
        assert {name: found[name] for name in {*found} - {tidying}} == expected, [piece.name for piece in pieces[:n]]


def test_what_fails_is_told_and_what_was_computed_comes_home(tiny: Tiny, tmp_path: Path, guest: Guest) -> None:
    spec = tiny(seed=3, steps=60, lr=1e9)
    landing = Landing(spec, tmp_path / "home")
    *_, last = told = list(tidings(guest, job(landing)))
    for one in told:
        landing.take(one.parcel)
    assert "not finite" in str(last.error)
    assert not last.unfit
    assert "not finite" in Record(landing.folder).ended["end"]  # type: ignore[index]


def test_a_stopped_worker_saves_and_sends(tiny: Tiny, tmp_path: Path) -> None:
    guest, spec = Guest(), tiny(seed=3, steps=100_000)
    landing, told = Landing(spec, tmp_path / "home"), list[Tidings]()
    for one in tidings(guest, job(landing)):
        told.append(one)
        guest.stop()
    for one in told:
        landing.take(one.parcel)
    assert told[-1].error is None
    rows = len(Record(landing.folder).rows)
    assert State.read(landing.folder).step == rows > 0


def test_a_full_disk_is_the_fault_of_the_place(
    tiny: Tiny, tmp_path: Path, guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker may have room; a mistake in the run itself is one everywhere."""

    def full(parcel: Parcel, folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(folder))

    monkeypatch.setattr("engram.engines.guest.unpack", full)
    (last,) = tidings(guest, job(Landing(tiny(), tmp_path)))
    assert last.unfit
    assert "No space left" in str(last.error)


def test_two_cannot_land_one_run(tiny: Tiny, tmp_path: Path) -> None:
    landing = Landing(tiny(), tmp_path)
    with pytest.raises(EngramError, match="being written by another process"):
        Landing(tiny(), tmp_path)
    landing.close()
    Landing(tiny(), tmp_path).close()


@pytest.mark.parametrize(
    "name", ["../other", "code/mine.py", "spec.json", "snapshots/../../x.safetensors", "lock", "snapshots"]
)
def test_a_worker_cannot_write_elsewhere(tiny: Tiny, tmp_path: Path, name: str) -> None:
    with pytest.raises(EngramError, match="no part of a record"):
        Landing(tiny(), tmp_path).take([Piece(name, b"hello")])


def test_what_was_damaged_on_the_way_is_named(tiny: Tiny, tmp_path: Path, guest: Guest) -> None:
    spec = tiny(seed=3, steps=6)
    landing = Landing(spec, tmp_path / "home")
    *others, last = tidings(guest, job(landing))
    for one in others:
        landing.take(one.parcel)
    flipped: Parcel = [
        Piece(piece.name, piece.content[:-1] + b"?", piece.at)
        if piece.name.startswith("snapshots") and piece.content
        else piece
        for piece in last.parcel
    ]
    with pytest.raises(EngramError, match="snapshots"):
        landing.take(flipped)


def test_a_run_that_was_removed_takes_nothing(tiny: Tiny, tmp_path: Path) -> None:
    landing = Landing(tiny(), tmp_path)
    shutil.rmtree(landing.folder)
    with pytest.raises(EngramError, match="was removed"):
        landing.take([])


def test_a_growing_file_is_sent_once(tmp_path: Path) -> None:
    sender, rows = Sender(tmp_path), tmp_path / "rows.jsonl"
    rows.write_text("1\n")
    assert sender.look() == [Piece("rows.jsonl", b"1\n", 0)]
    assert sender.look() == []
    with rows.open("a") as file:
        file.write("2\n")
    assert sender.look() == [Piece("rows.jsonl", b"2\n", 2)]


def test_rows_that_are_at_home_are_not_written_anew(tiny: Tiny, tmp_path: Path) -> None:
    """A kill between truncating and writing would lose rows that the state beside them promises."""
    landing = Landing(tiny(), tmp_path)
    path = landing.folder / "rows.jsonl"
    landing.take([Piece("rows.jsonl", b"one\ntwo\nthree\n", 0)])
    kept = path.stat().st_mtime_ns
    landing.take([Piece("rows.jsonl", b"one\ntwo\nthree\n", 0)])
    assert path.stat().st_mtime_ns == kept
    landing.take([Piece("rows.jsonl", b"one\ntwo\n", 0)])  # going on from a state cuts what came after it
    assert path.read_bytes() == b"one\ntwo\n"
    landing.take([Piece("rows.jsonl", b"one\n2\nthree\n", 0), Piece("rows.jsonl", b"four\n", 12)])
    assert path.read_bytes() == b"one\n2\nthree\nfour\n"


def ends_the_process(*given: object, **named: object) -> None:
    raise SystemExit(3)


def test_a_file_that_ends_the_process_is_a_failure(
    tiny: Tiny, tmp_path: Path, guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engram.runner.execute.execute", ends_the_process)
    *_, last = tidings(guest, job(Landing(tiny(), tmp_path)))
    assert (last.over, "SystemExit" in str(last.error)) == (True, True)


def test_folders_of_workers_that_were_killed_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SCRATCH, str(tmp_path))
    (tmp_path / f"{PREFIX}{2**22 + 1}-abc").mkdir()  # no process has so large a number
    (tmp_path / f"{PREFIX}1-abc").mkdir()
    guest = Guest()
    assert len([*tmp_path.iterdir()]) == 2
    guest.leave()
    assert [path.name for path in tmp_path.iterdir()] == [f"{PREFIX}1-abc"]
