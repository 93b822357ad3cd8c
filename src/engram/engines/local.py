"""The local engine: one Spec in this process with all threads, many Specs over processes with one thread each."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import torch

from engram.errors import EngramError, Interrupted
from engram.execute import execute
from engram.records import Record, Spec
from engram.records.encode import Code, decode, encode, user_code
from engram.records.files import Row, complete_lines, parse_rows
from engram.records.spec import run_id

OnRow = Callable[[Spec, Row], None]


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


def run_all(specs: Sequence[Spec], home: Path, device: str, on_row: OnRow) -> list[Record]:
    """Records of all Specs, in order. Ctrl-C lets every run finish its step and save, then raises Interrupted."""
    specs = list({run_id(spec): spec for spec in specs}.values())
    unfinished = [spec for spec in specs if not _done(spec, home)]
    if len(unfinished) <= 1 or device != "cpu":
        return _one_by_one(specs, home, device, on_row)
    _in_processes(unfinished, home, on_row)
    return [execute(spec, home) for spec in specs]  # all ended: reads them, and refuses one that diverged


def _done(spec: Spec, home: Path) -> bool:
    return Record(home.resolve() / run_id(spec)).ended is not None


def _one_by_one(specs: Sequence[Spec], home: Path, device: str, on_row: OnRow) -> list[Record]:
    with stop_on_ctrl_c() as stopped:
        records = []
        for spec in specs:
            torch.set_num_threads(_threads(spec, home))
            records.append(execute(spec, home, device, lambda row, spec=spec: on_row(spec, row), stopped))
        return records


def _threads(spec: Spec, home: Path) -> int:
    """All cores; but a resumed run keeps the threads it began with, so that its numbers stay the same to the byte."""
    record = Record(home.resolve() / run_id(spec))
    began = record.env["sittings"][0]["threads"] if (record.folder / "env.json").exists() else cores()
    return min(began, cores())


@contextmanager
def stop_on_ctrl_c() -> Iterator[Callable[[], bool]]:
    """First Ctrl-C: ask the run to stop after its step. Second: stop at once; what was saved stays valid."""
    asked: list[int] = []

    def handler(number: int, frame: object) -> None:
        if asked:
            signal.signal(number, signal.default_int_handler)
            raise KeyboardInterrupt
        asked.append(number)

    before = signal.signal(signal.SIGINT, handler)
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)


def _in_processes(specs: Sequence[Spec], home: Path, on_row: OnRow) -> None:
    workers = min(cores(), len(specs))
    with (
        stop_on_ctrl_c() as stopped,
        ProcessPoolExecutor(workers, get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)) as pool,
    ):
        futures = {pool.submit(_work, *_portable(spec), str(home.resolve()), os.getpid()): spec for spec in specs}
        seen = dict.fromkeys(map(run_id, specs), 0)
        while (pending := wait(futures, timeout=0.2).not_done) and not stopped():
            _show_new_rows(specs, home, seen, on_row)
        for future in pending:
            future.cancel()
    _show_new_rows(specs, home, seen, on_row)
    _raise_first_failure(futures)


def _portable(spec: Spec) -> tuple[dict, Code]:
    return encode(spec), user_code(spec)


def _work(data: dict, code: Code, home: str, parent: int) -> int | None:
    """In a worker: run one Spec; returns the step at which it was stopped, None at the end."""
    with stop_on_ctrl_c() as stopped:
        try:
            execute(decode(data, code), Path(home), stop=lambda: stopped() or os.getppid() != parent)
        except Interrupted as interrupted:
            return interrupted.step
    return None


def _show_new_rows(specs: Sequence[Spec], home: Path, seen: dict[str, int], on_row: OnRow) -> None:
    """Workers speak through their records: read what was appended since the last look."""
    for spec in specs:
        folder = home.resolve() / run_id(spec)
        if not (folder / "rows.jsonl").exists():
            continue
        lines = complete_lines((folder / "rows.jsonl").read_bytes())
        for row in parse_rows(folder, b"".join(line + b"\n" for line in lines[seen[folder.name] :])):
            on_row(spec, row)
        seen[folder.name] = max(seen[folder.name], len(lines))


def _raise_first_failure(futures: dict[Future, Spec]) -> None:
    """Real failures first; then, if any run was stopped or never begun, the interruption."""
    try:
        stops = {run_id(spec): future.result() for future, spec in futures.items() if not future.cancelled()}
    except BrokenProcessPool:
        raise EngramError(
            "a worker process died (out of memory?); its runs are kept and resumed by the same command"
        ) from None
    for run, step in stops.items():
        if step is not None:
            raise Interrupted(run, step)
    for future, spec in futures.items():
        if future.cancelled():
            raise Interrupted(run_id(spec))
