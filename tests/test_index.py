"""What is remembered of a home is what reading it anew would say; anything that changes is read again."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import pytest

from engram import experiments
from engram.claims import Measure
from engram.claims.experiment import Experiment
from engram.claims.ledger import Index, _seedless, ledger
from engram.cli.decided import decided
from engram.errors import EngramError
from engram.records import Record
from engram.records.bundle import bundle
from engram.records.index import lines, overview
from engram.records.remembered import Memory
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.encode import digest_of
from engram.specs.spec import run_id

Tiny = Callable[..., Train]


@pytest.fixture
def filled(home: Path, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two finished runs, one of them in a bundle; its own cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    execute(tiny(seed=0), home)
    second = execute(tiny(seed=1), home)
    bundle([second], home / "second.zip")
    shutil.rmtree(second.folder)
    return home


def read_anew(home: Path) -> list[dict[str, object]]:
    return [asdict(line) for line in lines(home, reread=True)]


def test_what_is_remembered_is_what_is_there(filled: Path, tiny: Tiny) -> None:
    first = [asdict(line) for line in lines(filled)]
    assert [asdict(line) for line in lines(filled)] == first == read_anew(filled)
    assert {line["today"] for line in first} == {run_id(tiny(seed=0)), run_id(tiny(seed=1))}
    assert {line["seedless"] for line in first} == {digest_of(tiny(seed=0))}
    for line in lines(filled):
        assert Record(line.place(filled)).spec == tiny(seed=line.seed)


def test_what_was_read_once_is_not_read_again(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = lines(filled)
    monkeypatch.setattr("engram.records.index.line_of", None)
    assert lines(filled) == before


def change_rows(folder: Path) -> None:
    (folder / "rows.jsonl").write_bytes((folder / "rows.jsonl").read_bytes().replace(b"0", b"1", 1))


def keep_the_time(folder: Path) -> None:
    """The same size and the same time of change, as a careful forger would leave it."""
    about = (folder / "rows.jsonl").stat()
    change_rows(folder)
    os.utime(folder / "rows.jsonl", ns=(about.st_atime_ns, about.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], object]] = {
    "rows": change_rows,
    "rows, time kept": keep_the_time,
    "spec": lambda folder: (folder / "spec.json").write_text("{}"),
    "no digest": lambda folder: (folder / "digest.json").unlink(),
    "gone": shutil.rmtree,
    "a link": lambda folder: (folder.rename(folder.parent.parent / "x"), folder.symlink_to(folder.parent.parent / "x")),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_changes_is_read_again(change: Callable[[Path], object], filled: Path, tiny: Tiny) -> None:
    before = overview(filled)
    change(filled / run_id(tiny(seed=0)))
    assert [asdict(line) for line in lines(filled)] == read_anew(filled)
    assert overview(filled) != before or change is CHANGES["a link"]


def test_a_link_to_a_bundle_is_read_again_when_the_bundle_changes(filled: Path, tiny: Tiny, tmp_path: Path) -> None:
    elsewhere = (filled / "second.zip").rename(tmp_path / "elsewhere.zip")
    (filled / "second.zip").symlink_to(elsewhere)
    assert len(lines(filled)) == 2
    bundle([execute(tiny(seed=7), tmp_path / "other")], elsewhere)
    assert run_id(tiny(seed=7)) in {line.id for line in lines(filled)}


def test_a_damaged_or_older_memory_is_made_anew(filled: Path) -> None:
    right, memory = lines(filled), Memory("index", filled)
    whole = memory.path.read_text()
    forged = json.loads(whole)
    next(iter(forged["body"].values()))[1][0]["state"] = "stale"
    other = whole.replace("finished", "diverged")
    for content in ("", "{", "[]", '{"version": 1}', whole[:-50], other, json.dumps(forged), "[" * 99_999):
        memory.path.write_text(content)
        assert lines(filled) == right
    memory.path.unlink()
    memory.path.mkdir()
    assert lines(filled) == right


def test_nobody_else_can_write_what_is_believed(filled: Path) -> None:
    lines(filled)
    folder = Memory("index", filled).path.parent
    folder.chmod(0o777)
    lines(filled)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_the_ledger_is_decided_once(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    homes = [filled]
    first = decided(("birth.fig4-left",), homes)
    assert decided(("birth.fig4-left",), homes, reread=True) == first
    monkeypatch.setattr("engram.claims.ledger.ledger", None)
    assert decided(("birth.fig4-left",), homes) == first
    with pytest.raises(EngramError, match="nothing begins with nonsense"):
        decided(("nonsense",), homes)


def experiment_of(make: Callable[[int], Train]) -> Experiment:
    def claims(records: list[Record]) -> list[tuple[str, list[Measure]]]:
        return [("mine.loss", [Measure.over_seeds("loss", [record.last("loss") for record in records], low=0.0)])]

    def specs(scale: str, seeds: list[int]) -> list[Train]:
        return [make(seed) for seed in seeds]

    module = ModuleType("mine")
    vars(module).update(specs=specs, CLAIMS={"mine.loss": "There is a loss."}, claims=claims)
    return Experiment("mine", module, "engram run mine")


def test_a_record_that_rots_on_disk_leaves_its_claims_missing(home: Path, tiny: Tiny) -> None:
    """The index believes sizes and times; rows that decide are compared with their digest when they are read.

    The seeds that are left do not decide instead: nobody would see that one is gone.
    """
    records = [execute(tiny(seed=seed), home) for seed in range(3)]
    index = Index.of([home])
    change_rows(records[1].folder)
    (entry,) = ledger([experiment_of(lambda seed: tiny(seed=seed))], index)
    assert (entry.claim, entry.verdict) == (None, "missing")
    assert [(broken.record, "does not match the digest" in broken.why) for broken in index.unreadable] == [
        (records[1].id, True)
    ]
    why = entry.to_json()["why_missing"]
    assert f"{records[1].id}: rows.jsonl does not match the digest" in why
    assert f"engram runs rm {records[1].id} and run: engram run mine --scale paper --seeds 3" in why
    shutil.rmtree(records[1].folder)
    (entry,) = ledger([experiment_of(lambda seed: tiny(seed=seed))], Index.of([home]))
    assert entry.claim is not None
    assert entry.claim.n == 2, "a record that a user has removed is no damage"


def test_another_record_of_the_same_spec_takes_the_place_of_a_damaged_one(home: Path, tiny: Tiny) -> None:
    """Its rows are the same rows; the damage is still named."""
    record = execute(tiny(), home)
    bundle([record], home.parent / "shelf" / "same.zip")
    homes = [home, home.parent / "shelf"]
    for index in (Index.of(homes), None):
        change_rows(record.folder)
        found = index or Index.of(homes)
        (entry,) = ledger([experiment_of(lambda seed: tiny(seed=seed))], found)
        assert entry.claim is not None
        assert [broken.record for broken in found.unreadable] == [record.id]


def test_specs_are_built_only_for_seeds_that_have_records(home: Path, tiny: Tiny) -> None:
    asked = []
    execute(tiny(seed=4), home)
    execute(tiny(seed=5, steps=7), home)  # of another kind
    (entry,) = ledger([experiment_of(lambda seed: (asked.append(seed), tiny(seed=seed))[1])], Index.of([home]))
    assert entry.claim is not None
    assert set(asked) == {1, 2, 4}


@pytest.mark.parametrize("name", experiments.names())
def test_what_two_seeds_share_every_seed_has(name: str) -> None:
    """So a seed without a record of it need not be asked."""
    experiment = experiments.find(name)
    for scale in ("quick", "paper"):
        specs = {seed: experiment.specs(scale, [seed]) for seed in (1, 2, 0, 7, 10_000)}
        kinds = [{_seedless(spec) for spec in specs[seed] if spec.seed == seed} for seed in specs]
        assert all(kinds[0] & kinds[1] <= other for other in kinds)


def test_lists_load_no_torch(filled: Path, tiny: Tiny) -> None:
    overview(filled)
    program = "import sys; from engram.cli.main import main\ntry: main({words})\n"
    program += "except SystemExit: print('torch' in sys.modules)"
    for words in (["runs", "ls"], ["runs", "show", run_id(tiny(seed=0))]):
        code = program.format(words=words)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "False", done.stderr
