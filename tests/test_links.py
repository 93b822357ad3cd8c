"""Nothing outside a run is ever written through a link that lies where a file or folder of the run should be."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from engram.cli.main import main
from engram.errors import EngramError
from engram.records import Record, files
from engram.records.bundle import bundle, pack
from engram.records.fork import fork, steered
from engram.records.index import overview, state
from engram.records.writer import note, write_spec
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.events import Freeze
from engram.specs.spec import run_id
from test_part_done import as_in_the_lab, stopped

Tiny = Callable[..., Train]
FILES = ("rows.jsonl", "timing.jsonl", "lock", "events.jsonl", "state.safetensors", "live.safetensors", "env.json")
FOLDERS = ("snapshots", "states", "code")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def linked(path: Path, outside: Path, dangling: bool) -> dict[str, bytes]:
    """What lay at the path lies outside now, and a link in its place; what is outside after that."""
    outside.mkdir()
    (outside / "diary.txt").write_text("mine")
    target = outside / path.name
    if path.exists() and not dangling:
        shutil.move(path, target)
    elif not dangling:
        target.mkdir() if path.name in FOLDERS else target.write_text("a file that is not a run's\n")
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.symlink_to(target)
    return contents(outside)


@pytest.mark.parametrize("dangling", [False, True], ids=["to something", "to nothing"])
@pytest.mark.parametrize("name", [*FILES, *FOLDERS])
def test_no_run_is_written_through_a_link(tiny: Tiny, tmp_path: Path, name: str, dangling: bool) -> None:
    home, outside = tmp_path / "runs", tmp_path / "outside"
    folder = stopped(tiny(), home, 4)
    before = linked(folder / name, outside, dangling)
    with pytest.raises(EngramError, match=rf"{name} is (a link|.*not a plain file)"):
        execute(tiny(), home, on_moment=as_in_the_lab)
    note(folder, 3, {"op": "pause"})
    overview(home)
    assert contents(outside) == before
    assert state(Record(folder)) != "finished"


@pytest.mark.parametrize("dangling", [False, True], ids=["to something", "to nothing"])
def test_a_run_folder_that_is_a_link_is_not_written_to(tiny: Tiny, tmp_path: Path, dangling: bool) -> None:
    home, outside = tmp_path / "runs", tmp_path / "outside"
    folder = stopped(tiny(), home, 4)
    before = linked(folder, outside, dangling)
    for write in (lambda: execute(tiny(), home), lambda: write_spec(tiny(), folder)):
        with pytest.raises(EngramError, match="is a link"):
            write()
    note(folder, 3, {"op": "pause"})
    assert contents(outside) == before


def test_resume_and_rm_refuse_links_in_one_line(tiny: Tiny, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outside = home.parent / "outside"
    folder = stopped(tiny(), home, 4)
    before = linked(folder / "snapshots", outside, dangling=False)
    for words in (["runs", "resume", folder.name], ["runs", "rm", folder.name, "--yes"]):
        with pytest.raises(SystemExit) as end:
            main(words)
        assert end.value.code == (2 if words[1] == "resume" else 0)
        assert ("snapshots is a link" in capsys.readouterr().err) == (words[1] == "resume")
        assert contents(outside) == before
    assert not folder.exists(), "a link in a run goes with the run; what it leads to stays"


@pytest.mark.parametrize("name", ["rows.jsonl.gz", "spec.json", "snapshots", "env.json", "digest.json"])
def test_a_packed_run_is_not_written_through_a_link(tiny: Tiny, tmp_path: Path, name: str) -> None:
    record, outside = execute(tiny(), tmp_path / "runs"), tmp_path / "outside"
    target = tmp_path / "packed" / record.id
    target.mkdir(parents=True)
    before = linked(target / name, outside, dangling=False)
    with pytest.raises(EngramError, match=rf"{name} is a link"):
        pack(record, target.parent, weights=True)
    assert contents(outside) == before


def test_a_bundle_replaces_a_link_and_not_what_it_leads_to(tiny: Tiny, tmp_path: Path) -> None:
    record, outside = execute(tiny(), tmp_path / "runs"), tmp_path / "outside"
    path = tmp_path / "one.zip"
    before = linked(path, outside, dangling=False)
    assert bundle([record], path) == path
    assert not path.is_symlink()
    assert contents(outside) == before


@pytest.mark.parametrize("dangling", [False, True], ids=["to something", "to nothing"])
def test_a_fork_is_not_made_through_a_link(tiny: Tiny, tmp_path: Path, dangling: bool) -> None:
    home, outside = tmp_path / "runs", tmp_path / "outside"
    parent = Record(stopped(tiny(), home, 4))
    branch = steered(tiny(), Freeze(step=3, matrix="W_O2"))
    before = linked(home / run_id(branch), outside, dangling)
    with pytest.raises(EngramError, match="is a link"):
        fork(parent, branch)
    assert contents(outside) == before


def test_a_fork_takes_no_link_over(tiny: Tiny, tmp_path: Path) -> None:
    home, secret = tmp_path / "runs", tmp_path / "secret"
    folder = stopped(tiny(), home, 4)
    secret.write_text("mine")
    (folder / "snapshots" / "000001.safetensors").unlink()
    (folder / "snapshots" / "000001.safetensors").symlink_to(secret)
    branch = steered(tiny(), Freeze(step=3, matrix="W_O2"))
    with pytest.raises(EngramError, match=r"snapshots/000001.safetensors is a link"):
        fork(Record(folder), branch)
    assert not (home / run_id(branch)).exists()


@pytest.mark.parametrize("name", ["rows.jsonl", "timing.jsonl"])
def test_a_file_with_two_names_is_not_appended_to(tiny: Tiny, tmp_path: Path, name: str) -> None:
    """A hard link elsewhere would change with it."""
    home = tmp_path / "runs"
    folder = stopped(tiny(), home, 4)
    os.link(folder / name, tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere").read_bytes()
    with pytest.raises(EngramError, match=rf"{name} has 2 names"):
        execute(tiny(), home)
    assert (tmp_path / "elsewhere").read_bytes() == before


def test_the_snapshots_that_a_fork_shares_are_never_written_in_place(tiny: Tiny, tmp_path: Path) -> None:
    home = tmp_path / "runs"
    folder = stopped(tiny(), home, 4)
    before = contents(folder / "snapshots")
    branch = steered(tiny(), Freeze(step=3, matrix="W_O2"))
    forked = fork(Record(folder), branch)
    assert (forked / "snapshots" / "000001.safetensors").stat().st_nlink == 2
    execute(branch, home, on_moment=as_in_the_lab)
    assert contents(folder / "snapshots") == before
    assert execute(tiny(), home, on_moment=as_in_the_lab).finished


def test_a_half_written_file_is_no_way_out(tmp_path: Path) -> None:
    """The name of what is being written can be guessed: a link that waits there is removed, not followed."""
    outside = tmp_path / "outside"
    outside.write_text("mine")
    (tmp_path / f".env.json.{os.getpid()}.part").symlink_to(outside)
    files.replace(tmp_path / "env.json", b"{}")
    assert outside.read_text() == "mine"
    assert (tmp_path / "env.json").read_bytes() == b"{}"
    assert not (tmp_path / "env.json").is_symlink()


def test_a_lock_that_is_a_link_or_a_pipe_is_not_opened(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    (tmp_path / "linked").symlink_to(outside)
    os.mkfifo(tmp_path / "pipe")
    assert not files.is_held(tmp_path / "linked")
    assert not files.is_held(tmp_path / "pipe")
    assert outside.read_text() == "mine"
