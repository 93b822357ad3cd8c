"""Small records that ask for much, or say what nobody writes: each is listed at once, or told in one line."""

import gzip
import json
import lzma
import resource
import shutil
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engram.cli.main import main
from engram.cli.trust import ask_trust
from engram.errors import EngramError
from engram.learning import SGD, Plan
from engram.models import Transformer
from engram.records import Record
from engram.records.bundle import bundle
from engram.records.index import lines
from engram.records.kept import Kept
from engram.records.places import in_bundle
from engram.records.trust import untrusted
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.encode import encode
from engram.specs.events import Truncate
from engram.tasks import Bigram

Tiny = Callable[..., Train]
NAME = "bigram-simplified-s0-0123456789"


def put(home: Path, spec: Any, rows: bytes = b'{"step": 0}\n', env: Any = None) -> Path:
    """A record that has not ended: nothing about it was ever checked."""
    folder = home / NAME
    folder.mkdir(parents=True)
    (folder / "spec.json").write_text(json.dumps(spec))
    (folder / "rows.jsonl").write_bytes(rows)
    (folder / "env.json").write_text(json.dumps(env or {"sittings": [{"threads": 1, "device": "cpu"}]}))
    return folder


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as end:
        main(list(words))
    return int(str(end.value.code)), capsys.readouterr().err


def search(low: int, high: int) -> dict[str, Any]:
    task, model = {"class": "tasks.association.Association"}, {"class": "models.stores.Outer", "d": 8}
    return {"class": "records.spec.Search", "revision": 1, "task": task, "model": model, "bracket": [low, high]}


def truncations(d: int) -> dict[str, Any]:
    plan = Plan(optimiser=SGD(lr=0.1), steps=9, batch=2, trained=("U",))
    spec = encode(Train(task=Bigram(T=32), model=Transformer(d=16), plan=plan))
    event = encode(Truncate(step=1, matrix="U", rank=1))
    return spec | {"model": spec["model"] | {"d": d}, "events": [event] * 40}


def facts(sizes: int) -> dict[str, Any]:
    task = {"class": "tasks.facts.Facts", "revision": 1, "S": sizes, "R": sizes}
    return {"class": "records.spec.Train", "revision": 1, "task": task}


GREEDY = {
    "a bracket without end": search(1, 10**400),
    "a bracket between large numbers": search(10**400, 10**401),
    "forty truncations of a wide model": truncations(8192),
    "a table of four billion facts": facts(2**16),
}


@pytest.mark.parametrize("spec", GREEDY.values(), ids=GREEDY)
def test_a_greedy_spec_is_listed_at_once(spec: dict[str, Any], home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(home, spec)
    lines(home)  # what is imported once is not counted
    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (line,) = lines(home, reread=True)
    assert line.id == NAME
    assert time.process_time() - began < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000
    assert said(capsys, "runs", "ls")[0] == 0


@pytest.mark.parametrize(("ending", "packing"), [(".xz", lzma.compress), (".gz", gzip.compress)])
def test_a_packed_bomb_is_unpacked_some_at_a_time(ending: str, packing: Any, home: Path, tiny: Tiny) -> None:
    record = execute(tiny(), home)
    path = bundle([record], home / "one.zip")
    shutil.rmtree(record.folder)
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, old in content.items():
            rows = name.endswith(".xz")
            archive.writestr(name.replace(".columns.xz", ending), packing(b"\n" * (400 << 20)) if rows else old)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (line,) = lines(home)
    assert "does not match the digest" in line.state
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


ODD_ENVS = [[1], ["threads"], [{"threads": 1}, 5], [["threads"]], [], "threads"]


@pytest.mark.parametrize("sittings", ODD_ENVS, ids=str)
def test_an_odd_environment_is_named(sittings: Any, home: Path, tiny: Tiny, capsys: pytest.CaptureFixture[str]) -> None:
    put(home, encode(tiny()), env={"sittings": sittings})
    code, err = said(capsys, "runs", "show", NAME)
    assert (code, "env.json is unreadable" in err) == (2, True)


def nested(deep: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(deep):
        found = {"class": 1, "y": found}
    return found


def test_a_spec_that_is_too_deep_or_no_json_is_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for spec in (json.dumps(nested(500)), '{"class": NaN}', '{"class": Infinity}'):
        shutil.rmtree(home, ignore_errors=True)
        (put(home, {}) / "spec.json").write_text(spec)
        for words in (("runs", "show", NAME, "--json"), ("runs", "show", NAME), ("report", NAME)):
            code, err = said(capsys, *words)
            assert (code, "spec.json is unreadable" in err) == (2, True)


def test_numbers_without_end_are_not_measured(home: Path, tiny: Tiny, capsys: pytest.CaptureFixture[str]) -> None:
    folder = put(home, encode(tiny()), b'{"step": 0, "loss": Infinity, "x": 1e999, "y": -Infinity, "z": 1.5}\n')
    assert Kept(folder).table.measured == ["step", "z"]
    assert said(capsys, "runs", "show", NAME, "--json")[0] == 0


def test_too_many_columns_are_refused(home: Path, tiny: Tiny) -> None:
    rows = b"".join(b'{"step": %d, "c%d": 1}\n' % (i, i) for i in range(20_000))
    began = time.process_time()
    with pytest.raises(EngramError, match="more than 4096 columns"):
        _ = Kept(put(home, encode(tiny()), rows)).table
    assert time.process_time() - began < 10


@pytest.mark.parametrize("name", ["x/spec.json\0B", "./spec.json", "x//spec.json", "x/./spec.json", "x/sp\x1bec.json"])
def test_an_odd_name_in_a_bundle_is_refused(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "odd.zip", "w") as archive:
        archive.writestr("x/spec.json", "{}")
        entry = zipfile.ZipInfo("x/other.json")
        entry.filename = name
        archive.writestr(entry, "{}")
    with pytest.raises(EngramError, match="cannot be read as a zip"):
        in_bundle(tmp_path / "odd.zip")


def test_what_was_asked_about_is_what_is_trusted(home: Path, tiny: Tiny) -> None:
    spec = encode(tiny())
    spec["task"] |= {"class": "Mine", "file": "mine.py", "sha256_of_file": "0"}
    folder = put(home, spec)
    (folder / "code").mkdir()
    (folder / "code" / "mine.py").write_text("harmless = 1")
    record = Record(folder)
    assert list(untrusted(record.code)) == ["mine.py"]
    (folder / "code" / "mine.py").write_text("harmful = 1")  # while somebody reads the question
    ask_trust(record, trust=True)
    assert list(untrusted(Record(folder).code)) == ["mine.py"]
    assert not untrusted({"mine.py": b"harmless = 1"})
