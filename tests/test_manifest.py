"""The manifest of a home: whatever is forged, damaged, lost or added is named, and its claims have no verdict."""

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engram import api
from engram.claims.ledger import Index
from engram.cli.main import main
from engram.errors import EngramError
from engram.experiments import find
from engram.records import files, manifest
from engram.records.bundle import bundle
from engram.records.files import COMMITTED
from engram.records.index import lines
from engram.records.shelf import all_records
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.spec import run_id
from test_recheck import forge

Tiny = Callable[..., Train]
PAPER, QUICK = "facts.capacity-paper.zip", "facts.capacity-quick.zip"
ROWS = "rows.jsonl.columns.xz"


def test_the_committed_records_are_those_of_the_manifest() -> None:
    """After records were added or made again: engram runs manifest."""
    assert manifest.faults(COMMITTED, lines(COMMITTED)) == []
    listed = manifest.read(COMMITTED) or {}
    assert {name.rpartition("/")[2] for name in listed if not name.endswith(".zip")} == {
        record.id for record in all_records(COMMITTED)
    }
    assert {name for name in listed if name.endswith(".zip")} == {path.name for path in COMMITTED.glob("*.zip")}


@pytest.fixture
def shelf(home: Path, tiny: Tiny) -> Path:
    """Two records in a bundle, one as a folder, and a manifest."""
    records = [execute(tiny(seed=seed), home) for seed in range(3)]
    bundle(records[:2], home / "two.zip")
    for record in records[:2]:
        shutil.rmtree(record.folder)
    manifest.write(home)
    return home


def change_zip(path: Path, change: Callable[[str, bytes], bytes]) -> None:
    """The same zip, some of whose files hold something else."""
    with zipfile.ZipFile(path) as archive:
        parts = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            if changed := change(name, content):
                archive.writestr(name, changed)


def flip(path: Path, name: str) -> None:
    """One bit in the middle of a file in a zip."""
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(name)
    content[info.header_offset + 30 + len(info.filename) + info.compress_size // 2] ^= 4
    path.write_bytes(bytes(content))


def forge_in_zip(path: Path, id: str, tmp: Path, step: int, column: str) -> None:
    """Out of the zip, a number changed, digests mended, and in again."""
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp)
    (tmp / id / "rows.jsonl").write_bytes(files.read(tmp / id, "rows.jsonl"))
    for packed in (tmp / id).glob("rows.jsonl.*"):
        packed.unlink()
    forge(tmp / id, step, column)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(file for file in tmp.rglob("*") if file.is_file()):
            archive.write(file, file.relative_to(tmp).as_posix())


def test_what_is_listed_is_believed(shelf: Path, tiny: Tiny) -> None:
    index = Index.of([shelf])
    assert (set(index.found), index.unreadable) == ({run_id(tiny(seed=seed)) for seed in range(3)}, [])
    text = (shelf / "MANIFEST").read_text()
    assert len(text.splitlines()) == 1 + 3 + 1
    manifest.write(shelf)
    assert (shelf / "MANIFEST").read_text() == text


Damage = Callable[[Path, list[str]], object]
DAMAGE: dict[str, tuple[Damage, list[int], str]] = {  # what is done; which seeds are left; what is said
    "a forged folder": (lambda home, ids: forge(home / ids[2], 3), [0, 1], "does not match MANIFEST"),
    "a forged bundle": (
        lambda home, ids: forge_in_zip(home / "two.zip", ids[0], home.parent / "x", 3, "loss"),
        [1, 2],
        "does not match MANIFEST",
    ),
    "a flipped bit in rows": (lambda home, ids: flip(home / "two.zip", f"{ids[0]}/{ROWS}"), [1, 2], "rows.jsonl"),
    "a flipped bit in a Spec": (lambda home, ids: flip(home / "two.zip", f"{ids[1]}/spec.json"), [0, 2], "spec.json"),
    "a flipped bit elsewhere": (
        lambda home, ids: flip(home / "two.zip", f"{ids[1]}/env.json"),
        [0, 1, 2],
        "the bytes of two.zip are not those in MANIFEST",
    ),
    "no zip any more": (
        lambda home, ids: (home / "two.zip").write_bytes(b"PK"),
        [2],
        "two.zip cannot be read as a zip",
    ),
    "a deleted bundle": (lambda home, ids: (home / "two.zip").unlink(), [2], "two.zip is in MANIFEST but not on disk"),
    "a deleted folder": (lambda home, ids: shutil.rmtree(home / ids[2]), [0, 1], "is in MANIFEST but not on disk"),
    "one left out of a bundle": (
        lambda home, ids: change_zip(home / "two.zip", lambda name, old: b"" if name.startswith(ids[0]) else old),
        [1, 2],
        "is in MANIFEST but not on disk",
    ),
    "not listed": (
        lambda home, ids: (home / "MANIFEST").write_text(
            "".join(f"{line}\n" for line in (home / "MANIFEST").read_text().splitlines() if ids[2] not in line)
        ),
        [0, 1],
        "is not in MANIFEST; list it with `engram runs manifest`",
    ),
    "an unreadable manifest": (
        lambda home, ids: (home / "MANIFEST").write_text("nonsense\n"),
        [0, 1, 2],
        "MANIFEST is unreadable",
    ),
}


@pytest.mark.parametrize(("damage", "left", "says"), DAMAGE.values(), ids=DAMAGE)
def test_whatever_differs_from_the_manifest_is_named(
    damage: Damage, left: list[int], says: str, shelf: Path, tiny: Tiny
) -> None:
    assert Index.of([shelf]).unreadable == []
    ids = [run_id(tiny(seed=seed)) for seed in range(3)]
    damage(shelf, ids)
    index = Index.of([shelf])
    assert set(index.found) == {ids[seed] for seed in left}
    assert set(index.faults) >= set(ids) - set(index.found)
    (told,) = index.unreadable
    assert says in told.why


def test_check_compares_with_the_manifest(shelf: Path, tiny: Tiny) -> None:
    ids = [run_id(tiny(seed=seed)) for seed in range(3)]
    for record in all_records(shelf):
        assert api.recheck(record)["ok"]
    forge(shelf / ids[2], 3)
    forge_in_zip(shelf / "two.zip", ids[0], shelf.parent / "x", 3, "loss")
    found = {record.id: record for record in all_records(shelf)}
    assert api.recheck(found[ids[1]])["ok"]
    for id in (ids[0], ids[2]):
        with pytest.raises(EngramError, match="does not match MANIFEST: it was changed"):
            api.recheck(found[id])


def test_the_command_lists_only_what_is_whole(shelf: Path, tiny: Tiny, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as end:
            main(["runs", "manifest", str(shelf), *words])
        return int(end.value.code or 0), "".join(capsys.readouterr())

    new = execute(tiny(seed=9), shelf)
    (shelf / "two.zip").unlink()
    told = json.loads(run("--json")[1])
    assert (told["added"], len(told["removed"]), told["changed"], told["listed"]) == ([new.id], 3, [], 2)
    forge(new.folder, 3)
    assert run()[1].splitlines()[0] == f"changed {new.id}"
    (new.folder / "rows.jsonl").write_text("")
    before = (shelf / "MANIFEST").read_text()
    code, said = run()
    assert (code, "does not match the digest" in said, (shelf / "MANIFEST").read_text()) == (2, True, before)


@pytest.fixture
def committed(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The committed records of an experiment that has them at both scales; here one seed at paper scale is enough."""
    monkeypatch.setitem(find("facts.capacity").module.SEEDS, "paper", 1)
    folder = tmp_path / "committed"
    folder.mkdir()
    for name in (PAPER, QUICK):
        shutil.copy(COMMITTED / name, folder)
    monkeypatch.setattr("engram.records.files.COMMITTED", folder)
    manifest.write(folder)
    return folder


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any], str]:
    """What a command says of the experiment: exit code, the answer, what is said beside it."""
    with pytest.raises(SystemExit) as end:
        main([words[0], "facts.capacity", "--json", *words[1:]])
    out, err = capsys.readouterr()
    return int(end.value.code or 0), json.loads(out), err


def first_rows(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        return next(name for name in archive.namelist() if "/rows.jsonl" in name)


def first_record(path: Path) -> str:
    return first_rows(path).partition("/")[0]


BREAK: dict[str, Callable[[Path, Path], object]] = {
    "a forged row": lambda path, tmp: forge_in_zip(path, first_record(path), tmp, 1, "accuracy"),
    "a flipped bit": lambda path, tmp: flip(path, first_rows(path)),
    "a deleted bundle": lambda path, tmp: path.unlink(),
}


@pytest.mark.parametrize("spoil", BREAK.values(), ids=BREAK)
def test_a_spoiled_record_is_never_replaced_by_another_scale(
    spoil: Callable[[Path, Path], object],
    committed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The records at quick scale are whole, but they are not what decided."""
    monkeypatch.setattr(api, "run_specs", lambda specs, watch, where: None)  # other seeds may be wanted, too: not here
    code, before, said = told(capsys, "ledger")
    assert (code, said, before["unreadable"]) == (0, "", [])
    assert {(claim["scale"], claim["why_missing"]) for claim in before["claims"]} == {("paper", None)}
    named = first_record(committed / PAPER)
    spoil(committed / PAPER, tmp_path / "x")
    for command, wanted in (("ledger", 0), ("verify", 1)):
        code, now, said = told(capsys, command)
        assert code == wanted
        assert {(claim["scale"], claim["verdict"], claim["n"]) for claim in now["claims"]} == {(None, "missing", None)}
        (broken,) = now["unreadable"]
        assert broken["record"] in (named, PAPER)
        assert broken["record"] in said
        assert "DAMAGE: 1 record or bundle is damaged, lost or not in the manifest, and decides nothing" in said
        for claim in now["claims"]:
            assert claim["id"] in said
            assert broken["record"] in claim["why_missing"]
            assert "restore the file, or run: engram run facts.capacity --scale paper --seeds" in claim["why_missing"]


def test_every_form_of_the_ledger_says_why(committed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (committed / PAPER).unlink()
    forms = [["ledger", "facts.capacity", *words] for words in ((), ("--markdown",), ("--html", "l.html"))]
    for words in forms:
        with pytest.raises(SystemExit):
            main(words)
        out, err = capsys.readouterr()
        shown = Path("l.html").read_text() if "--html" in words else out
        assert f"{PAPER} is in MANIFEST but not on disk" in shown
        assert PAPER in err
    manifest.write(committed)
    _, now, said = told(capsys, "ledger")
    assert ({claim["scale"] for claim in now["claims"]}, said) == ({"quick"}, ""), "what nobody promised is not missed"


def test_committed_records_need_a_manifest(committed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (committed / "MANIFEST").unlink()
    _, now, said = told(capsys, "ledger")
    assert now["unreadable"][0]["record"] == "MANIFEST"
    assert "MANIFEST is missing; restore it" in said


def test_a_run_of_ones_own_takes_the_place_of_a_lost_record(
    committed: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As if the command that mends it had been given."""
    home.mkdir()
    shutil.move(committed / PAPER, home / "mine.zip")
    _, now, said = told(capsys, "ledger")
    assert {claim["scale"] for claim in now["claims"]} == {"paper"}
    assert PAPER in said, "it is still named"
