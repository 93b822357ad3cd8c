"""Capacity searches against the same trainings one after another in plain torch, and what giving up early changes."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from engram.bench.baselines import plain_training
from engram.bench.lines import Benchmark, best, threads
from engram.engines.local import cores
from engram.experiments import find
from engram.learning.paths import STORE_PATHS
from engram.models.stores import TwoLayer
from engram.runner.execute import path_of, search_rows
from engram.theory.capacity import linear_trained_capacity, mlp_capacity

SLICE, WIDTHS, TRAININGS = (8, 16, 32, 45), (8, 11, 16, 22, 32), 40


def linear(bench: object) -> Iterator[Benchmark]:
    """The search of memory.linear-trained on a slice: seed 0, four widths. The baseline, a minute, is timed once."""
    searches = [s for s in _published("memory.linear-trained") if s.model.d in SLICE][::-1]  # the largest first
    path = path_of(searches[0])
    rows = [list(search_rows(search, path)) for search in searches]
    with threads(1), ThreadPoolExecutor(cores()) as pool:
        ours = best(lambda: list(pool.map(lambda search: list(search_rows(search, path)), searches)), 2)
    used = _faster(searches[0])
    with threads(used):
        timed = [_plain(s, row["n"], s.plan.steps) for s, of in zip(searches, rows, strict=True) for row in of]
    plain = sum(seconds for seconds, _ in timed)
    given_up = [row["steps"] for of in rows for row in of]
    alike = sum(t * min(1, ours_took / steps) for (t, steps), ours_took in zip(timed, given_up, strict=True)) / cores()
    about = f"{len(timed)} trainings of seed 0, d = 8, 16, 32, 45; ours: {path} path, {cores()} cores; baseline: "
    about += f"autograd and Adam, one training after another, {used} thread(s), the faster choice"
    yield Benchmark("sweep.linear", ours, plain, about)
    about = "the same, if the baseline gave up the same hopeless trainings and ran on all cores at once"
    yield Benchmark("sweep.linear.alike", ours, alike, about)


def hopeless(bench: object) -> Iterator[Benchmark]:
    """200 linear trainings and 40 of an MLP with and without giving up: how many verdicts change, and what it saves."""
    for search in _published("memory.linear-trained"):
        if search.model.d in WIDTHS:
            yield _both_ways(search, linear_trained_capacity(search.model.d))
    mlp = next(s for s in _published("memory.mlp-trained") if s.model == TwoLayer(d=8, m=16))
    yield _both_ways(mlp, mlp_capacity(mlp.model.m * mlp.model.d))


def _both_ways(search: Any, expected: float) -> Benchmark:
    tried = [round(expected * (0.9 + 0.6 * i / TRAININGS)) for i in range(TRAININGS)]
    patient = search.model_copy(update={"plan": search.plan.model_copy(update={"hopeless": ()})})
    with threads(1):
        (early, seconds), (late, without) = (_verdicts(spec, tried) for spec in (search, patient))
    changed = sum(a != b for a, b in zip(early, late, strict=True))
    shape = "".join(f"-{name}{getattr(search.model, name)}" for name in ("d", "m") if hasattr(search.model, name))
    about = f"{TRAININGS} trainings, N = {tried[0]} … {tried[-1]}, {sum(late)} store all; {changed} verdicts changed"
    return Benchmark(f"sweep.hopeless{shape}", seconds, without, about)


def _verdicts(search: Any, tried: Sequence[int]) -> tuple[list[bool], float]:
    train, began = STORE_PATHS[path_of(search)], time.perf_counter()
    found = []
    for seed, n in enumerate(tried, start=100):
        problem = search.task.problem(n, search.model.d, seed)
        found.append(train(search.model, search.plan, problem, [seed], search.target, lambda: False)[0])
    return [outcome.accuracy > search.target for outcome in found], time.perf_counter() - began


def _published(name: str) -> list[Any]:
    return list(find(name).specs("quick", [0]))


def _faster(search: Any) -> int:
    """A small product may be faster on one thread than on all: the baseline takes what suits it."""
    seconds = {}
    for count in {1, cores()}:
        with threads(count):
            seconds[count] = best(lambda: _plain(search, 300, 100), 2)
    return min(seconds, key=lambda count: seconds[count])


def _plain(search: Any, n: int, most: int) -> tuple[float, int]:
    """Seconds and steps of plain torch for one training."""
    plan, W = search.plan, search.model.init(search.seed)["W"]
    p = search.task.problem(n, search.model.d, search.seed)
    began = time.perf_counter()
    steps = plain_training(p.X[0], p.U[0], p.f[0], W, plan.optimiser.lr, most, plan.check_every)
    return time.perf_counter() - began, max(1, steps)
