"""What an engine adds to a run: seconds for each of many empty Specs, growth of the driver, and what workers gain.

The baseline of an overhead is the same law called in one process, row by row, with nothing kept: what an engine adds
is records on disk, processes, a cluster, and being able to lose any of them.
"""

import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from engram.bench.lines import Benchmark
from engram.engines import Engine
from engram.engines.local import Local, cores
from engram.engines.ray_cluster import Ray
from engram.learning import SGD, Plan
from engram.models import Simplified
from engram.runner.execute import law_rows
from engram.specs import Check, Spec, Train
from engram.tasks import Bigram

FEW, MANY = 200, 600  # Specs
TRAININGS = 40


def local(bench: object) -> Iterator[Benchmark]:
    with TemporaryDirectory() as home:
        yield from _overhead("engine.local", lambda name: Local(Path(home) / name), f"{cores()} processes")


def ray(bench: object) -> Iterator[Benchmark]:
    if _lacks_ray("engine.ray"):
        return
    with TemporaryDirectory() as home:
        yield from _overhead("engine.ray", lambda name: Ray(Path(home) / name), f"a Ray of {cores()} workers here")


def speedup(bench: object) -> Iterator[Benchmark]:
    """Trainings with one and with two workers of one thread each; what Ray needs to begin is not in it."""
    if _lacks_ray("engine.speedup"):
        return
    specs = [_training(seed) for seed in range(TRAININGS)]
    with TemporaryDirectory() as home:
        one, two = (_seconds(Ray(Path(home) / str(n), workers=n), specs) for n in (1, 2))
    yield Benchmark("engine.speedup", two, one, f"{TRAININGS} small trainings of 60 steps; baseline: one worker")


def _lacks_ray(name: str) -> bool:
    if find_spec("ray") is None:
        print(f"{name}: skipped, since Ray is not installed; pip install 'engram[ray]'", file=sys.stderr)
        return True
    return False


def _overhead(name: str, engine: Callable[[str], Engine], where: str) -> Iterator[Benchmark]:
    """From the first row that is told to the last, so that the beginning of processes is not in it."""
    _seconds(engine("few"), _empty(FEW))
    before = _peak()
    seconds, after = _seconds(engine("many"), _empty(MANY)), _peak()
    plain = _plainly(_empty(FEW)) / FEW
    about = f"each of {MANY} empty Specs, {where}; baseline: the law called in this process, nothing kept"
    yield Benchmark(name, seconds / (MANY - 1), plain, about)
    growth = max(after - before, 1.0) / 1024
    each = 1024 * growth / (MANY - FEW)
    about = f"growth of the driver from {FEW} to {MANY} Specs, {each:.1f} kB each; baseline: its peak"
    yield Benchmark(f"{name}-memory", growth, after / 1024, about, unit="MB")


def _empty(n: int) -> list[Spec]:
    sizes = {"a": 0.5, "p": 0.7, "rate": 0.1}
    return [Check(law="dynamics.two_tokens", draws=1, seed=seed, sizes=sizes) for seed in range(n)]


def _training(seed: int) -> Train:
    plan = Plan(optimiser=SGD(lr=0.2, momentum=0.9, weight_decay=1e-4), steps=60, batch=32)
    return Train(task=Bigram(K=5, T=64), model=Simplified(d=32), plan=plan, seed=seed)


def _seconds(engine: Engine, specs: Sequence[Spec]) -> float:
    told: list[float] = []
    outcome = engine.run(specs, lambda spec, row: told.append(time.perf_counter()))
    outcome.all_records()
    return told[-1] - told[0]


def _plainly(specs: Sequence[Spec]) -> float:
    began = time.perf_counter()
    for spec in specs:
        list(law_rows(spec))  # type: ignore[arg-type]  # Checks
    return time.perf_counter() - began


def _peak() -> float:
    """Kilobytes (Linux)."""
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
