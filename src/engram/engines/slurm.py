"""The Slurm engine: Specs run as a job array, on machines that share the disk on which the runs are kept.

A batch is a folder beside the runs: what its tasks are to do, the number of its job, what each task has said. Nothing
is pickled, and tasks need nobody: who gives the same command again, after a Ctrl-C, a kill or a night, finds the batch
still at work and looks on. A task that is preempted or reaches its time limit is queued again and goes on from the
state of its run; one that vanishes is submitted again, up to TRIES times.
"""

import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from engram.engines import OnRow, Outcome
from engram.engines.build import build
from engram.engines.manner import Manner
from engram.engines.over import kept, outcome, read_over, sorted_out
from engram.engines.pool import TRIES, Died, threads_for
from engram.errors import EngramError, Interrupted
from engram.records import Record, files
from engram.records.follow import Follower
from engram.records.writer import begin
from engram.signals import keeping, waiting_for_signals
from engram.specs import Spec

FOLDER = "slurm"  # of batches, beside the runs
MANY = 1 << 20  # threads: what a run began with is kept, whatever the node has
MOST_TASKS = 1000  # of an array: more Specs than these share tasks
SECONDS_BETWEEN_QUESTIONS = 5.0  # to the controller, which many people ask
SECONDS_BETWEEN_ROWS = 0.5
SECONDS_TO_SAVE = 60  # before its time limit a task is told, and saves
FORGOTTEN = "Invalid job id"
GONE = ("CANCELLED", "COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE")


@dataclass(frozen=True)
class Slurm(Manner):
    """A Slurm cluster; this is a machine on which `sbatch` works.

    options    of sbatch, by their long names: {"partition": "long", "time": "2:00:00"}
    """

    options: Mapping[str, str] = field(default_factory=dict)

    def run(self, specs: Sequence[Spec], on_row: OnRow) -> Outcome:
        """Like `Local.run`; the records are the same to the byte where one thread computes a run there and here."""
        left, over = sorted_out(self.home, specs)
        with keeping(lambda: kept(self.home, [*left, *over])), waiting_for_signals() as stopped:
            failed = Array(self, left, on_row, stopped).run() if left else {}
            failed |= read_over(over, self, on_row)
        return outcome(specs, self.home, failed)

    def side_by_side(self) -> int | None:
        """As many as there are processors where the options send them, busy ones too: waiting is not foreseen."""
        partition = [f"--partition={self.options['partition']}"] if "partition" in self.options else []
        said = _command("sinfo", "--noheader", "--Node", "--format=%N %c", *partition)
        nodes = dict(line.split() for line in said.splitlines())  # a node of two partitions counts once
        room = sum(int(processors) // (self.threads or 1) for processors in nodes.values())
        return min([room, MOST_TASKS, *([self.workers] if self.workers else [])]) or None


@dataclass
class Array:
    """Follows runs that tasks of job arrays compute, and submits those that nobody computes."""

    engine: Slurm
    left: Mapping[str, Spec]
    on_row: OnRow
    stopped: Callable[[], bool]
    failed: dict[str, Exception] = field(default_factory=dict)

    def run(self) -> dict[str, Exception]:
        self._followed = {id: Follower(self.engine.home / id) for id in self.left}
        self._told, self._begun = Counter[str](), Counter[str]()
        self._batches = [batch for batch in batches(self.engine.home) if batch.ids & set(self.left)]
        asked = -float("inf")
        while self._followed and not self.stopped():
            if time.monotonic() - asked > SECONDS_BETWEEN_QUESTIONS:
                self._submit_missing()
                asked = time.monotonic()
            time.sleep(SECONDS_BETWEEN_ROWS)
            self._tell_new_rows()
        if self.stopped():
            self._stop()
            raise Interrupted([id for id in self.left if Record(self.engine.home / id).ended is None])
        return self.failed

    def _submit_missing(self) -> None:
        """What is neither over nor at work nor waiting in the queue; and takes down what failed."""
        working = {id for batch in self._batches for id in batch.working()}
        for batch in self._batches:
            for id, why in batch.failures().items():
                if id in self._followed and id not in working:
                    self._fail(id, EngramError(why))
        missing = [id for id in self._followed if id not in working and not self._is_over(id)]
        for id in [id for id in missing if self._begun[id] >= TRIES]:
            self._fail(id, Died(f"{TRIES} tasks in a row vanished; what they said is in {self._batches[-1].folder}"))
        again = [id for id in missing if id in self._followed]
        if again:
            self._batches.append(submit(self.engine, {id: self.left[id] for id in again}))
            self._begun.update(again)

    def _fail(self, id: str, error: Exception) -> None:
        self._tell(id)
        del self._followed[id]
        self.failed[id] = error
        self.engine.on_failure(id, error)

    def _is_over(self, id: str) -> bool:
        return (self.engine.home / id / "digest.json").exists()

    def _tell_new_rows(self) -> None:
        for id in [*self._followed]:
            over = self._is_over(id)  # asked first: the last rows are there before
            self._tell(id)
            if over:
                del self._followed[id]
                if not Record(self.engine.home / id).finished:
                    self.failed[id] = EngramError(f"run {id}: {(Record(self.engine.home / id).ended or {})['end']}")

    def _tell(self, id: str) -> None:
        if (self.engine.home / id / "rows.jsonl").exists():
            for row in self._followed[id].poll():
                if row["step"] >= self._told[id]:
                    self._told[id] = row["step"] + 1
                    self.on_row(self.left[id], row)

    def _stop(self) -> None:
        """Running tasks save and end; those that wait in the queue leave it."""
        for batch in self._batches:
            batch.stop()


@dataclass(frozen=True)
class Batch:
    """One job array. Its folder says all of it."""

    folder: Path
    job: str
    tasks: list[list[str]]

    @property
    def ids(self) -> set[str]:
        return {id for ids in self.tasks for id in ids}

    def working(self) -> set[str]:
        """Runs of tasks that the controller still has; it forgets those that are over."""
        asked = ("squeue", "--noheader", "--array", "--format=%K %T", f"--jobs={self.job}")
        found = [line.split() for line in _command(*asked, missing=FORGOTTEN).splitlines()]
        present = {int(task) for task, state in found if task.isdecimal() and state not in GONE}
        return {id for n, ids in enumerate(self.tasks) if n in present for id in ids}

    def failures(self) -> dict[str, str]:
        found = {}
        for path in sorted(self.folder.glob("failed-*.jsonl")):
            found |= {said["run"]: said["error"] for said in map(json.loads, path.read_text().splitlines())}
        return found

    def stop(self) -> None:
        _command("scancel", "--state=PENDING", self.job, missing=FORGOTTEN)
        _command("scancel", "--signal=TERM", "--full", self.job, missing=FORGOTTEN)
        end = time.monotonic() + SECONDS_TO_SAVE
        while self.working() and time.monotonic() < end:
            time.sleep(SECONDS_BETWEEN_ROWS)
        _command("scancel", self.job, missing=FORGOTTEN)


def batches(home: Path) -> Iterator[Batch]:
    """Those that were submitted from this home, whoever looked on."""
    for path in sorted((home / FOLDER).glob("*/job")):
        about = json.loads((path.parent / "tasks.json").read_text())
        yield Batch(path.parent, path.read_text().strip(), about["tasks"])


def submit(engine: Slurm, specs: Mapping[str, Spec]) -> Batch:
    """One array for all of them. What each run is stands in its folder before, where its task reads it."""
    for spec in specs.values():
        begin(spec, engine.home)
    ids, n = [*specs], min(len(specs), MOST_TASKS)
    tasks = [ids[i::n] for i in range(n)]
    threads = {id: threads_for(spec, engine.home, engine.threads or 1, most=MANY) for id, spec in specs.items()}
    folder = _new_folder(engine.home)
    about = {"home": str(engine.home), "tasks": tasks, "threads": threads, "build": asdict(build())}
    about |= {"device": engine.device, "path": engine.path, "snapshots": engine.snapshots}
    files.write_json(folder / "tasks.json", about)
    said = _command("sbatch", "--parsable", *_options(engine, folder, n), "--wrap", _script(folder))
    job = said.split(";")[0].strip()
    files.replace(folder / "job", f"{job}\n".encode())
    return Batch(folder, job, tasks)


def _new_folder(home: Path) -> Path:
    stamp, n = time.strftime("%Y%m%d-%H%M%S"), 1
    while (folder := home / FOLDER / f"{stamp}-{n}").exists():
        n += 1
    files.make_folder(folder)
    return folder


def _options(engine: Slurm, folder: Path, tasks: int) -> list[str]:
    """What a person says wins."""
    told: dict[str, Any] = {
        "job-name": "engram",
        "array": f"0-{tasks - 1}" + (f"%{engine.workers}" if engine.workers else ""),
        "cpus-per-task": engine.threads or 1,
        "output": folder / "task-%a.log",
        "open-mode": "append",
        "signal": f"B:USR2@{SECONDS_TO_SAVE}",
    }
    told |= {"mem": f"{-(-engine.memory >> 20)}M"} if engine.memory else {}
    told |= {"gres": "gpu:1"} if engine.device == "cuda" else {}
    for name in engine.options:
        if not re.fullmatch(r"[a-z][a-z-]*", name):
            raise EngramError(f"--sbatch: options have long names, as in partition=long; got {name!r:.60}")
    return ["--requeue", *(f"--{name}={value}" for name, value in {**told, **engine.options}.items())]


def _script(folder: Path) -> str:
    """The shell makes room for Python: signals reach it."""
    return f"exec '{sys.executable}' -m engram.engines.slurm_task '{folder}'"


def _command(*words: str, missing: str = "") -> str:
    """What it prints. `missing`: what it says of a job that the controller has forgotten, which is no error."""
    try:
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise EngramError(f"--engine slurm: there is no {words[0]} here; log in to a machine of the cluster") from None
    if ran.returncode and not (missing and missing in ran.stderr):
        raise EngramError(f"{words[0]}: {' '.join(ran.stderr.split()):.300}")
    return ran.stdout
