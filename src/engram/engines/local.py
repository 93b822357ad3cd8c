"""The local engine: one Spec in this process with all threads, many Specs in processes with one thread each."""

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import torch

from engram.engines import OnRow, Outcome
from engram.engines.worker import Died, Worker
from engram.errors import EngramError, Interrupted
from engram.records import Record
from engram.records import state as states
from engram.records.follow import Follower
from engram.records.state import State
from engram.runner.execute import execute
from engram.signals import keeping, waiting_for_signals
from engram.specs import Spec
from engram.specs.spec import run_id

SECONDS_BETWEEN_LOOKS = 0.05
TRIES = 3  # for a run whose worker dies: it goes on from its last state, each time in a new worker


def choose_device(wanted: str) -> tuple[str, str]:
    """A device and why. `auto` takes cuda, else mps, else cpu."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wanted == "auto":
        device = next(name for name, found in there.items() if found)
        return device, "the first of cuda, mps, cpu that this machine has"
    if wanted not in there:
        raise EngramError(f"--device: unknown {wanted!r}; allowed: auto, {', '.join(there)}")
    if not there[wanted]:
        raise EngramError(f"--device {wanted}: torch finds no such device here; use --device auto")
    return wanted, "as requested"


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_for(spec: Spec, home: Path, wanted: int) -> int:
    """A resumed run keeps the threads it began with, so that its numbers stay the same to the byte."""
    record = Record(home / run_id(spec))
    begun = (record.folder / "env.json").exists()
    return min(record.env["sittings"][0]["threads"], cores()) if begun else wanted


@dataclass(frozen=True)
class Local:
    """This machine: records are kept in `home`.

    threads      of a run that is alone; None: all. Where it is set, who runs beside whom changes no number
    on_failure   hears at once of a run that fails, by its id; the outcome names it again
    snapshots    weights are stored every so many steps, besides those that the plan names
    """

    home: Path
    device: str = "cpu"
    path: str = "auto"
    threads: int | None = None
    on_failure: Callable[[str, Exception], None] = lambda id, error: None
    snapshots: int | None = None

    def run(self, specs: Sequence[Spec], on_row: OnRow) -> Outcome:
        """Runs each Spec to its end, or reads it if it has ended. `on_row` sees every row once, stored rows too.

        A Spec that fails does not stop the others. Ctrl-C lets every run finish its step and save, then raises
        Interrupted; so do SIGTERM and SIGHUP where the command line listens to them.
        """
        asked = {run_id(spec): spec for spec in specs}  # one that occurs twice runs once
        unfinished = {id: spec for id, spec in asked.items() if not _is_over(Record(self.home / id))}
        in_processes = unfinished if len(unfinished) > 1 and self.device == "cpu" else {}
        with keeping(lambda: _kept(self.home, list(asked))), waiting_for_signals() as stopped:
            failed = _Pool(self, list(in_processes.values()), on_row, stopped).run() if in_processes else {}
            here = [spec for id, spec in asked.items() if id not in in_processes]
            failed |= self._one_by_one(here, on_row, stopped)
        return Outcome([Record(self.home / id) for id in asked if id not in failed], failed)

    def _one_by_one(self, specs: Sequence[Spec], on_row: OnRow, stopped: Callable[[], bool]) -> dict[str, Exception]:
        """Here, with all threads. Ended runs are only read; one that diverged has failed."""
        failed: dict[str, Exception] = {}
        for spec in specs:
            try:
                torch.set_num_threads(threads_for(spec, self.home, self.threads or cores()))
                see = lambda row, spec=spec: on_row(spec, row)  # noqa: E731
                execute(spec, self.home, self.device, see, stopped, self.path, snapshots=self.snapshots)
            except Interrupted:
                raise
            except Exception as error:
                failed[run_id(spec)] = error
                self.on_failure(run_id(spec), error)
        return failed


def _is_over(record: Record) -> bool:
    """Whether there is nothing left to run; of a damaged record reading it will say so, and the others go on."""
    try:
        return record.ended is not None
    except EngramError:
        return True


def _kept(home: Path, ids: Sequence[str]) -> str:
    """What there is of runs that were stopped at once, and how to go on."""
    if len(ids) > 1:
        over = sum((home / id / "digest.json").exists() for id in ids)
        done = f"{over} of {len(ids)} runs are finished, and of the others what was saved is kept"
        return f"{done}; resume with: the same command"
    (id,) = ids
    if (home / id / "digest.json").exists():
        return f"run {id} is finished and kept; the same command goes on from there"
    if not (home / id / states.NAME).exists():
        return f"nothing of run {id} was saved yet; begin again with: the same command"
    return f"run {id} is kept up to step {State.read(home / id).step}; resume with: engram runs resume {id}"


@dataclass
class _Pool:
    """As many workers as there are cores; each takes the next Spec when it is free. They communicate by records."""

    engine: Local
    specs: Sequence[Spec]
    on_row: OnRow
    stopped: Callable[[], bool]
    failed: dict[str, Exception] = field(default_factory=dict)

    def run(self) -> dict[str, Exception]:
        home = self.engine.home
        self._waiting, self._followed = list(self.specs), dict[str, tuple[Spec, Follower]]()
        self._begun, self._told = (
            Counter[str](),
            Counter[str](),
        )  # by run: how often it began, rows told
        self._workers: list[Worker] = []
        try:
            while (self._any_busy() or self._waiting) and not self.stopped():  # in this order: what died waits again
                self._hand_out()
                time.sleep(SECONDS_BETWEEN_LOOKS)
                self._tell_new_rows()
            for worker in self._workers:
                worker.stop() if self.stopped() else worker.close()
            for worker in self._workers:
                worker.wait()
        finally:
            for worker in self._workers:
                with suppress(OSError):
                    worker.kill()
        self._tell_new_rows()
        if self.stopped():
            raise Interrupted([run_id(spec) for spec in self.specs if Record(home / run_id(spec)).ended is None])
        return self.failed

    def _any_busy(self) -> bool:
        """Also takes down what failed; a worker that died is replaced while there is work, and its run tried again."""
        for worker in self._workers:
            for id, error in worker.failures().items():
                if isinstance(error, Died) and self._begun[id] < TRIES:
                    self._waiting.append(self._followed[id][0])
                else:
                    self._fail(id, error)
            if not worker.alive():
                worker.kill()  # closes what it held
        self._workers = [worker for worker in self._workers if worker.alive()]
        return any(worker.busy() for worker in self._workers)

    def _fail(self, id: str, error: Exception) -> None:
        self.failed[id] = error
        self.engine.on_failure(id, error)

    def _hand_out(self) -> None:
        """The next Specs to idle workers; new workers up to the number of cores."""
        self._any_busy()
        home, idle = self.engine.home, [worker for worker in self._workers if not worker.busy()]
        while self._waiting and (idle or len(self._workers) < cores()):
            spec = self._waiting.pop(0)
            try:
                threads = threads_for(spec, home, 1)
            except EngramError as error:  # what was begun of it is damaged
                self._fail(run_id(spec), error)
                continue
            if not idle:
                idle.append(Worker(home, self.engine.path, self.engine.snapshots))
                self._workers.append(idle[-1])
            self._begun[run_id(spec)] += 1
            self._followed[run_id(spec)] = spec, Follower(home / run_id(spec))
            idle.pop(0).give(spec, threads)

    def _tell_new_rows(self) -> None:
        """Every row once; a run that has ended is looked at for the last time."""
        over = {id for id in self._followed if (self.engine.home / id / "digest.json").exists() or id in self.failed}
        for id, (spec, follower) in self._followed.items():
            for row in follower.poll():
                if row["step"] >= self._told[id]:  # a run that was tried again repeats some
                    self._told[id] = row["step"] + 1
                    self.on_row(spec, row)
        for id in over:
            del self._followed[id]
