"""A run whose folder is removed or moved while it is computed says so at once, and writes nothing more."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from engram.engines.local import Local
from engram.errors import EngramError
from engram.runner.execute import execute
from engram.specs import Spec, Train
from engram.specs.spec import run_id

Tiny = Callable[..., Train]
AWAY = {"removed": shutil.rmtree, "moved": lambda folder: folder.rename(folder.with_name("elsewhere"))}


@pytest.mark.parametrize("how", AWAY)
@pytest.mark.parametrize("at", [0, 2, 3, 20], ids=["first row", "before a snapshot", "between", "last row"])
def test_it_says_so_at_the_next_row(tiny: Tiny, tmp_path: Path, how: str, at: int) -> None:
    spec, seen = tiny(steps=20), []

    def see(row: dict[str, object]) -> None:
        seen.append(row["step"])
        if row["step"] == at:
            AWAY[how](tmp_path / run_id(spec))

    with pytest.raises(EngramError, match=f"the folder of run {run_id(spec)} was removed; nothing more is written"):
        execute(spec, tmp_path, on_row=see)
    assert seen[-1] == at
    assert not (tmp_path / run_id(spec)).exists()


def test_a_folder_that_another_one_took_the_place_of(tiny: Tiny, tmp_path: Path) -> None:
    spec = tiny(steps=20)
    folder = tmp_path / run_id(spec)

    def see(row: dict[str, object]) -> None:
        if row["step"] == 3:
            folder.rename(tmp_path / "elsewhere")
            shutil.copytree(tmp_path / "elsewhere", folder)

    with pytest.raises(EngramError, match="was removed"):
        execute(spec, tmp_path, on_row=see)
    assert (folder / "rows.jsonl").read_bytes().count(b"\n") == 4


def test_it_is_not_saved_either(tiny: Tiny, tmp_path: Path) -> None:
    spec, rows = tiny(steps=20), []

    def stop() -> bool:
        if len(rows) == 3:
            shutil.rmtree(tmp_path / run_id(spec))
        return len(rows) == 3

    with pytest.raises(EngramError, match="was removed"):
        execute(spec, tmp_path, on_row=rows.append, stop=stop)
    assert not (tmp_path / run_id(spec)).exists()


def test_the_other_runs_of_a_sweep_go_on(tiny: Tiny, tmp_path: Path) -> None:
    gone, stays = tiny(steps=3000), tiny(seed=1, steps=5)

    def see(spec: Spec, row: dict[str, object]) -> None:
        if spec == gone and (tmp_path / run_id(gone)).exists():
            (tmp_path / run_id(gone)).rename(tmp_path / "elsewhere")

    outcome = Local(tmp_path).run([gone, stays], see)
    assert [record.id for record in outcome.records] == [run_id(stays)]
    assert "was removed" in str(outcome.failed[run_id(gone)])
    assert not (tmp_path / run_id(gone)).exists()
