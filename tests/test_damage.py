"""What is damaged, changed, cut or stale is noticed, and nothing is overwritten."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from engram.claims.ledger import Index, ledger
from engram.errors import EngramError, Interrupted
from engram.experiments import matching
from engram.models import Simplified
from engram.records import Record
from engram.records.bundle import pack
from engram.records.compare import diff
from engram.records.index import overview
from engram.records.shelf import all_records, find
from engram.runner.execute import execute
from engram.specs import Train

Tiny = Callable[..., Train]


def rewrite(name: str, old: bytes, new: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes().replace(old, new, 1))


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "rows cut": (lambda folder: os.truncate(folder / "rows.jsonl", 100), "rows.jsonl does not match the digest"),
    "rows changed": (rewrite("rows.jsonl", b"4.", b"3."), "rows.jsonl does not match the digest"),
    "spec changed": (rewrite("spec.json", b'"K": 3', b'"K": 4'), "spec.json"),
    "spec unreadable": (lambda folder: (folder / "spec.json").write_text("{"), "spec.json"),
    "spec empty": (lambda folder: (folder / "spec.json").write_text(""), "spec.json"),
    "digest unreadable": (lambda folder: (folder / "digest.json").write_text("[]"), "digest.json is unreadable"),
    "digest without end": (lambda folder: (folder / "digest.json").write_text("{}"), "digest.json is unreadable"),
    "rows lost": (lambda folder: (folder / "rows.jsonl").unlink(), "rows.jsonl is missing"),
}


@pytest.mark.parametrize(("damage", "says"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_noticed_and_nothing_is_overwritten(
    tiny: Tiny, tmp_path: Path, damage: Callable[[Path], object], says: str
) -> None:
    folder = execute(tiny(), tmp_path).folder
    damage(folder)
    before = {file.name: file.read_bytes() for file in folder.glob("*.json*")}
    for read in (lambda: Record(folder).spec and Record(folder).rows, lambda: execute(tiny(), tmp_path)):
        with pytest.raises(EngramError, match=says) as error:
            read()
        assert "engram runs rm" in str(error.value)
    assert {file.name: file.read_bytes() for file in folder.glob("*.json*")} == before
    assert overview(tmp_path)[0]["state"] not in ("finished", "part-done")


def test_one_broken_record_does_not_take_down_the_others(tiny: Tiny, home: Path) -> None:
    good, bad = execute(tiny(seed=1), home), execute(tiny(seed=2), home)
    packed = pack(good, home, weights=False)  # over itself: rows.jsonl.gz beside rows.jsonl
    (packed / "rows.jsonl.gz").write_bytes(b"\x1f\x8b nonsense")
    (bad.folder / "env.json").write_text("{}")
    (bad.folder / "snapshots" / "notes.safetensors").write_text("")
    states = [row["state"] for row in overview(home)]
    assert len(states) == 2
    assert any("unreadable" in state for state in states)
    found = Index.of([home])
    assert ledger(matching(()), found)
    assert [(broken.record, "unreadable" in broken.why) for broken in found.unreadable] == [(good.id, True)]
    with pytest.raises(EngramError, match=r"env.json is unreadable"):
        diff(bad, bad)
    assert bad.snapshot_steps == [0, 1, 2, 4, 6]


def test_a_changed_snapshot_is_noticed(tiny: Tiny, tmp_path: Path) -> None:
    record = execute(tiny(), tmp_path)
    path = record.folder / "snapshots" / "000006.safetensors"
    path.write_bytes(path.read_bytes()[:-4] + b"\0\0\0\0")
    with pytest.raises(EngramError, match="does not match the digest"):
        Record(record.folder).model()


def test_a_folder_that_is_no_run_is_not_touched(home: Path) -> None:
    (home / "notes").mkdir(parents=True)
    assert all_records(home) == []
    with pytest.raises(EngramError, match="no run 'notes'"):
        find("notes", home)


def test_timing_never_blocks_a_resume(tiny: Tiny, tmp_path: Path) -> None:
    for damage in (b"", b"nonsense\n" * 9):
        home, steps = tmp_path / str(len(damage)), iter(range(100))
        with pytest.raises(Interrupted):
            execute(tiny(), home, stop=lambda steps=steps: next(steps) == 4)
        (record,) = all_records(home)
        (record.folder / "timing.jsonl").write_bytes(damage)
        assert execute(tiny(), home).finished


def test_a_part_done_run_with_a_changed_spec_is_refused(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        execute(tiny(), tmp_path, stop=lambda: True)
    (record,) = all_records(tmp_path)
    path = record.folder / "spec.json"
    path.write_text(path.read_text().replace('"K": 3', '"K": 4'))
    with pytest.raises(EngramError, match="a changed Spec is a new run"):
        execute(tiny(), tmp_path)


def test_rows_behind_their_state_are_refused(tiny: Tiny, tmp_path: Path) -> None:
    steps = iter(range(100))
    with pytest.raises(Interrupted):
        execute(tiny(), tmp_path, stop=lambda: next(steps) == 4)
    (record,) = all_records(tmp_path)
    os.truncate(record.folder / "rows.jsonl", 10)
    with pytest.raises(EngramError, match="ends at row 0 but the state is of step 4"):
        execute(tiny(), tmp_path)
    (record.folder / "state.safetensors").write_bytes(b"nonsense")
    with pytest.raises(EngramError, match=r"state.safetensors is unreadable"):
        execute(tiny(), tmp_path)


def test_a_record_of_an_older_revision_is_stale(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = execute(tiny(), tmp_path).folder
    assert not Record(folder).stale
    monkeypatch.setattr(Simplified, "revision", 2)
    assert Record(folder).stale
    assert overview(tmp_path)[0]["state"] == "stale"
    assert execute(tiny(), tmp_path).folder != folder  # the new revision runs anew beside it


LIMIT = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
sys.argv = ["engram", *sys.argv[2:]]
from engram.cli.main import main
main()
"""


def test_a_full_disk_is_one_line_and_loses_nothing(home: Path) -> None:
    """A limit on file size stands in for a full disk: the write fails in the same place."""
    run = ["run", "birth.joint", "--scale", "smoke"]
    failed = subprocess.run([sys.executable, "-c", LIMIT, "3000", *run], capture_output=True, text=True, check=False)
    assert failed.returncode == 2, failed.stderr
    assert "cannot write" in failed.stderr
    assert "Traceback" not in failed.stderr
    (record,) = all_records(home)
    assert record.rows  # what was written is readable
    done = subprocess.run([sys.executable, "-m", "engram", *run], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert Record(record.folder).finished
