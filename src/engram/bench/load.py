"""A very long run and very many runs: how long it takes to look at them, and how much memory, against what is promised.

Every command is a process of its own, as a person would type it.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from engram.bench.lab import served, socket_of
from engram.bench.lines import Benchmark
from engram.learning import SGD, Plan
from engram.models import Simplified
from engram.records import files
from engram.records.sealed import seal
from engram.records.weights import initial_weights
from engram.records.writer import write_spec
from engram.runner.execute import environment
from engram.specs import Train
from engram.specs.spec import run_id
from engram.tasks import Bigram

ROWS, RUNS, TIMES = 1_000_000, 5_000, 3
ALLOWED = {"s": 5.0, "MB": 500.0}
ALLOWED_FOR_RUNS = 2.0  # seconds
MEASURED = {"loss": 4.482544, "loss.in_context": 4.482544, "accuracy.in_context": 0.01558442}
PROBED = {"recall.W_O2": 0.6, "recall.W_K2": 0.7, "recall.W_K1": 0.5, "recall.W_K1.t<64": 0.8} | {
    f"attention.{name}": 0.1 for name in ("previous", "induction", "chain")
}


def rows(bench: Any) -> Iterator[Benchmark]:
    """A training of a million rows, as they are written: three columns in each, seven more in every tenth."""
    with tempfile.TemporaryDirectory() as home:
        run = _long_run(Path(home))
        words = {"show": ("runs", "show", run), "report": ("report", run, "-o", f"{home}/r.html")}
        used = {name: min(_used(home, *command) for _ in range(TIMES)) for name, command in words.items()}
        used["lab"] = _used_by_lab(home, run)
        for name, found in used.items():
            for unit, value in zip(ALLOWED, found, strict=True):
                about = f"{ROWS} rows; baseline: what is promised"
                yield Benchmark(f"load.rows.{name}.{unit}", value, ALLOWED[unit], about, unit)


def runs(bench: Any) -> Iterator[Benchmark]:
    """Five thousand finished runs, five hundred of them seeds of an experiment of the ledger; listed a second time."""
    with tempfile.TemporaryDirectory() as home:
        _many_runs(Path(home))
        for name, words in {"ls": ("runs", "ls"), "ledger": ("ledger",)}.items():
            first, again = (_used(home, *words)[0] for _ in range(2))
            about = f"{RUNS} runs; the first time {first:.1f} s; baseline: what is promised"
            yield Benchmark(f"load.runs.{name}", again, ALLOWED_FOR_RUNS, about)
        yield Benchmark("load.runs.lab", _listed_in_lab(home), ALLOWED_FOR_RUNS, f"{RUNS} runs; the list of the page")


def _training(seed: int, steps: int) -> Train:
    plan = Plan(optimiser=SGD(lr=0.2), steps=steps, batch=4, trained=("W_K1", "W_K2", "W_O2"))
    return Train(task=Bigram(T=32), model=Simplified(d=16), plan=plan, seed=seed)


def _long_run(home: Path) -> str:
    spec = _training(0, ROWS - 1)
    lines = ({"step": i} | MEASURED | (PROBED if i % 10 == 0 else {}) for i in range(ROWS))
    return _write(home, spec, b"".join(map(files.line_of, lines)), weights=True)


def _many_runs(home: Path) -> None:
    from engram.experiments import find

    known = find("birth.joint").specs("quick", range(RUNS // 10))
    for spec in (*known, *(_training(seed, 3) for seed in range(RUNS - len(known)))):
        lines = ({"step": i} | MEASURED | PROBED for i in range(4))
        _write(home, spec, b"".join(map(files.line_of, lines)))


def _write(home: Path, spec: Any, content: bytes, weights: bool = False) -> str:
    """A finished record, as a run would leave it."""
    folder = home / run_id(spec)
    write_spec(spec, folder)
    (folder / "rows.jsonl").write_bytes(content)
    files.write_env(folder, [environment("cpu", "fast") | {"from_step": 0}])
    if weights:
        trained = {name: initial_weights(spec)[name] for name in spec.plan.trained}
        files.replace(folder / f"snapshots/{spec.steps:06d}.safetensors", seal(trained, {"step": str(spec.steps)}))
    names = ["spec.json", "rows.jsonl", *(f"snapshots/{step:06d}.safetensors" for step in [spec.steps] if weights)]
    sums = {name: files.sha256((folder / name).read_bytes()) for name in names}
    files.write_digest(folder, {"end": "finished"} | sums)
    return folder.name


# A process begins with the memory of the one that starts it: a small one in between starts the command.
COUNTED = """
import resource, subprocess, sys, time
began = time.perf_counter()
subprocess.run([sys.executable, "-m", "engram", *sys.argv[1:]], stdout=subprocess.DEVNULL, check=True)
print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
"""


def _used(home: str, *words: str) -> tuple[float, float]:
    """Seconds and megabytes of a command."""
    command, env = [sys.executable, "-c", COUNTED, *words], os.environ | {"ENGRAM_HOME": home}
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    seconds, megabytes = map(float, done.stdout.split())
    return seconds, megabytes


def _used_by_lab(home: str, run: str) -> tuple[float, float]:
    """Seconds from opening the run to its curves, and the megabytes of the server."""
    with served(home) as (url, process), connect(socket_of(url), max_size=None) as page:
        began = time.perf_counter()
        page.send(json.dumps({"t": "view", "run": run, "hz": 2.0, "pictures": [], "rows_from": {}}))
        _hear(page, "tick")
        peak = Path(f"/proc/{process.pid}/status").read_text().partition("VmHWM:")[2].split()[0]
        return time.perf_counter() - began, int(peak) / 1024


def _listed_in_lab(home: str) -> float:
    """Seconds from asking to the list."""
    with served(home) as (url, _), connect(socket_of(url), max_size=None) as page:
        began = time.perf_counter()
        page.send(json.dumps({"t": "runs"}))
        _hear(page, "runs")
        return time.perf_counter() - began


def _hear(page: ClientConnection, kind: str) -> None:
    while json.loads(page.recv(timeout=120)).get("t") != kind:
        pass
