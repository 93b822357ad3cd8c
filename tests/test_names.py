"""Identity hangs on stable names: wherever a class or a law is moved, every committed record is found as before."""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import engram
from engram.claims.ledger import Index
from engram.records import files
from engram.records.files import COMMITTED
from engram.records.shelf import all_records
from engram.specs.spec import run_id
from engram.values import LAWS, NAMED, Value, class_named, import_rooms, law, law_named

ROOT = Path(__file__).parent.parent
IDS = (ROOT / "tests/record_ids.txt").read_text().split()


def every_class(kind: type[Value]) -> list[type[Value]]:
    return [found for sub in kind.__subclasses__() for found in (sub, *every_class(sub))]


def test_every_class_that_can_be_stored_has_a_name_of_its_own() -> None:
    import_rooms()
    ours = [kind for kind in every_class(Value) if kind.__module__.startswith("engram.")]
    bases = {base for kind in ours for base in kind.__mro__[1:]}
    assert {kind.__name__ for kind in ours if kind.stable_name is None and kind not in bases} == set()
    assert all(NAMED[kind.stable_name] is kind for kind in ours if kind.stable_name)


def test_a_name_stands_for_one_thing() -> None:
    import_rooms()
    with pytest.raises(TypeError, match=r"is taken by engram\.tasks\.bigram\.Bigram"):
        type("Other", (Value,), {"__module__": __name__}, name="tasks.bigram.Bigram")
    with pytest.raises(TypeError, match=r"is taken by engram\.theory\.hopfield\.retrieval"):
        law("hopfield.retrieval")(test_a_name_stands_for_one_thing)  # type: ignore[type-var]
    assert class_named("tasks.bigram.Nothing") is law_named("hopfield.nothing") is None


def test_a_subclass_does_not_inherit_the_name() -> None:
    bigram = class_named("tasks.bigram.Bigram")
    assert bigram is not None
    assert type("Mine", (bigram,), {"__module__": __name__}).stable_name is None  # type: ignore[attr-defined]


def test_every_law_says_what_its_sizes_are() -> None:
    import_rooms()
    for name, function in LAWS.items():
        parameters = inspect.signature(function).parameters
        assert {"draws", "seed"} <= set(parameters), name
        assert {p.annotation for p in parameters.values()} <= {int, float, str, bool}, name


def test_committed_records_keep_their_ids() -> None:
    """record_ids.txt holds them all: an id that changes is a record that nobody finds again."""
    records = all_records(COMMITTED)
    assert sorted({record.id for record in records}) == IDS
    assert all(run_id(record.spec) == record.id for record in records if not record.stale)


def test_checks_that_became_typed_are_listed_with_both_ids() -> None:
    """Their arguments are words and numbers now; the records were made again, with the same rows."""
    lines = (ROOT / "tests/renamed_records.csv").read_text().splitlines()[1:]
    old, new = zip(*(line.split(",") for line in lines), strict=True)
    assert len(set(old)) == len(set(new)) == 364
    assert set(new) <= set(IDS)
    assert not set(old) & set(IDS)


MOVED = {  # a task, a model, a plan, a Spec, laws of both kinds
    "tasks.bigram": "tasks.letters",
    "models.simplified": "models.two_heads",
    "learning.plan": "learning.recipe",
    "specs.spec": "specs.description",
    "theory.hopfield": "theory.attractors",
    "laws.steps": "theory.population_steps",
}


def move_modules(package: Path) -> None:
    """What an editor's "rename module" does: files move, and imports follow."""
    for old, new in MOVED.items():
        shutil.move(package / f"{old.replace('.', '/')}.py", package / f"{new.replace('.', '/')}.py")
    for file in package.rglob("*.py"):
        text = file.read_text()
        for old, new in MOVED.items():
            text = re.sub(rf"\bengram\.{re.escape(old)}\b", f"engram.{new}", text)
        file.write_text(text)


def test_moved_modules_lose_no_claim(tmp_path: Path) -> None:
    shutil.copytree(Path(engram.__file__).parent, tmp_path / "engram", ignore=shutil.ignore_patterns("__pycache__"))
    move_modules(tmp_path / "engram")
    command = [sys.executable, "-m", "engram", "ledger", "--committed", "--json"]
    found = []
    for path in (ROOT / "src", tmp_path):
        env = os.environ | {"PYTHONPATH": str(path), "ENGRAM_HOME": str(tmp_path / "runs")}
        done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path, check=True)
        found.append(json.loads(done.stdout))
    assert found[0] == found[1]
    assert {claim["verdict"] for claim in found[1]["claims"]} <= {"agrees", "disagrees", "inconclusive", "missing"}
    assert found[1]["unreadable"] == []


def test_a_record_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Never swallowed: how many, which, why."""
    record = next(record for record in all_records(COMMITTED) if record.folder.parent == COMMITTED)
    shutil.copytree(record.folder, tmp_path / record.id)
    spec = json.loads((tmp_path / record.id / "spec.json").read_text())
    spec["task"]["class"] = "tasks.bigram.Renamed"
    (tmp_path / record.id / "spec.json").write_text(json.dumps(spec))
    sums = {name: files.sha256(files.read(tmp_path / record.id, name)) for name in ("spec.json", "rows.jsonl")}
    (tmp_path / record.id / "digest.json").write_text(json.dumps({"end": "finished"} | sums))
    index = Index.of([tmp_path])
    assert index.found == {}
    (broken,) = index.unreadable
    assert broken.record == record.id
    assert "Renamed" in broken.why
