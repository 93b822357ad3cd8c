"""One line of a benchmark, and how seconds and memory are measured."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch

from engram.learning import PATHS, choose_path
from engram.learning.plan import Plan
from engram.models.trace import Architecture
from engram.tasks import Task

Work = Callable[[], object]
FIELDS = ("name", "value", "unit", "baseline", "ratio", "gflops", "about")


@dataclass(frozen=True)
class Benchmark:
    """One line: our value, the baseline's, and how many times better ours is."""

    name: str
    value: float
    baseline: float
    about: str
    unit: str = "s"
    gflops: float | None = None

    @property
    def ratio(self) -> float:
        """More is better of what is done in a second, less is better of all else."""
        return self.value / self.baseline if self.unit.endswith("/s") else self.baseline / self.value

    def to_json(self) -> dict[str, Any]:
        cells = {name: getattr(self, name) for name in FIELDS}
        return {name: float(f"{cell:.4g}") if isinstance(cell, float) else cell for name, cell in cells.items()}


def best(work: Work, times: int) -> float:
    """Seconds of the fastest of several calls, after one that does not count."""
    return best_in_turn((work,), times)[0]


def best_in_turn(works: Sequence[Work], times: int) -> list[float]:
    """The same of several works that take turns: what disturbs one of them for a while disturbs all."""
    for work in works:
        work()
    rounds = [[_seconds(work) for work in works] for _ in range(times)]
    return [min(column) for column in zip(*rounds, strict=True)]


def _seconds(work: Work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def our_step(task: Task, model: Architecture, plan: Plan) -> Work:
    """A training step as the loop takes it: sample, gradients, update."""
    w, number, names = model.init(task.N, task.T, 0), count(), plan.trained
    gradients = PATHS[choose_path("auto", model, plan, "cpu")]
    optimiser = plan.optimiser.over({name: w[name] for name in names})

    def step() -> None:
        batch = task.sample(0, next(number), plan.batch)
        batch.check(task, plan.batch, plan.loss)
        measured = gradients(model, w, batch, plan.loss, names)
        for name in names:
            w[name].grad = measured.gradients[name]
        optimiser.step()

    return step


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
    return Benchmark(name, value, plain, about, unit="MB")


def in_process(code: str, argument: str) -> float:
    """The last number that a fresh Python process prints."""
    run = subprocess.run([sys.executable, "-c", code, argument], capture_output=True, text=True, check=True)
    return json.loads(run.stdout.strip().splitlines()[-1])
