"""The Slurm engine on a real Slurm: cancelled, preempted, left alone; what lies at home is what would be made here."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engram.engines import slurm
from engram.engines.choosing import Where
from engram.engines.local import Local
from engram.engines.slurm import Slurm
from engram.engines.slurm_batch import batches
from engram.errors import EngramError
from engram.records import Record
from engram.records.writer import begin
from engram.specs import Check, Spec, Train
from engram.specs.spec import run_id
from own_slurm import lacking, own_slurm

Tiny = Callable[..., Train]
real = pytest.mark.skipif(lacking() is not None, reason=str(lacking()))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with own_slurm(tmp_path_factory.mktemp("slurm")):
        yield


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "SECONDS_BETWEEN_QUESTIONS", 0.5)


def content(record: Record) -> dict[str, bytes]:
    clocks = ("env.json", "timing.jsonl", "lock", "about.json")
    paths = [path for path in record.folder.rglob("*") if path.is_file() and path.name not in clocks]
    return {str(path.relative_to(record.folder)): path.read_bytes() for path in paths}


def here(specs: list[Spec], home: Path) -> list[dict[str, bytes]]:
    return [content(record) for record in Local(home, threads=1).run(specs, lambda spec, row: None).records]


def queue(*words: str) -> list[str]:
    command = ["squeue", "--noheader", "--array", "--format=%i", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


class Meddling:
    """Does something to the cluster when two runs are under way; counts rows."""

    def __init__(self, act: Callable[[], Any]):
        self.seen, self.begun, self._act = Counter[tuple[str, int]](), set[str](), act
        self._thread: threading.Thread | None = None

    def see(self, spec: Spec, row: dict[str, Any]) -> None:
        self.seen.update([(run_id(spec), row["step"])])
        self.begun.add(run_id(spec))
        if len(self.begun) == 2 and self._thread is None:
            self._thread = threading.Thread(target=self._act)
            self._thread.start()

    def check(self, outcome: Any, specs: list[Spec], folder: Path) -> None:
        assert self._thread is not None, "nothing was done"
        self._thread.join()
        assert not outcome.failed
        assert set(self.seen.values()) == {1}
        assert [content(record) for record in outcome.records] == here(specs, folder)


@real
def test_records_are_those_of_this_machine_and_failures_are_named(tiny: Tiny, tmp_path: Path, cluster: None) -> None:
    good: list[Spec] = [tiny(seed=1), Check(law="lemmas.closed_forms", draws=3, sizes={"A": 5, "M": 5, "d": 8})]
    diverges, fails = tiny(seed=9, steps=60, lr=1e9), Check(law="lemmas.closed_forms", sizes={"A": 5, "M": 5, "d": -1})
    outcome = Slurm(tmp_path / "slurm").run([*good, diverges, fails], lambda spec, row: None)
    assert [content(record) for record in outcome.records] == here(good, tmp_path / "here")
    assert "not finite" in str(outcome.failed[run_id(diverges)])
    assert set(outcome.failed) == {run_id(diverges), run_id(fails)}


@real
def test_a_plan_counts_processors_once(tmp_path: Path, cluster: None) -> None:
    """The node of this Slurm is in two partitions."""
    assert [Slurm(tmp_path, threads=n).side_by_side() for n in (1, 2, 3)] == [2, 1, None]
    assert Slurm(tmp_path, workers=1, options={"partition": "main"}).side_by_side() == 1


@real
def test_what_was_mended_is_tried_again(tiny: Tiny, tmp_path: Path, cluster: None) -> None:
    spec, home = tiny(steps=3), tmp_path / "slurm"
    other = {run_id(spec): 1}
    begin(spec, home)
    batch = slurm.submit(Slurm(home), other)
    while batch.present():
        time.sleep(0.2)
    shutil.rmtree(home / run_id(spec))
    (batch.folder / "failed-0.jsonl").write_text(json.dumps({"run": run_id(spec), "error": "no torch"}) + "\n")
    assert Slurm(home).run([spec], lambda spec, row: None).all_records()[0].finished


@real
def test_a_run_that_cannot_be_begun_does_not_stop_the_others(tiny: Tiny, tmp_path: Path, cluster: None) -> None:
    good, bad = tiny(seed=1, steps=3), tiny(seed=2, steps=3)
    begin(bad, tmp_path)
    (tmp_path / run_id(bad) / "spec.json").write_text("{}")
    outcome = Slurm(tmp_path).run([bad, good], lambda spec, row: None)
    assert set(outcome.failed) == {run_id(bad)}
    assert [record.id for record in outcome.records] == [run_id(good)]


@real
def test_a_cancelled_task_is_submitted_again(tiny: Tiny, tmp_path: Path, cluster: None) -> None:
    specs: list[Spec] = [tiny(seed=seed, steps=3000) for seed in range(3)]
    meddling = Meddling(lambda: subprocess.run(["scancel", queue("--states=RUNNING")[0]], check=True))
    outcome = Slurm(tmp_path / "slurm").run(specs, meddling.see)
    meddling.check(outcome, specs, tmp_path / "here")
    assert len([*batches(tmp_path / "slurm")]) == 2


@real
def test_a_preempted_task_is_queued_again(tiny: Tiny, tmp_path: Path, cluster: None) -> None:
    specs: list[Spec] = [tiny(seed=seed, steps=3000) for seed in range(2)]
    urgent = ["sbatch", "--partition=urgent", "--cpus-per-task=2", "--output=/dev/null", "--wrap", "sleep 2"]
    meddling = Meddling(lambda: subprocess.run(urgent, check=True, capture_output=True))
    outcome = Slurm(tmp_path / "slurm").run(specs, meddling.see)
    meddling.check(outcome, specs, tmp_path / "here")
    assert len([*batches(tmp_path / "slurm")]) == 1, "Slurm queued it again, not we"
    assert max(len(record.env["sittings"]) for record in outcome.records) == 2


@real
def test_a_batch_that_nobody_watches_goes_on(tiny: Tiny, tmp_path: Path, cluster: None) -> None:
    """The one who submitted it is killed; who gives the command again looks on, and submits nothing."""
    command = [sys.executable, "-m", "engram", "run", "birth.joint", "--scale", "smoke", "--seeds", "2", "--json"]
    command += ["--set", "plan.steps=3000", "--engine", "slurm"]
    home = tmp_path / "runs"
    env = os.environ | {"ENGRAM_HOME": str(home)}
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len([*home.glob("*/rows.jsonl")]) != 2:
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    again = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert len([*batches(home)]) == 1
    assert all(Record(path.parent).finished for path in home.glob("*/digest.json"))


@real
def test_ctrl_c_saves_and_leaves_the_queue(tiny: Tiny, tmp_path: Path, cluster: None) -> None:
    command = [sys.executable, "-m", "engram", "run", "birth.joint", "--scale", "smoke", "--seeds", "4"]
    command += ["--set", "plan.steps=100000", "--engine", "slurm", "--yes"]
    home = tmp_path / "runs"
    process = subprocess.Popen(command, env=os.environ | {"ENGRAM_HOME": str(home)}, stderr=subprocess.PIPE, text=True)
    while len([*home.glob("*/rows.jsonl")]) != 2:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "resume with: the same command" in said
    assert not queue()
    assert len([*home.glob("*/state.safetensors")]) == 2


def test_without_slurm_it_says_where_to_go(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngramError, match="there is no sbatch here; log in to a machine of the cluster"):
        Slurm(tmp_path).run([tiny()], lambda spec, row: None)


@pytest.mark.parametrize(
    ("where", "why"),
    [
        (Where("slurm", sbatch=("partition",)), "--sbatch: write NAME=VALUE"),
        (Where("local", sbatch=("partition=a",)), "--sbatch: this is for --engine slurm; got local"),
        (Where("slurm", address="a:1"), "--address: this is for --engine ray; got slurm"),
        (Where("slrm"), "--engine: unknown 'slrm'; did you mean slurm?"),
        (Where("ray", device="mps"), "--device: a cluster has cpu or cuda; got 'mps'"),
        (Where("local", memory="much"), "--memory: write a size"),
        (Where("local", threads=0), "--threads: at least one"),
    ],
)
def test_mistakes_are_named(where: Where, why: str) -> None:
    with pytest.raises(EngramError, match=re.escape(why)):
        where.build()


def test_a_strange_option_reaches_no_command(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(EngramError, match="--sbatch: options have long names"):
        Slurm(tmp_path, options={"wrap rm": "x"}).run([tiny()], lambda spec, row: None)
