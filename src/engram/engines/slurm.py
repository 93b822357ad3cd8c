"""The Slurm engine: Specs run as a job array, on machines that share the disk on which the runs are kept.

A batch is a folder beside the runs: what its tasks are to do, the number of its job, what each task has said. Nothing
is pickled, and tasks need nobody: who gives the same command again, after a Ctrl-C, a kill or a night, finds the batch
still at work and looks on. A task that is preempted or reaches its time limit is queued again and goes on from the
state of its run; one that vanishes is submitted again, up to TRIES times.
"""

import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from engram.engines import OnRow, Outcome
from engram.engines.build import build
from engram.engines.manner import Manner
from engram.engines.over import kept, outcome, read_over, sorted_out
from engram.engines.pool import TRIES, Died, threads_for
from engram.engines.slurm_batch import JOB, Batch, Unanswered, batches, cancel, command, new_folder
from engram.errors import EngramError, Interrupted
from engram.records import Record, files
from engram.records.follow import Follower
from engram.records.writer import begin
from engram.signals import keeping, waiting_for_signals
from engram.specs import Spec

MANY = 1 << 20  # threads: what a run began with is kept, whatever the node has
MOST_TASKS = 1000  # of an array: more Specs than these share tasks
SECONDS_BETWEEN_QUESTIONS = 5.0  # to the controller, which many people ask
SECONDS_BETWEEN_ROWS = 0.5
SECONDS_OF_SILENCE = 600.0  # of the controller, after which nobody looks on any more
SECONDS_TO_SAVE = 60  # before its time limit a task is told, and saves


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
        said = command("sinfo", "--noheader", "--Node", "--format=%N %c %m", *partition)
        nodes = {
            name: (int(cpus), int(mb)) for name, cpus, mb in map(str.split, said.splitlines())
        }  # in 2 partitions: once
        megabytes = (self.memory or 0) >> 20 or 1
        room = sum(min(cpus // (self.threads or 1), mb // megabytes) for cpus, mb in nodes.values())
        return min([room, MOST_TASKS, *([self.workers] if self.workers else [])]) or None


@dataclass
class Array:
    """Follows runs that tasks of job arrays compute, and submits those that nobody computes."""

    engine: Slurm
    left: Mapping[str, Spec]
    on_row: OnRow
    stopped: Callable[[], bool]
    failed: dict[str, Exception] = field(default_factory=dict)
    _complained: bool = False

    def run(self) -> dict[str, Exception]:
        self._followed = {id: Follower(self.engine.home / id) for id in self.left}
        self._told, self._begun = Counter[str](), Counter[str]()
        self._batches = [batch for batch in batches(self.engine.home) if batch.ids & set(self.left)]
        self._old = {(batch.folder, id) for batch in self._batches for id in batch.failures()}  # may be mended by now
        asked, heard = -float("inf"), time.monotonic()
        while self._followed and not self.stopped():
            if time.monotonic() - asked > SECONDS_BETWEEN_QUESTIONS:
                asked, heard = time.monotonic(), self._look_after(heard)
            time.sleep(SECONDS_BETWEEN_ROWS)
            self._tell_new_rows()
        if self.stopped():
            self._stop()
            raise Interrupted([id for id in self.left if Record(self.engine.home / id).ended is None])
        return self.failed

    def _look_after(self, heard: float) -> float:
        """When the controller answered last: a busy one is asked again for some minutes, while tasks go on."""
        try:
            self._submit_missing()
        except Unanswered as error:
            if time.monotonic() - heard > SECONDS_OF_SILENCE:
                raise
            if not self._complained:
                self.engine.tell(f"{error}; tasks go on, and the controller is asked again")
            self._complained = True
            return heard
        self._complained = False
        return time.monotonic()

    def _submit_missing(self) -> None:
        """What is neither over nor at work nor waiting in the queue; and takes down what failed."""
        working = {id for batch in self._batches for id in batch.working()}
        for batch in self._batches:
            for id, why in batch.failures().items():
                if id in self._followed and id not in working and (batch.folder, id) not in self._old:
                    self._fail(id, EngramError(why))
        missing = [id for id in self._followed if id not in working and not self._is_over(id)]
        for id in [id for id in missing if self._begun[id] >= TRIES]:
            self._fail(id, Died(f"{TRIES} tasks in a row vanished; what they said is in {self._batches[-1].folder}"))
        again = {id: threads for id in missing if id in self._followed and (threads := self._prepared(id))}
        if again:
            self._batches.append(submit(self.engine, again))
            self._begun.update(again.keys())

    def _prepared(self, id: str) -> int | None:
        """What the run is stands in its folder, where its task reads it; with how many threads it is computed."""
        try:
            begin(self.left[id], self.engine.home)
            return threads_for(self.left[id], self.engine.home, self.engine.threads or 1, most=MANY)
        except EngramError as error:  # what was begun of it is damaged, or another process writes it
            self._fail(id, error)
            return None

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
            if over and (why := _why_unfinished(Record(self.engine.home / id))):
                self._fail(id, EngramError(why))
            elif over:
                del self._followed[id]

    def _tell(self, id: str) -> None:
        if (self.engine.home / id / "rows.jsonl").exists():
            for row in self._followed[id].poll():
                if row["step"] >= self._told[id]:
                    self._told[id] = row["step"] + 1
                    self.on_row(self.left[id], row)

    def _stop(self) -> None:
        """Running tasks save and end; those that wait in the queue leave it. What others asked for stays."""
        ours = {batch.job: batch.tasks_of(self.left) for batch in self._batches}
        for options in (["--state=PENDING"], ["--signal=TERM", "--full"]):
            cancel(ours, options)
        end = time.monotonic() + SECONDS_TO_SAVE
        while any(batch.is_working(ours[batch.job]) for batch in self._batches) and time.monotonic() < end:
            time.sleep(SECONDS_BETWEEN_ROWS)
        cancel(ours, [])


def _why_unfinished(record: Record) -> str | None:
    """Of a run that is over."""
    try:
        return None if record.finished else f"run {record.id}: {(record.ended or {})['end']}"
    except EngramError as error:
        return str(error)


def submit(engine: Slurm, threads: Mapping[str, int]) -> Batch:
    """One array for all these runs, each with its threads."""
    ids, n = [*threads], min(len(threads), MOST_TASKS)
    tasks = [ids[i::n] for i in range(n)]
    folder = new_folder(engine.home)
    about = {"home": str(engine.home), "tasks": tasks, "threads": dict(threads), "build": asdict(build())}
    about |= {"device": engine.device, "path": engine.path, "snapshots": engine.snapshots}
    files.write_json(folder / "tasks.json", about)
    options = _options(engine, folder, n, max(threads.values()))
    said = command("sbatch", "--parsable", *options, "--wrap", _script(folder))
    job = said.split(";")[0].strip()
    files.replace(folder / JOB, f"{job}\n".encode())
    return Batch(folder, job, tasks)


def _options(engine: Slurm, folder: Path, tasks: int, threads: int) -> list[str]:
    """What a person says wins."""
    told: dict[str, Any] = {
        "job-name": "engram",
        "array": f"0-{tasks - 1}" + (f"%{engine.workers}" if engine.workers else ""),
        "cpus-per-task": threads,
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
    return f"exec {shlex.quote(sys.executable)} -m engram.engines.slurm_task {shlex.quote(str(folder))}"
