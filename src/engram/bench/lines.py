"""One line of a benchmark, and how seconds and memory are measured."""

import json
import subprocess
import sys
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
    """Use this many threads of torch inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


PEAK = """
import importlib, json, sys
from pathlib import Path
def status(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1]) / 1024
module, name = sys.argv[1].rsplit(".", 1)
step = getattr(importlib.import_module(module), name)()
Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
small = status("VmRSS")
step()
print(json.dumps(status("VmHWM") - small))
"""


def peaks(name: str, ours: str, baseline: str) -> Benchmark:
    """Growth of peak memory by one step; each side is named by a function that makes its step."""
    value, plain = in_process(PEAK, ours), in_process(PEAK, baseline)
    about = "growth of peak memory by one step in a fresh process (Linux)"
    return Benchmark(name, value, "MB", plain, plain / value, about=about)


def in_process(code: str, argument: str) -> float:
    """The last number that a fresh Python process prints."""
    run = subprocess.run([sys.executable, "-c", code, argument], capture_output=True, text=True, check=True)
    return json.loads(run.stdout.strip().splitlines()[-1])
