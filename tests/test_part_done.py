"""Damage to a part-done run: it is named, or it has done no harm. No wrong number ends under a valid digest."""

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engram.errors import EngramError, Interrupted
from engram.learning import Moment
from engram.models import Simplified
from engram.records import Record
from engram.records.fork import fork, steered
from engram.records.state import State
from engram.records.writer import Writer
from engram.runner.execute import execute
from engram.specs import Spec, Train
from engram.specs.events import Freeze
from engram.specs.spec import run_id
from test_search import trained_search

Tiny = Callable[..., Train]
TRIALS = 12


def as_in_the_lab(writer: Writer, moment: Moment) -> None:
    writer.snapshot(moment.step, moment.weights, durable=False)
    writer.checkpoint(moment.step, moment.state)


def stopped(spec: Spec, home: Path, rows: int) -> Path:
    """The folder of a run that was interrupted after so many rows."""
    steps = iter(range(1000))
    with pytest.raises(Interrupted):
        execute(spec, home, stop=lambda: next(steps) == rows, on_moment=as_in_the_lab)
    (folder,) = (path for path in home.iterdir() if path.is_dir())
    return folder


def damaged(folder: Path, name: str, chance: random.Random) -> Iterator[None]:
    """Flips of a bit, cuts, a hole of zeros, lines that change places."""
    content = (folder / name).read_bytes()
    for trial in range(TRIALS):
        broken, at = bytearray(content), chance.randrange(len(content))
        if trial % 4 == 3:
            broken = broken[:at]
        elif trial % 4 == 2:
            broken[at : at + 8] = bytes(len(broken[at : at + 8]))
        else:
            broken[at] ^= 1 << chance.randrange(8)
        (folder / name).write_bytes(bytes(broken))
        yield


def survives(spec: Spec, home: Path, folder: Path, truth: bytes, parent: Path | None = None) -> bool:
    """Whether a damaged run went on to the true rows; if it does not go on, it must say why."""
    copy = home.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(home, copy)
    try:
        if isinstance(spec, Train) and parent is not None:
            fork(Record(copy / parent.name), spec)
        record = execute(spec, copy)
    except EngramError as error:
        said = str(error)
    else:
        assert (record.folder / "rows.jsonl").read_bytes() == truth
        assert all(Record(record.folder).snapshot(step) for step in record.snapshot_steps)
        return True
    assert folder.name in said
    return False


FILES = ["state.safetensors", "rows.jsonl", "timing.jsonl", "env.json", "spec.json", "snapshots/000002.safetensors"]


@pytest.mark.parametrize("name", FILES)
def test_damage_to_a_part_done_training_is_named(tiny: Tiny, tmp_path: Path, name: str) -> None:
    spec, home = tiny(), tmp_path / "runs"
    truth = (execute(spec, tmp_path / "whole").folder / "rows.jsonl").read_bytes()
    folder = stopped(spec, home, 4)
    went_on = [survives(spec, home, folder, truth) for _ in damaged(folder, name, random.Random(name))]
    assert any(went_on) == (name == "timing.jsonl") or name == "spec.json"  # whose layout says nothing


def test_damage_to_a_part_done_search_is_named(tmp_path: Path) -> None:
    """Its rows are its answers: a changed one would lead the search elsewhere."""
    spec, home = trained_search(), tmp_path / "runs"
    truth = (execute(spec, tmp_path / "whole").folder / "rows.jsonl").read_bytes()
    with pytest.raises(ZeroDivisionError):
        execute(spec, home, on_row=lambda row: 1 / (2 - row["step"]))
    (folder,) = home.iterdir()
    assert survives(spec, home, folder, truth)
    for name in ("rows.jsonl", "state.safetensors"):
        kept = (folder / name).read_bytes()
        assert not any(survives(spec, home, folder, truth) for _ in damaged(folder, name, random.Random(name)))
        (folder / name).write_bytes(kept)


@pytest.mark.parametrize("name", ["states/000002.safetensors", "rows.jsonl", "snapshots/000001.safetensors"])
def test_damage_does_not_spread_to_a_fork(tiny: Tiny, tmp_path: Path, name: str) -> None:
    home, spec = tmp_path / "runs", tiny()
    parent = stopped(spec, home, 4)
    branch = steered(spec, Freeze(step=3, matrix="W_O2"))
    truth = (execute(branch, tmp_path / "whole").folder / "rows.jsonl").read_bytes()
    named = home / run_id(branch) if name.startswith("snapshots") else parent  # a snapshot is linked, not read
    assert survives(branch, home, named, truth, parent)
    assert not any(survives(branch, home, named, truth, parent) for _ in damaged(parent, name, random.Random(name)))


def test_a_snapshot_that_was_damaged_while_the_run_went_on_is_not_sealed(tiny: Tiny, home: Path) -> None:
    def damage(writer: Writer, moment: Moment) -> None:
        if moment.step == 5:
            path = writer.folder / "snapshots" / "000002.safetensors"
            path.write_bytes(path.read_bytes()[:-1] + b"x")

    with pytest.raises(EngramError, match=r"snapshots/000002.safetensors does not match its own digest"):
        execute(tiny(), home, on_moment=damage)
    assert not list(home.glob("*/digest.json"))


def test_rows_that_were_damaged_while_the_run_went_on_are_not_sealed(tiny: Tiny, home: Path) -> None:
    def damage(writer: Writer, moment: Moment) -> None:
        if moment.step == 5:
            path = writer.folder / "rows.jsonl"
            with path.open("r+b") as file:
                file.seek(20)
                file.write(b"7")

    with pytest.raises(EngramError, match=r"rows.jsonl does not hold what was written to it"):
        execute(tiny(), home, on_moment=damage)
    assert not list(home.glob("*/digest.json"))


def test_a_state_of_another_model_is_refused(tiny: Tiny, tmp_path: Path) -> None:
    """Whole and with a valid digest, but of other shapes."""
    narrow = tiny().model_copy(update={"model": Simplified(d=8)})
    other, mine = stopped(narrow, tmp_path / "other", 4), stopped(tiny(), tmp_path / "mine", 4)
    for name in ("state.safetensors", "rows.jsonl"):
        shutil.copy(other / name, mine / name)
    with pytest.raises(EngramError, match=r"state.safetensors and rows.jsonl do not belong together"):
        execute(tiny(), tmp_path / "mine")
    unsaid = replace(State.read(other), of="")  # as older versions wrote it: then the shapes tell
    (mine / "state.safetensors").write_bytes(unsaid.to_bytes())
    with pytest.raises(EngramError, match="which is none of the model's"):
        execute(tiny(), tmp_path / "mine")


@pytest.mark.parametrize("name", ["snapshots/000000.safetensors", "snapshots/000002.safetensors"])
def test_a_snapshot_of_another_run_is_not_sealed(tiny: Tiny, tmp_path: Path, name: str) -> None:
    """Whole, with a valid digest and of the right shapes and step, but of another seed."""
    other, mine = stopped(tiny(seed=1), tmp_path / "other", 4), stopped(tiny(), tmp_path / "mine", 4)
    shutil.copy(other / name, mine / name)
    with pytest.raises(EngramError, match=rf"{name} and rows.jsonl do not belong together"):
        execute(tiny(), tmp_path / "mine")
    assert not (mine / "digest.json").exists()


def test_a_snapshot_that_was_lost_is_named_before_the_run_goes_on(tiny: Tiny, tmp_path: Path) -> None:
    mine = stopped(tiny(), tmp_path / "mine", 4)
    (mine / "snapshots" / "000001.safetensors").unlink()
    rows = (mine / "rows.jsonl").read_bytes()
    with pytest.raises(EngramError, match=r"snapshots/000001.safetensors is missing"):
        execute(tiny(), tmp_path / "mine")
    assert (mine / "rows.jsonl").read_bytes() == rows
