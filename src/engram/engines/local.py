"""The local engine: one Spec in this process with all threads, many Specs in processes with one thread each."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from select import select

import torch

from engram.engines import OnRow, Outcome
from engram.engines.manner import Manner
from engram.engines.over import kept, outcome, read_over, sorted_out
from engram.engines.pool import SECONDS_BETWEEN_LOOKS, Pool, threads_for
from engram.engines.pool import Worker as AnyWorker
from engram.engines.worker import Worker
from engram.errors import EngramError, Interrupted
from engram.runner.execute import execute
from engram.signals import keeping, waiting_for_signals
from engram.specs import Spec


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


def room_here(engine: Manner) -> int:
    """Workers for which this machine has cores and memory."""
    limits = [cores() // (engine.threads or 1), engine.workers]
    limits += [memory() // engine.memory] if engine.memory else []
    return max(1, min(limit for limit in limits if limit is not None))


@dataclass(frozen=True)
class Local(Manner):
    """This machine. Where `threads` is set, who runs beside whom changes no number."""

    def run(self, specs: Sequence[Spec], on_row: OnRow) -> Outcome:
        """Runs each Spec to its end, or reads it if it has ended. `on_row` sees every row once, stored rows too.

        A Spec that fails does not stop the others. Ctrl-C lets every run finish its step and save, then raises
        Interrupted; so do SIGTERM and SIGHUP where the command line listens to them.
        """
        left, over = sorted_out(self.home, specs)
        alone = len(left) == 1 or self.device != "cpu"
        with keeping(lambda: kept(self.home, [*left, *over])), waiting_for_signals() as stopped:
            if alone:
                failed = self._one_by_one(left, on_row, stopped)
            else:
                failed = Pool(self, Processes(self), [*left.values()], on_row, stopped, cores()).run()
            failed |= read_over(over, self, on_row)
        return outcome(specs, self.home, failed)

    def side_by_side(self) -> int:
        return room_here(self) if self.device == "cpu" else 1

    def wall(self, seconds: Sequence[float], at_once: int | None = None) -> float | None:
        """A run that is alone here has all cores, unless its threads are named."""
        return sum(seconds) / (self.threads or cores()) if len(seconds) == 1 else super().wall(seconds, at_once)

    def _one_by_one(self, left: Mapping[str, Spec], on_row: OnRow, stopped: Callable[[], bool]) -> dict[str, Exception]:
        """Here, with all threads."""
        failed: dict[str, Exception] = {}
        for id, spec in left.items():
            try:
                torch.set_num_threads(threads_for(spec, self.home, self.threads or cores(), cores()))
                see = lambda row, spec=spec: on_row(spec, row)  # noqa: E731
                execute(spec, self.home, self.device, see, stopped, self.path, snapshots=self.snapshots)
            except Interrupted:
                raise
            except Exception as error:
                failed[id] = error
                self.on_failure(id, error)
        return failed


@dataclass(frozen=True)
class Processes:
    """A crew of processes of this machine, as many as its cores and its memory have room for."""

    engine: Local

    def hire(self, workers: Sequence[AnyWorker]) -> Worker | None:
        return Worker(self.engine.home, self.engine.path, self.engine.snapshots) if len(workers) < self.room else None

    @property
    def room(self) -> int:
        return room_here(self.engine)

    def wait(self, workers: Sequence[AnyWorker]) -> None:
        answers = [worker.answers for worker in workers if isinstance(worker, Worker)]
        select(answers, [], [], SECONDS_BETWEEN_LOOKS)
