"""Somebody else's record: whatever is done to look at it runs none of its code, and says what was not done."""

import json
import os
import pty
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from engram import api
from engram.cli.main import main
from engram.errors import EngramError
from engram.lab.run_reader import RunReader
from engram.records import Record
from engram.records.audit import refuse_damaged
from engram.records.bundle import bundle
from engram.records.trust import Untrusted
from engram.values import OWN_FILE
from lab import served

MODEL = Path(__file__).parent.parent / "examples" / "own_model.py"
CANARY = "from pathlib import Path\nimport os\nPath(os.environ['CANARY']).touch()\n"


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CANARY", str(tmp_path / "canary"))
    return tmp_path / "canary"


@pytest.fixture
def foreign(home: Path, tmp_path: Path, canary: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Record]:
    """A run that somebody made elsewhere: its file notes when it is run, and this user does not know it."""
    file = tmp_path / "theirs.py"
    file.write_text(CANARY + MODEL.read_text())
    (record,) = api.run(str(file), scale="smoke").records
    assert canary.exists()
    canary.unlink()
    make_strange(monkeypatch, tmp_path)
    yield Record(record.folder)
    make_strange(monkeypatch, tmp_path)


def make_strange(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Nothing is loaded, and nothing is trusted."""
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "nobody"))
    for name in [name for name in sys.modules if name.startswith(OWN_FILE)]:
        del sys.modules[name]


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main(list(words))
    told = capsys.readouterr()
    return int(str(end.value.code)), told.out, told.err


LOOKS = {
    "ls": ("runs", "ls"),
    "show": ("runs", "show", "{run}"),
    "diff": ("runs", "diff", "{run}", "{run}"),
    "report": ("report", "{run}"),
    "ledger": ("ledger", "birth.fig4-left"),
    "pack": ("runs", "pack", "{run}"),
}


@pytest.mark.parametrize("words", LOOKS.values(), ids=LOOKS)
@pytest.mark.parametrize("form", ["folder", "zip"])
def test_looking_runs_nothing(
    form: str, words: tuple[str, ...], foreign: Record, canary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if form == "zip":
        bundle([foreign], foreign.folder.parent / "theirs.zip")
        shutil.rmtree(foreign.folder)
    code, _, err = said(capsys, *(word.format(run=foreign.id) for word in words))
    assert (code, canary.exists()) == (0, False), err


def test_the_user_sees_what_it_is_and_what_was_left_out(foreign: Record, capsys: pytest.CaptureFixture[str]) -> None:
    _, listed, _ = said(capsys, "runs", "ls")
    short = foreign.id.rpartition("-")[2][:4]
    assert (short in listed, "finished" in listed) == (True, True)
    _, shown, _ = said(capsys, "runs", "show", foreign.id)
    assert ("OneMatrix" in shown, "final.kl.W" in shown) == (True, True)
    said(capsys, "report", foreign.id, "-o", "theirs.html")
    page = Path("theirs.html").read_text()
    assert "needs code of the record, which is not trusted here" in page
    assert page.count("<img") == 1


def test_the_lab_shows_curves_and_says_why_there_is_no_more(foreign: Record, canary: Path) -> None:
    listed = RunReader(foreign.folder.parent).runs()["runs"]
    assert [(line["id"], line["state"], line["title"]) for line in listed] == [
        (foreign.id, "finished", "bigram-onematrix")
    ]
    with served(foreign.folder.parent) as lab, lab.page() as page:
        page.say("view", run=foreign.id, hz=20.0)
        assert len(page.hear("rows")["columns"]["kl.W"]) == len(foreign.table)
        assert page.about[foreign.id]["pictures"] == []
        assert "is not trusted here" in page.hear("error")["message"]
        refused = page.ask("start", run=foreign.id)
        assert (refused["ok"], "is not trusted here" in refused["error"]) == (False, True)
    assert not canary.exists()


def test_code_runs_only_once_a_person_trusts_it(
    foreign: Record, canary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Untrusted):
        _ = foreign.spec
    for command in (("runs", "check"), ("runs", "resume"), ("replay",)):
        code, out, err = said(capsys, *command, foreign.id)
        assert (code, out, canary.exists()) == (2, "", False)
        assert all(part in err for part in ("code/theirs.py (sha256 ", "with your rights", "--trust"))
    assert said(capsys, "runs", "check", foreign.id, "--trust")[0] == 0
    assert canary.exists()
    assert said(capsys, "runs", "check", foreign.id)[0] == 0  # once is enough


def test_code_that_the_spec_does_not_name_never_runs(
    foreign: Record, canary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (foreign.folder / "code" / "theirs.py").write_text(CANARY + "OneMatrix = dict")
    (foreign.folder / "code" / "more.py").write_text(CANARY)
    code, _, err = said(capsys, "runs", "check", foreign.id, "--trust")
    assert (code, canary.exists()) == (2, False)
    assert "code/theirs.py is not what spec.json names" in err
    assert list(foreign.code) == ["theirs.py"]


def test_a_name_that_leaves_the_folder_reads_nothing(foreign: Record) -> None:
    text = (foreign.folder / "spec.json").read_text().replace("theirs.py", "../../secret.py")
    (foreign.folder / "spec.json").write_text(text)
    (foreign.folder.parent.parent / "secret.py").write_text("secret = 1")
    assert Record(foreign.folder).code == {}
    (foreign.folder / "digest.json").unlink()
    with pytest.raises(EngramError, match=r"code/../../secret\.py, which spec\.json names, is missing"):
        refuse_damaged(Record(foreign.folder))


@pytest.mark.parametrize("change", ["no code", "no seed", "odd seed", "no curves"])
def test_a_report_is_made_of_whatever_there_is(
    change: str, foreign: Record, canary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (foreign.folder / "digest.json").unlink()
    spec = foreign.spec_json | ({"seed": [1]} if change == "odd seed" else {})
    if change == "no code":
        shutil.rmtree(foreign.folder / "code")
    if change == "no curves":
        (foreign.folder / "rows.jsonl").write_text('{"step": 0, "loss": 1.0}\n')
    if change == "no seed":
        del spec["seed"]
    (foreign.folder / "spec.json").write_text(json.dumps(spec))
    code, _, err = said(capsys, "report", foreign.id)
    assert (code, canary.exists()) == (0, False), err


def test_trust_that_cannot_be_noted_is_one_line(
    foreign: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    code, _, err = said(capsys, "runs", "check", foreign.id, "--trust")
    assert (code, "cannot note what you trust" in err) == (2, True)


def test_own_runs_are_trusted_when_they_are_made(home: Path, canary: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MODEL.read_text())
    (record,) = api.run(str(file), scale="smoke").records
    assert Record(record.folder).may_run
    assert Record(record.folder).spec == record.spec


def test_what_others_could_write_is_not_believed(foreign: Record, tmp_path: Path) -> None:
    foreign.trust()
    assert foreign.may_run
    folder = tmp_path / "nobody" / "engram" / "trusted"
    assert folder.stat().st_mode & 0o777 == 0o700
    elsewhere = folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(elsewhere)
    assert not foreign.may_run


def test_a_person_at_the_terminal_is_asked(foreign: Record, canary: Path) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "engram", "runs", "check", foreign.id]
    process = subprocess.Popen(words, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=os.environ)
    os.close(theirs)
    told = b""
    while b"[y/N]" not in told:
        told += os.read(ours, 4096)
    assert all(part in told for part in (b"code/theirs.py (sha256 ", b"with all your rights"))
    assert not canary.exists()
    os.write(ours, b"y\n")
    assert (process.communicate()[0].count(b"agree"), process.returncode, canary.exists()) == (1, 0, True)
    os.close(ours)


def test_a_hostile_zip_is_listed_and_left_alone(home: Path, canary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.mkdir()
    name = "bigram-evil-s0-0123456789"
    spec = '{"class": "Evil", "file": "evil.py", "sha256_of_file": "0", "revision": 1}'
    with zipfile.ZipFile(home / "evil.zip", "w") as archive:
        archive.writestr(f"{name}/spec.json", spec)
        archive.writestr(f"{name}/code/evil.py", CANARY)
        archive.writestr("../outside/spec.json", spec)
    assert said(capsys, "runs", "ls")[0] == 0
    with pytest.raises(EngramError):
        _ = api.load(name).spec
    assert not canary.exists()
    assert not (home.parent / "outside").exists()
