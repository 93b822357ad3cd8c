"""Steps beside busy processes. Threads that spin while they wait once made a small step two hundred times as long."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from engram.bench.lines import Benchmark, Work
from engram.engines.local import cores
from engram.tasks import Bigram

OTHERS = 6
SECONDS = 6.0  # for each mean: many turns of the scheduler


def beside_others(bench: Any) -> Iterator[Benchmark]:
    """A small step and one of paper size: seconds beside six busy processes, against the fair share of the cores."""
    small = type(bench)(Bigram(K=5, T=64), 64)
    for name, step in {"small": small.our_step("in-context", 32), "paper": bench.our_step("in-context")}.items():
        quiet = mean_seconds(step)
        with busy(OTHERS):
            loud = mean_seconds(step)
        threads = torch.get_num_threads()
        fair = quiet * max(1.0, (OTHERS + threads) / cores())
        about = f"{loud / quiet:.1f} times the quiet step; baseline: {fair / quiet:.1f} times, {OTHERS} busy processes"
        yield Benchmark(f"step.busy.{name}", loud, fair, about)


def mean_seconds(work: Work) -> float:
    """Seconds of a call, on average: beside others the fastest call is the one that was not disturbed."""
    work()
    began, calls = time.perf_counter(), 0
    while time.perf_counter() - began < SECONDS:
        work()
        calls += 1
    return (time.perf_counter() - began) / calls


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that do nothing but take time."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(1)
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()
