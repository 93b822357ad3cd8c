"""A home with anything in it: every entry is read on its own, and only runs are ever removed."""

import json
import os
import pty
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engram.claims.ledger import Index
from engram.cli.main import main
from engram.errors import EngramError
from engram.lab.run_reader import RunReader
from engram.records import Record, files
from engram.records.about import change, with_tags
from engram.records.bundle import bundle
from engram.records.index import lines, overview
from engram.records.places import find_place
from engram.records.shelf import all_records
from engram.runner.execute import execute
from engram.specs import Train

Tiny = Callable[..., Train]
NAME = "bigram-simplified-s9-0123456789"


def with_spec(spec: Any) -> Callable[[Path], None]:
    def put(home: Path) -> None:
        (home / NAME).mkdir()
        (home / NAME / "spec.json").write_text(spec if isinstance(spec, str) else json.dumps(spec))
        (home / NAME / "digest.json").write_text('{"end": "finished"}')

    return put


def folder_for_a_file(home: Path) -> None:
    (home / NAME / "spec.json").mkdir(parents=True)


def pipe_for_a_file(home: Path) -> None:
    (home / NAME).mkdir()
    os.mkfifo(home / NAME / "spec.json")


def link_for_a_file(home: Path) -> None:
    (home / NAME).mkdir()
    (home / NAME / "spec.json").symlink_to("/etc/hostname")


def bomb(home: Path) -> None:
    """Little that unpacks to much."""
    (home / NAME).mkdir()
    (home / NAME / "spec.json").write_text("{}")
    packer = zlib.compressobj(wbits=31)
    content = b"".join(packer.compress(bytes(1 << 20)) for _ in range(20)) + packer.flush()
    (home / NAME / "rows.jsonl.gz").write_bytes(content)
    (home / NAME / "digest.json").write_text('{"end": "finished", "spec.json": "", "rows.jsonl": ""}')


ODD: dict[str, Callable[[Path], object]] = {
    "a list": with_spec([1]),
    "a number": with_spec(3),
    "no class": with_spec({}),
    "class of a module": with_spec({"class": "__main__"}),
    "class is a list": with_spec({"class": ["Train"]}),
    "class is null": with_spec({"class": None}),
    "a file that is not there": with_spec({"class": "Train", "file": "gone.py", "sha256_of_file": "0"}),
    "deep": with_spec("[" * 100_000),
    "not text": lambda home: ((home / NAME).mkdir(), (home / NAME / "spec.json").write_bytes(b"\xff\xfe\x00")),
    "a folder for a file": folder_for_a_file,
    "a pipe for a file": pipe_for_a_file,
    "a link for a file": link_for_a_file,
    "a bomb": bomb,
    "no zip": lambda home: (home / f"{NAME}.zip").write_bytes(b"PK nonsense"),
    "an empty zip": lambda home: (home / f"{NAME}.zip").write_bytes(b""),
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("put", ODD.values(), ids=ODD)
def test_one_odd_entry_takes_nothing_else_down(
    put: Callable[[Path], object], tiny: Tiny, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 10 << 20)
    good = execute(tiny(), home)
    put(home)
    states = {line["run"].removesuffix(".zip"): line["state"] for line in overview(home)}
    assert states.pop(good.id) == "finished"
    assert all(state not in ("finished", "running") for state in states.values())
    index = Index.of([home])
    assert list(index.found) == [good.id]
    assert all(odd.record.startswith(NAME) for odd in index.unreadable)
    assert [run["id"] for run in RunReader(home).runs()["runs"]] == [good.id]


def test_a_bundle_is_checked_whenever_it_is_read(tiny: Tiny, home: Path, tmp_path: Path) -> None:
    """A flipped byte in what was once unpacked used to turn a verdict without a word."""
    record = execute(tiny(), home)
    path = bundle([record], tmp_path / "shelf" / "one.zip")
    assert [found.rows for found in all_records(path.parent)] == [record.rows]
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(f"{record.id}/rows.jsonl.columns.xz")
    content[info.header_offset + 30 + len(info.filename) + info.compress_size // 2] ^= 4
    path.write_bytes(bytes(content))
    (found,) = all_records(path.parent)
    with pytest.raises(EngramError, match=r"rows.jsonl"):
        _ = found.ended
    (line,) = overview(path.parent)
    assert line["state"].startswith("rows.jsonl")
    assert not list(tmp_path.rglob("cache/records"))


def rm(*names: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["runs", "rm", *names])
    return int(end.value.code or 0)


def test_only_runs_of_the_home_are_removed(tiny: Tiny, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A website in the working directory has a spec.json, too."""
    record, other = execute(tiny(1), home), execute(tiny(2), home.parent / "elsewhere")
    website = home.parent / "website"
    website.mkdir()
    (website / "spec.json").write_text("{}")
    (home / "notes").mkdir()
    (home / "notes" / "spec.json").write_text("{}")
    (home / NAME).symlink_to(website)
    for name in ("website", str(website), "notes", "../website", str(other.folder), NAME, record.id[-3:], "."):
        assert rm(name, "--yes") == 2
        assert "no run" in capsys.readouterr().err
    assert rm(NAME[:12], "--yes") == 0, "a part that only one run has; a link is none"
    assert not record.folder.exists()
    record = execute(tiny(1), home)
    assert website.exists()
    assert other.folder.exists()
    (record.folder / "thesis.tex").touch()
    assert rm(record.id, "--yes") == 2
    assert "thesis.tex" in capsys.readouterr().err
    (record.folder / "thesis.tex").unlink()
    assert rm(record.id) == 2
    assert "--yes" in capsys.readouterr().err
    assert rm(record.id, "--yes") == 0
    assert not record.folder.exists()


def test_several_runs_and_the_last_are_removed_at_once(tiny: Tiny, home: Path) -> None:
    records = [execute(tiny(seed), home) for seed in range(4)]
    (records[0].folder / "spec.json").write_text("{")  # a damaged run must go, too
    for i, record in enumerate(records):
        for file in record.folder.iterdir():
            os.utime(file, (i, i))
    bundle(records[1:2], home / "kept.zip")
    assert rm(records[0].id, "last", "--yes") == 0
    assert sorted(path.name for path in home.iterdir() if path.is_dir()) == sorted(r.id for r in records[1:3])
    assert rm("bigram-simplified", "--yes") == 2, "several have it"
    assert rm(records[1].id, "nonsense", "--yes") == 2
    assert records[1].folder.exists(), "all or none"


def test_a_tag_or_a_note_makes_no_run_the_last(tiny: Tiny, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`last` is the run that was computed last, also where another folder has changed since."""
    records = [execute(tiny(seed), home) for seed in range(2)]
    for i, record in enumerate(records):
        for file in record.folder.iterdir():
            os.utime(file, (i, i))
    change(records[0].folder, lambda about: with_tags(about, ("good",)))
    os.utime(records[0].folder)
    assert find_place("last", home).name == records[1].id
    assert [line.id for line in lines(home)] == [record.id for record in records]


@pytest.mark.parametrize(("said", "gone"), [("y\n", True), ("\n", False), ("no\n", False)])
def test_a_person_is_asked(tiny: Tiny, home: Path, said: str, gone: bool) -> None:
    record = execute(tiny(), home)
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "engram", "runs", "rm", record.id]
    with subprocess.Popen(command, stdin=slave, stdout=subprocess.DEVNULL, stderr=slave) as process:
        os.close(slave)
        os.write(master, said.encode())
        process.wait(60)
    os.close(master)
    assert Record(record.folder).folder.exists() != gone
