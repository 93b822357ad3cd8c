"""The local engine: one Spec in this process with all threads, many Specs in processes with one thread each."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from select import select

import torch

from engram.engines import OnRow, Outcome
from engram.engines.manner import Manner
from engram.engines.pool import SECONDS_BETWEEN_LOOKS, Pool, threads_for
from engram.engines.pool import Worker as AnyWorker
from engram.engines.worker import Worker
from engram.errors import EngramError, Interrupted
from engram.records import Record
from engram.records import state as states
from engram.records.state import State
from engram.runner.execute import execute
from engram.signals import keeping, waiting_for_signals
from engram.specs import Spec
from engram.specs.spec import run_id


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


def memory() -> int:
    """Bytes of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Local(Manner):
    """This machine. Where `threads` is set, who runs beside whom changes no number."""

    def run(self, specs: Sequence[Spec], on_row: OnRow) -> Outcome:
        """Runs each Spec to its end, or reads it if it has ended. `on_row` sees every row once, stored rows too.

        A Spec that fails does not stop the others. Ctrl-C lets every run finish its step and save, then raises
        Interrupted; so do SIGTERM and SIGHUP where the command line listens to them.
        """
        asked = {run_id(spec): spec for spec in specs}  # one that occurs twice runs once
        unfinished = {id: spec for id, spec in asked.items() if not is_over(Record(self.home / id))}
        in_processes = unfinished if len(unfinished) > 1 and self.device == "cpu" else {}
        with keeping(lambda: _kept(self.home, list(asked))), waiting_for_signals() as stopped:
            pool = Pool(self, Processes(self), list(in_processes.values()), on_row, stopped, cores())
            failed = pool.run() if in_processes else {}
            here = [spec for id, spec in asked.items() if id not in in_processes]
            failed |= self._one_by_one(here, on_row, stopped)
        return Outcome([Record(self.home / id) for id in asked if id not in failed], failed)

    def _one_by_one(self, specs: Sequence[Spec], on_row: OnRow, stopped: Callable[[], bool]) -> dict[str, Exception]:
        """Here, with all threads. Ended runs are only read; one that diverged has failed."""
        failed: dict[str, Exception] = {}
        for spec in specs:
            try:
                torch.set_num_threads(threads_for(spec, self.home, self.threads or cores(), cores()))
                see = lambda row, spec=spec: on_row(spec, row)  # noqa: E731
                execute(spec, self.home, self.device, see, stopped, self.path, snapshots=self.snapshots)
            except Interrupted:
                raise
            except Exception as error:
                failed[run_id(spec)] = error
                self.on_failure(run_id(spec), error)
        return failed


@dataclass(frozen=True)
class Processes:
    """A crew of processes of this machine, as many as its cores and its memory have room for."""

    engine: Local

    def hire(self, workers: Sequence[AnyWorker]) -> Worker | None:
        return Worker(self.engine.home, self.engine.path, self.engine.snapshots) if len(workers) < self.room else None

    @property
    def room(self) -> int:
        beside = cores() // (self.engine.threads or 1)
        return max(1, beside if self.engine.memory is None else min(beside, memory() // self.engine.memory))

    def wait(self, workers: Sequence[AnyWorker]) -> None:
        answers = [worker.answers for worker in workers if isinstance(worker, Worker)]
        select(answers, [], [], SECONDS_BETWEEN_LOOKS)


def is_over(record: Record) -> bool:
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
