"""One line of a benchmark, and how seconds are measured."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Benchmark:
    """One line: our value, the baseline's, and how many times better ours is."""

    name: str
    value: float
    unit: str
    baseline: float
    ratio: float
    gflops: float | None = None
    about: str = ""

    def to_json(self) -> dict[str, Any]:
        return {name: float(f"{v:.4g}") if isinstance(v, float) else v for name, v in asdict(self).items()}


def best(work: Callable[[], object], times: int) -> float:
    """Seconds of the fastest of several calls, after one that does not count."""
    work()
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """So many threads of torch inside, as many as before outside."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
