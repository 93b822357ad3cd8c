"""Runs side by side and on their way: diff with curves and births, CSV, Parquet, and folders for another machine."""

import csv
import importlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engram.errors import EngramError
from engram.records import Record, moving
from engram.records.audit import refuse_damaged
from engram.records.bundle import bundle
from engram.records.compare import births_beside, curves_beside
from engram.records.moving import export_folder, import_runs, parquet_bytes, table_bytes
from engram.runner.execute import execute
from engram.specs import Train
from engram.tasks import Bigram, corpus

Tiny = Callable[..., Train]
Said = Callable[..., tuple[int, str, str]]


def answer(said: Said, *words: str) -> dict[str, Any]:
    code, out, err = said(*words, "--json")
    assert code == 0, err
    return json.loads(out)


def test_curves_and_births_are_compared_and_drawn(tiny: Tiny, home: Path, said: Said) -> None:
    one, two = execute(tiny(), home), execute(tiny(lr=0.3), home)
    found = answer(said, "runs", "diff", one.id, two.id)
    assert "plan.optimiser.lr" in {row["field"] for row in found["differences"]}
    gaps = {row["column"]: row for row in found["curves"]}
    assert gaps["loss"]["apart from step"] == 1, "at step 0 nothing was learned yet"
    at = gaps["loss"]["at step"]
    assert gaps["loss"]["largest gap"] == pytest.approx(abs(one.rows[at]["loss"] - two.rows[at]["loss"]), rel=1e-6)
    assert {row["memory"] for row in found["births"]} >= {"W_O2", "W_K2"}
    assert {Path(path).suffix for path in found["figures"]} >= {".png", ".svg"}
    assert all(Path(path).exists() for path in found["figures"])
    code, out, _ = said("runs", "diff", one.id, two.id)
    assert code == 0
    assert "figure  runs/figures/diff-" in out
    assert curves_beside(one, one) == []
    assert births_beside(one, two)[0].keys() == {"memory", "a", "b"}
    assert answer(said, "runs", "diff", one.id, one.id)["figures"] == []
    assert f"are the same run, {one.id}" in said("runs", "diff", one.id, one.id[-6:])[2]


def test_rows_as_csv(tiny: Tiny, home: Path, said: Said) -> None:
    record = execute(tiny(), home)
    answer(said, "runs", "tag", record.id, "good")
    written = answer(said, "runs", "export", record.id, "--format", "csv", "--into", "out")["exported"]
    assert [Path(path).name for path in written] == [f"{record.id}.csv", "runs.csv"]
    with open(written[0], newline="") as file:
        rows = list(csv.DictReader(file))
    assert [{name: float(cell) for name, cell in row.items() if cell} for row in rows] == record.rows
    assert rows[3]["step"] == "3"
    with open(written[1], newline="") as file:
        (about,) = csv.DictReader(file)
    assert (about["run"], about["tags"], about["set.task.K"]) == (record.id, "good", "3")
    assert float(about["final.loss"]) == record.rows[-1]["loss"]


def test_parquet_is_an_extra(tiny: Tiny, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = execute(tiny(), home)
    written: dict[str, Any] = {}
    arrow = {
        "pyarrow": SimpleNamespace(array=lambda values, from_pandas: list(values), table=dict),
        "pyarrow.parquet": SimpleNamespace(write_table=lambda table, file: written.update(table)),
    }

    def found(name: str) -> Any:
        return arrow[name]

    monkeypatch.setattr(moving.importlib, "import_module", found)
    parquet_bytes(record)
    assert written["loss"] == [row["loss"] for row in record.rows]

    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(moving.importlib, "import_module", missing)
    with pytest.raises(EngramError, match=r"pip install 'engram\[parquet\]'"):
        parquet_bytes(record)


def test_parquet_is_read_back_where_there_is_pyarrow(tiny: Tiny, home: Path) -> None:
    pytest.importorskip("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    record = execute(tiny(), home)
    (home / "rows.parquet").write_bytes(parquet_bytes(record))
    assert parquet.read_table(home / "rows.parquet")["loss"].to_pylist() == [row["loss"] for row in record.rows]


def test_another_machine_takes_in_what_was_exported(
    tiny: Tiny, home: Path, said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "my.txt"
    text.write_text("abracadabra, said the wizard")
    task = Bigram.model_validate({"corpus": str(text), "K": 3, "T": 24})
    record = execute(tiny().model_copy(update={"task": task}), home)
    answer(said, "runs", "note", record.id, "for you")
    answer(said, "runs", "export", record.id, "--into", "out")
    began = record.about.began
    text.unlink()
    corpus._known.clear()
    monkeypatch.setenv("ENGRAM_HOME", str(tmp_path / "elsewhere"))
    assert answer(said, "runs", "import", "out") == {"imported": [record.id], "here": []}
    assert answer(said, "runs", "import", "out") == {"imported": [], "here": [record.id]}
    there = Record(tmp_path / "elsewhere" / record.id)
    refuse_damaged(there)
    assert there.rows == record.rows
    assert there.model().weights.keys() == record.model().weights.keys()
    assert (there.about.note, there.about.began) == ("for you", began)
    assert not (there.folder / "lock").exists()


def test_one_folder_and_a_bundle_are_taken_in_too(tiny: Tiny, home: Path, tmp_path: Path) -> None:
    records = [execute(tiny(seed), home) for seed in (0, 1)]
    single = export_folder(records[0], tmp_path / "out")
    packed = bundle(records, tmp_path / "both.zip")
    assert import_runs(single, tmp_path / "one") == ([records[0].id], [])
    taken, _ = import_runs(packed, tmp_path / "two")
    assert sorted(taken) == sorted(record.id for record in records)
    assert Record(tmp_path / "two" / records[1].id).rows == records[1].rows


DAMAGE: dict[str, Callable[[Path], object]] = {
    "rows": lambda folder: (folder / "rows.jsonl").write_text("{}\n"),
    "foreign": lambda folder: (folder / "thesis.tex").touch(),
    "link": lambda folder: (folder / "state.safetensors").symlink_to("/etc/hostname"),
    "name": lambda folder: folder.rename(folder.with_name("bigram-simplified-s0-0000000000")),
    "no name": lambda folder: folder.rename(folder.with_name("website")),
    "no spec": lambda folder: ((folder / "spec.json").unlink(), (folder / "lock").touch()),
    "empty": shutil.rmtree,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_is_damaged_or_no_run_is_not_taken_in(
    tiny: Tiny, home: Path, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    whole = export_folder(execute(tiny(1), home), tmp_path / "out")
    damage(export_folder(execute(tiny(0), home), tmp_path / "out"))
    if damage is DAMAGE["empty"]:
        shutil.rmtree(whole)
    with pytest.raises(EngramError):
        import_runs(tmp_path / "out", tmp_path / "there")
    assert not list((tmp_path / "there").glob("*")), "all or none"


def test_another_state_of_a_run_is_not_written_over(tiny: Tiny, home: Path, tmp_path: Path) -> None:
    record = execute(tiny(), home)
    exported = export_folder(record, tmp_path / "out")
    (record.folder / "digest.json").unlink()
    with pytest.raises(EngramError, match="another state of run"):
        import_runs(exported, home)
    with pytest.raises(EngramError, match="is there already"):
        export_folder(record, tmp_path / "out")
    assert table_bytes(record).startswith(b"step,loss")
