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
from engram.execute import execute
from engram.records import Record, Spec
from engram.records.files import Row
from engram.records.record import new_rows
from engram.records.spec import run_id

OnRow = Callable[[Spec, Row], None]
SECONDS_BETWEEN_LOOKS = 0.2


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
        torch.set_num_threads(_threads(spec, home, cores()))
        records.append(execute(spec, home, device, lambda row, spec=spec: on_row(spec, row), stopped, path))
    return records


def _threads(spec: Spec, home: Path, wanted: int) -> int:
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
    """As many at a time as there are cores. They speak through their records."""
    waiting, running, seen = list(specs), [], dict.fromkeys(map(run_id, specs), 0)
    try:
        while (waiting or running) and not stopped():
            while waiting and len(running) < cores():
                spec = waiting.pop(0)
                running.append(Worker(spec, home, _threads(spec, home, 1), path))
            time.sleep(SECONDS_BETWEEN_LOOKS)
            _show_new_rows(specs, home, seen, on_row)
            running = [worker for worker in running if not worker.done()]
        for worker in running:
            worker.stop()
        for worker in running:
            worker.wait()
    finally:
        for worker in running:
            with suppress(OSError):
                worker.kill()
    _show_new_rows(specs, home, seen, on_row)
    if stopped():
        raise Interrupted([run_id(spec) for spec in specs if Record(home / run_id(spec)).ended is None])


def _show_new_rows(specs: Sequence[Spec], home: Path, seen: dict[str, int], on_row: OnRow) -> None:
    for spec in specs:
        rows, seen[run_id(spec)] = new_rows(home / run_id(spec), seen[run_id(spec)])
        for row in rows:
            on_row(spec, row)
