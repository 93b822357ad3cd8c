"""The cost of one Spec, and its clock: seconds of one core, which other work on the machine hardly moves."""

import resource
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

How = Literal["whole", "slices", "sizes"]


class TooLong(BaseException):
    """What was measured takes longer than it may; no handler of errors may take it for one."""


@dataclass(frozen=True)
class Cost:
    """Of one Spec from its beginning to its sealed record.

    seconds    of one core, user and system
    flops      of the readable pass, as torch counts its products; None where they are not torch's
    bytes      of the record's folder
    how        run whole; from slices of it (steps, trials, draws); or from the same at other sizes
    """

    seconds: float
    flops: float | None
    bytes: float
    how: How

    @property
    def is_run(self) -> bool:
        """Whether it was measured on this Spec itself."""
        return self.how != "sizes"


def cpu() -> float:
    """Seconds that this process, all its threads and its ended children have computed."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raises TooLong once this process has computed so long; only the main thread can be stopped so."""

    def stop(number: int, frame: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def scratch() -> Iterator[Path]:
    """A home for records of which only the cost is kept."""
    with tempfile.TemporaryDirectory(prefix="engram-cost-") as folder:
        yield Path(folder)


def size_of(folder: Path) -> float:
    """Bytes of all files."""
    return float(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()))
