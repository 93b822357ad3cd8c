"""Weights of any step: stored where that was requested, computed from the last state before it where it was not."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from engram.errors import EngramError, Interrupted
from engram.learning import SGD, Adam
from engram.records import Record
from engram.records.audit import refuse_damaged
from engram.records.bundle import bundle, pack
from engram.records.forward import state_before
from engram.records.shelf import all_records
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.events import Freeze, Reset
from engram.specs.spec import run_id

Tiny = Callable[..., Train]
Said = Callable[..., tuple[int, str, str]]
PLANS = {
    "momentum": {},
    "no momentum": {"optimiser": SGD(lr=0.2)},
    "adam": {"optimiser": Adam(lr=0.01)},
}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_every_step_is_what_it_was(tiny: Tiny, tmp_path: Path, plan: dict[str, object]) -> None:
    every = execute(tiny(steps=7, **plan), tmp_path / "every", snapshots=1)
    few = execute(tiny(steps=7, **plan), tmp_path / "few")
    assert every.snapshot_steps == list(range(8))
    assert few.snapshot_steps == [0, 1, 2, 4, 7]
    assert every.rows == few.rows
    assert every.id == few.id
    for step in range(8):
        assert same(few.model(step).weights, every.model(step).weights), step
    assert few.memories(3)
    for record in (every, few):
        refuse_damaged(Record(record.folder))


def test_events_are_taken_into_account(tiny: Tiny, tmp_path: Path) -> None:
    events = (Freeze(step=2, matrix="W_O2"), Reset(step=5, matrix="W_K1"))
    spec = tiny(steps=7).model_copy(update={"events": events})
    every, few = execute(spec, tmp_path / "every", snapshots=1), execute(spec, tmp_path / "few")
    for step in (3, 6):
        assert step not in few.snapshot_steps
        assert same(few.model(step).weights, every.model(step).weights)


def test_it_begins_at_the_nearest_state(tiny: Tiny, tmp_path: Path) -> None:
    plain = execute(tiny(steps=7, optimiser=SGD(lr=0.2)), tmp_path)
    assert state_before(plain, plain.train, 6).step == 4
    heavy = execute(tiny(steps=7), tmp_path)
    assert state_before(heavy, heavy.train, 6).step == 0, "weights alone are not the state of such a training"
    rounded = Record(pack(plain, tmp_path / "packed", weights=True))
    assert state_before(rounded, rounded.train, 7).step == 0


def test_a_record_without_weights_has_a_model_at_any_step(tiny: Tiny, tmp_path: Path) -> None:
    record = execute(tiny(), tmp_path / "runs")
    bundle([record], tmp_path / "shelf" / "one.zip")
    (bare,) = all_records(tmp_path / "shelf")
    assert same(bare.model(6).weights, record.model().weights)
    with pytest.raises(EngramError, match=r"no weights stored; model\(6\) computes"):
        bare.model()
    with pytest.raises(EngramError, match=r"has the steps 0 … 6; got 7"):
        bare.model(7)
    with pytest.raises(EngramError, match=r"has the steps 0 … 6; got -1"):
        bare.model(-1)


def test_weights_that_are_not_those_of_the_record_are_not_handed_out(tiny: Tiny, tmp_path: Path) -> None:
    record = execute(tiny(), tmp_path)
    rows = [json.loads(line) for line in (record.folder / "rows.jsonl").read_text().splitlines()]
    rows[3]["loss"] += 1.0
    (record.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (record.folder / "digest.json").unlink()
    with pytest.raises(EngramError, match=r"step 3 has loss .* runs check"):
        Record(record.folder).model(3)


def test_the_command_line_stores_and_says_what_is_stored(home: Path, said: Said) -> None:
    smoke = ("run", "birth.joint", "--scale", "smoke", "--snapshots", "5")
    code, out, err = said(*smoke, "--json")
    assert code == 0, err
    (record,) = map(Record, map(Path, json.loads(out)["records"]))
    assert record.snapshot_steps == [0, 1, 2, 4, 5, 8, 10, 12]
    assert record.about.snapshots == 5
    code, out, _ = said(*smoke[:-1], "3")
    assert code == 0
    assert "finished before, with weights stored at 8 steps" in out
    assert said(*smoke[:-1], "0")[0] == 2
    assert "runs rm" not in out


def test_workers_store_as_well_and_a_resumed_run_goes_on_storing(tiny: Tiny, home: Path, said: Said) -> None:
    code, out, err = said("run", "birth.joint", "--scale", "smoke", "--seeds", "2", "--snapshots", "3", "--json")
    assert code == 0, err
    assert all(3 in Record(Path(folder)).snapshot_steps for folder in json.loads(out)["records"])
    spec, stop = tiny(steps=9), iter([False] * 4 + [True])
    with pytest.raises(Interrupted):
        execute(spec, home, stop=lambda: next(stop), snapshots=3)
    (home / run_id(spec) / "about.json").write_text('{"snapshots": 3}')
    assert said("runs", "resume", run_id(spec))[0] == 0
    assert Record(home / run_id(spec)).snapshot_steps == [0, 1, 2, 3, 4, 6, 8, 9]
