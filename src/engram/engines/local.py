"""The local engine: one Spec in this process with all threads, many Specs in processes with one thread each."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from engram.engines.worker import Worker
from engram.errors import EngramError, Interrupted
from engram.records import Record
from engram.records.files import Row
from engram.records.follow import Follower
from engram.run.execute import execute
from engram.specs import Spec
from engram.specs.spec import run_id

OnRow = Callable[[Spec, Row], None]
SECONDS_BETWEEN_LOOKS = 0.05


def choose_device(wanted: str) -> tuple[str, str]:
    """A device and why. `auto` takes cuda, else mps, else cpu."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wanted == "auto":
        device = next(name for name, found in there.items() if found)
        return device, "the first of cuda, mps, cpu that this machine has"
    if wanted not in there:
        raise EngramError(f"--device {wanted!r}: allowed are auto, {', '.join(there)}")
    if not there[wanted]:
        raise EngramError(f"--device {wanted}: torch finds no such device here; use --device auto")
    return wanted, "as asked"


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_all(specs: Sequence[Spec], home: Path, device: str, on_row: OnRow, path: str = "auto") -> list[Record]:
    """Records of all Specs, in order. Ctrl-C lets every run finish its step and save, then raises Interrupted."""
    specs = list({run_id(spec): spec for spec in specs}.values())
    unfinished = [spec for spec in specs if Record(home / run_id(spec)).ended is None]
    with stop_on_ctrl_c() as stopped:
        if len(unfinished) > 1 and device == "cpu":
            _in_processes(unfinished, home, on_row, stopped, path)
        return _one_by_one(specs, home, device, on_row, stopped, path)


def _one_by_one(
    specs: Sequence[Spec], home: Path, device: str, on_row: OnRow, stopped: Callable[[], bool], path: str
) -> list[Record]:
    """Here, with all threads. Ended runs are only read; one that diverged is refused."""
    records = []
    for spec in specs:
        torch.set_num_threads(threads_for(spec, home, cores()))
        records.append(execute(spec, home, device, lambda row, spec=spec: on_row(spec, row), stopped, path))
    return records


def threads_for(spec: Spec, home: Path, wanted: int) -> int:
    """A resumed run keeps the threads it began with, so that its numbers stay the same to the byte."""
    record = Record(home / run_id(spec))
    begun = (record.folder / "env.json").exists()
    return min(record.env["sittings"][0]["threads"], cores()) if begun else wanted


@contextmanager
def stop_on_ctrl_c() -> Iterator[Callable[[], bool]]:
    """First Ctrl-C: ask the run to stop after its step. Second: stop at once; what was saved stays valid."""
    asked: list[int] = []

    def handler(number: int, frame: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    if threading.current_thread() is not threading.main_thread():  # only the main thread may hear signals
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)


def _in_processes(specs: Sequence[Spec], home: Path, on_row: OnRow, stopped: Callable[[], bool], path: str) -> None:
    """As many at a time as there are cores; each takes the next Spec when it is done. They speak through records."""
    waiting, given = list(specs), []
    seen = {run_id(spec): Follower(home / run_id(spec)) for spec in specs}
    workers: list[Worker] = []
    try:
        workers += [Worker(home, path) for _ in range(min(cores(), len(specs)))]
        while (waiting or any(worker.busy() for worker in workers)) and not stopped():
            for worker in workers:
                if not worker.busy() and waiting:
                    given.append(waiting.pop(0))
                    worker.give(given[-1], threads_for(given[-1], home, 1))
            time.sleep(SECONDS_BETWEEN_LOOKS)
            given = _show_new_rows(given, home, seen, on_row)
        for worker in workers:
            worker.stop() if stopped() else worker.close()
        for worker in workers:
            worker.wait()
    finally:
        for worker in workers:
            with suppress(OSError):
                worker.kill()
    _show_new_rows(given, home, seen, on_row)
    if stopped():
        raise Interrupted([run_id(spec) for spec in specs if Record(home / run_id(spec)).ended is None])


def _show_new_rows(given: Sequence[Spec], home: Path, seen: dict[str, Follower], on_row: OnRow) -> list[Spec]:
    """Tells what is new, and returns the Specs that may still have more to tell."""
    ended = {run_id(spec) for spec in given if (home / run_id(spec) / "digest.json").exists()}
    for spec in given:
        for row in seen[run_id(spec)].poll():
            on_row(spec, row)
    return [spec for spec in given if run_id(spec) not in ended]
