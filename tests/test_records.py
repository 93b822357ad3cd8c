"""Records: a kill at any byte loses nothing; what was changed is noticed; one writer a run."""

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from filelock import FileLock

from engram.errors import EngramError, Interrupted
from engram.models import Layer, Simplified, Transformer
from engram.records import Record
from engram.records import writer as writer_module
from engram.records.bundle import bundle
from engram.records.compare import diff, mismatch
from engram.records.files import line_of
from engram.records.index import overview
from engram.records.record import walk
from engram.records.shelf import all_records, find, remove
from engram.runner import execute as execute_module
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.encode import encode
from engram.specs.settings import with_settings
from engram.tasks import Batch, Bigram

Tiny = Callable[..., Train]
RUN = """
import json, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from engram.records import writer
writer.SECONDS_BETWEEN_STATES = float(sys.argv[3])
from engram.runner import execute as execute_module
from engram.runner.execute import execute
from engram.specs.encode import decode
execute(decode(json.loads(sys.argv[1])), Path(sys.argv[2]))
"""


def content(record: Record) -> dict[str, bytes]:
    """Everything of a record that must not depend on how it came about."""
    names = [
        "spec.json",
        "rows.jsonl",
        "digest.json",
        *(f"snapshots/{s:06d}.safetensors" for s in record.snapshot_steps),
    ]
    return {name: (record.folder / name).read_bytes() for name in names}


def test_same_spec_same_bytes(tiny: Tiny, tmp_path: Path) -> None:
    one, two = execute(tiny(), tmp_path / "a"), execute(tiny(), tmp_path / "b")
    assert content(one) == content(two)


def test_data_depend_on_neither_model_nor_probes(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokens that two trainings with different models and probe intervals really saw."""
    seen: dict[str, list[bytes]] = {"a": [], "b": []}
    sample = Bigram.sample
    for home, spec in {"a": tiny(), "b": tiny(probe_every=1).model_copy(update={"model": Simplified(d=9)})}.items():

        def spy(task: Bigram, seed: int, step: int, batch: int, kept: list[bytes] = seen[home]) -> Batch:
            drawn = sample(task, seed, step, batch)
            if step < 2**40:  # probes have sequences of their own
                kept.append(drawn.tokens.tobytes())
            return drawn

        monkeypatch.setattr(Bigram, "sample", spy)
        execute(spec, tmp_path / home)
    assert len(seen["a"]) == 7
    assert seen["a"] == seen["b"]


def test_fixed_triggers_reach_the_probes(tiny: Tiny, tmp_path: Path) -> None:
    """Rows of a run with fixed triggers: W_K2 competes among them, W_F is not asked for them."""
    task = Bigram(K=4, T=24, triggers="fixed", offset=2)
    model = Simplified(d=16, blocks=("attention", "attention", "linear"))
    record = execute(tiny(loss="all").model_copy(update={"task": task, "model": model}), tmp_path)
    triggers = [] if task.fixed_triggers is None else task.fixed_triggers.tolist()
    found = {memory.name: memory.scores() for memory in record.memories()}
    among = found["W_K2"][triggers][:, triggers]
    assert record.rows[-1]["recall.W_K2"] == float((among.argmax(1) == torch.arange(4)).double().mean())
    asked, pi_b = [k for k in range(65) if k not in triggers], torch.from_numpy(task.table.bigram)
    kl = torch.xlogy(pi_b, pi_b) - pi_b * found["W_F"].double().log_softmax(1)
    assert record.rows[-1]["kl.W_F"] == pytest.approx(float(kl.sum(1)[asked].mean()), rel=1e-5)


def test_killed_at_random_points_and_resumed_gives_the_same_bytes(tiny: Tiny, tmp_path: Path) -> None:
    spec = tiny(steps=150)
    whole = execute(spec, tmp_path / "whole")
    arguments = [sys.executable, "-c", RUN, json.dumps(encode(spec)), str(tmp_path / "cut"), "0.02"]
    chance, kills, folder = random.Random(0), 0, tmp_path / "cut" / whole.id
    for _ in range(60):
        process = subprocess.Popen(arguments)
        limit = time.monotonic() + 60
        rows = len(Record(folder).rows) if (folder / "rows.jsonl").exists() else 0
        target = rows + chance.randint(5, 50)
        while process.poll() is None and time.monotonic() < limit:
            time.sleep(0.001)  # whoever looks without a pause takes the core on which the run computes
            if (folder / "rows.jsonl").exists() and (folder / "rows.jsonl").read_bytes().count(b"\n") >= target:
                time.sleep(chance.random() * 0.02)
                process.send_signal(signal.SIGKILL)
        if process.wait() == 0:
            break
        kills += 1
        assert isinstance(Record(folder).rows, list)  # readable at once
    assert kills >= 2
    assert content(Record(folder)) == content(whole)


@pytest.mark.parametrize("cut", [1, 5, 40, 200])
def test_cut_at_any_byte_and_resumed(tiny: Tiny, tmp_path: Path, cut: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a kill in the middle of a write leaves: a state, and rows that go on beyond it with half a line."""
    monkeypatch.setattr(writer_module, "SECONDS_BETWEEN_STATES", 0.0)
    whole = execute(tiny(), tmp_path / "whole")
    steps = iter(range(100))
    with pytest.raises(Interrupted):
        execute(tiny(), tmp_path / "cut", stop=lambda: next(steps) == 4)
    folder = tmp_path / "cut" / whole.id
    with (folder / "rows.jsonl").open("ab") as file:
        file.write(whole.folder.joinpath("rows.jsonl").read_bytes()[-cut:].rstrip(b"\n")[:-1])
    assert len(Record(folder).rows) >= 4
    execute(tiny(), tmp_path / "cut")
    assert content(Record(folder)) == content(whole)


def test_interrupted_says_how_to_go_on(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(Interrupted, match=r"stopped at step 0 .*engram runs resume bigram-simplified-s0-"):
        execute(tiny(), tmp_path, stop=lambda: True)


def test_finished_is_reused(tiny: Tiny, tmp_path: Path) -> None:
    first = execute(tiny(), tmp_path)
    stamp = (first.folder / "rows.jsonl").stat().st_mtime_ns
    seen: list[int] = []
    again = execute(tiny(), tmp_path, on_row=lambda row: seen.append(row["step"]))
    assert (again.folder / "rows.jsonl").stat().st_mtime_ns == stamp
    assert seen == list(range(7))


def test_second_writer_is_refused(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        execute(tiny(), tmp_path, stop=lambda: True)
    (record,) = all_records(tmp_path)
    with FileLock(record.folder / "lock"), pytest.raises(EngramError, match="being written by another process"):
        execute(tiny(), tmp_path)
    with FileLock(record.folder / "lock"):
        assert overview(tmp_path)[0]["state"] == "running"
        with pytest.raises(EngramError, match="stop it first"):
            remove(record)
    assert execute(tiny(), tmp_path).finished


def test_a_diverged_run_is_kept(tiny: Tiny, tmp_path: Path) -> None:
    spec = tiny(lr=1e38, steps=50, loss="all")
    for _ in range(2):
        with pytest.raises(EngramError, match=r"not finite at step .*lower plan.optimiser.lr"):
            execute(spec, tmp_path)
    (record,) = all_records(tmp_path)
    assert len(record.rows) >= 1
    assert not record.finished
    assert overview(tmp_path)[0]["state"] == "diverged"


def test_a_run_finished_by_another_in_the_last_moment_is_kept(tiny: Tiny, tmp_path: Path) -> None:
    """The other process ends between our look and our lock: the finished record is read, not written again."""
    spec = tiny()
    ended = execute(spec, tmp_path / "other").folder

    def finish_elsewhere(device: str, path: str) -> dict[str, object]:
        shutil.copytree(ended, tmp_path / "here" / ended.name)
        return {"threads": 1, "device": device}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute_module, "environment", finish_elsewhere)
        record = execute(spec, tmp_path / "here")
    assert content(record) == content(Record(ended))


def test_models_of_stored_steps(tiny: Tiny, tmp_path: Path) -> None:
    record = execute(tiny(), tmp_path)
    assert record.snapshot_steps == [0, 1, 2, 4, 6]
    first = tiny().model.init(65, 24, 0)
    assert all(torch.equal(record.model(0).weights[name], first[name]) for name in first)
    last = record.model()
    assert not torch.equal(last.weights["W_O2"], first["W_O2"])
    assert torch.equal(last.weights["E"], first["E"])
    assert last([1, 2, 3]).attention1.shape == (1, 3, 3)
    assert record.model(3)([1, 2, 3]).attention1.shape == (1, 3, 3)  # computed: tests/test_any_step.py


def test_columns(tiny: Tiny, tmp_path: Path) -> None:
    record = execute(tiny(probe_every=2), tmp_path)
    assert record.column("loss.in_context").shape == (7,)
    assert np.isnan(record.column("recall.W_O2")).tolist() == [False, True, False, True, False, True, False]
    steps, values = record.curve("recall.W_O2")
    assert steps.tolist() == [0, 2, 4, 6]
    assert len(values) == 4
    with pytest.raises(EngramError, match=r"did you mean recall.W_O2"):
        record.column("recall.W_02")
    with pytest.raises(EngramError, match=r"did you mean recall.W_O2"):
        record.last("recall.W_02")


def test_the_last_value_of_a_column_may_be_none(tiny: Tiny, tmp_path: Path) -> None:
    """What has no number in the last row, or is not in it, is NaN; never what an earlier row said."""
    folder = execute(tiny(), tmp_path).folder
    rows = [{"step": 0, "a": 1.0, "b": 1.0, "c": 1.0}, {"step": 1, "a": 2.0, "b": float("nan")}]
    (folder / "digest.json").unlink()
    (folder / "rows.jsonl").write_bytes(b"".join(map(line_of, rows)))
    record = Record(folder)
    assert record.last("a") == 2.0
    assert np.isnan([record.last("b"), record.last("c")]).all()


def test_rows_hold_seven_digits_and_null() -> None:
    assert line_of({"step": 3, "x": 0.123456789, "y": float("nan")}) == b'{"step": 3, "x": 0.1234568, "y": null}\n'


def test_finding_and_comparing_runs(tiny: Tiny, tmp_path: Path) -> None:
    one, two = execute(tiny(seed=1), tmp_path), execute(tiny(seed=2, lr=0.1), tmp_path)
    assert find(one.id, tmp_path).id == find("-s1-", tmp_path).id == one.id
    assert find("last", tmp_path).id == two.id
    with pytest.raises(EngramError, match="could be"):
        find("bigram", tmp_path)
    with pytest.raises(EngramError, match="no run 'nothing'"):
        find("nothing", tmp_path)
    fields = {row["field"]: (row["a"], row["b"]) for row in diff(one, two)}
    assert fields["plan.optimiser.lr"] == (0.2, 0.1)
    assert fields["seed"] == (1, 2)
    assert not any(name.startswith(("task", "model", "env.torch")) for name in fields)
    assert diff(one, one) == []
    remove(one)
    assert [r.id for r in all_records(tmp_path)] == [two.id]


def test_every_field_has_its_dotted_name(tiny: Tiny) -> None:
    """Values in tuples and dicts too; a name that is given to --set finds the field that it names here."""
    model = Transformer(d=12, layers=(Layer(heads=2), Layer(feed_forward="linear")))
    spec = tiny(trained=("U",)).model_copy(update={"model": model, "tests": {"other": Bigram(K=2, T=9)}})
    found = dict(walk(spec))
    assert (found["model"], found["model.layers.0"], found["model.layers.0.heads"]) == ("Transformer", "Layer", 2)
    assert (found["tests.other"], found["tests.other.T"], found["plan.trained"]) == ("Bigram", 9, ("U",))
    assert (dict(walk(tiny()))["tests"], dict(walk(tiny()))["model.blocks"]) == ({}, ("attention", "attention"))
    assert json.loads(json.dumps(found))
    changed = with_settings(spec, {"model.layers.1.heads": 3, "tests.other.K": 1})
    different = {name: value for name, value in walk(changed) if value != found[name]}
    assert different == {"model.layers.1.heads": 3, "tests.other.K": 1}


@pytest.mark.parametrize(
    ("column", "share"),
    [
        ("recall.W_O2", True),
        ("accuracy.in_context", True),
        ("attention.chain", True),
        ("preference.unlikely.follows", True),
        ("test.uniform.accuracy.in_context", True),
        ("test.accuracy.loss.in_context", False),
        ("mass.previous", False),
        ("effect.none", False),
        ("loss.in_context", False),
    ],
)
def test_a_few_argmaxes_may_turn_where_argmaxes_are_counted(column: str, share: bool) -> None:
    """On another machine a share may differ by 0.01, a mean may not; to the byte neither may."""
    stored, again = {"step": 0, column: 0.5}, {"step": 0, column: 0.51}
    assert (mismatch(0, stored, again, to_the_byte=False) is None) == share
    assert mismatch(0, stored, again, to_the_byte=True) is not None


def test_bundle_holds_records_that_read_like_any_other(tiny: Tiny, home: Path, tmp_path: Path) -> None:
    records = [execute(tiny(seed), home) for seed in (0, 1)]
    path = bundle(records, tmp_path / "shelf" / "two.zip")
    again = {record.id: record for record in all_records(tmp_path / "shelf")}
    assert {record.id: record.rows for record in records} == {id: record.rows for id, record in again.items()}
    assert all(record.finished for record in again.values())
    with pytest.raises(EngramError, match="can only be read"):
        _ = again[records[0].id].folder
    assert bundle(records, path).read_bytes() == path.read_bytes()
