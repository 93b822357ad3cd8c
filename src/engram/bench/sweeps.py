"""Capacity searches against the same trainings one after another in plain torch, and what giving up early changes."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from engram.bench.baselines import plain_training
from engram.bench.lines import Benchmark, best
from engram.engines.local import cores
from engram.execute import path_of, search_rows
from engram.experiments import find
from engram.learning.paths import STORE_PATHS
from engram.records import Search
from engram.theory.capacity import linear_trained_capacity

WIDTHS, SEED, TRAININGS = (8, 11, 16, 22, 32, 45), 0, 40


def linear(bench: object) -> Iterator[Benchmark]:
    """The search of memory.linear-trained for one seed and d ≤ 45."""
    searches = {s.model.d: s for s in _published() if s.model.d in WIDTHS}
    rows = {d: list(search_rows(search, path_of(search))) for d, search in searches.items()}

    def ours() -> None:
        with ThreadPoolExecutor(cores()) as pool:  # the largest first, so that no core waits long
            list(pool.map(lambda s: list(search_rows(s, path_of(s))), list(searches.values())[::-1]))

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    seconds = best(ours, 3)
    torch.set_num_threads(_faster(searches[45], threads))
    plain = {d: _plain(searches[d], [row["n"] for row in rows[d]]) for d in WIDTHS}
    count = sum(map(len, rows.values()))
    used = torch.get_num_threads()
    about = f"{count} trainings of seed {SEED}, d = 8 … 45, on {cores()} cores; baseline: one after another by autograd"
    about += f" and torch's Adam, threads: {used} (the faster of 1 and {threads})"
    torch.set_num_threads(threads)
    yield Benchmark("sweep.linear", seconds, "s", sum(plain.values()), sum(plain.values()) / seconds, about=about)


def hopeless(bench: object) -> Iterator[Benchmark]:
    """200 trainings with and without giving up: how many verdicts change, and what it saves."""
    torch.set_num_threads(1)
    for d in WIDTHS[:-1]:
        search = next(s for s in _published() if s.model.d == d)
        tried = [round(linear_trained_capacity(d) * (0.9 + 0.6 * i / TRAININGS)) for i in range(TRAININGS)]
        patient = search.model_copy(update={"plan": search.plan.model_copy(update={"hopeless": ()})})
        began = time.perf_counter()
        early = [_verdict(search, n, 100 + i) for i, n in enumerate(tried)]
        between = time.perf_counter()
        late = [_verdict(patient, n, 100 + i) for i, n in enumerate(tried)]
        seconds, without = between - began, time.perf_counter() - between
        changed = sum(a != b for a, b in zip(early, late, strict=True))
        about = f"d = {d}: {TRAININGS} trainings, N = {tried[0]} … {tried[-1]}, {sum(late)} store all; "
        about += f"{changed} verdicts changed by giving up"
        yield Benchmark(f"sweep.hopeless.d{d}", seconds, "s", without, without / seconds, about=about)


def _published() -> list[Any]:
    return [spec for spec in find("memory.linear-trained").specs("quick", [SEED]) if isinstance(spec, Search)]


def _faster(search: Any, threads: int) -> int:
    """A small product may be faster on one thread than on all: the baseline takes what suits it."""
    seconds = {}
    for count in {1, threads}:
        torch.set_num_threads(count)
        seconds[count] = best(lambda: _plain(search, [300], steps=100), 2)
    return min(seconds, key=lambda count: seconds[count])


def _plain(search: Any, sizes: list[int], steps: int | None = None) -> float:
    plan, W = search.plan, search.model.init(search.seed)["W"]
    problems = [search.task.problem(n, search.model.d, search.seed) for n in sizes]
    began = time.perf_counter()
    for p in problems:
        plain_training(p.X[0], p.U[0], p.f[0], W, plan.optimiser.lr, steps or plan.steps, plan.check_every)
    return time.perf_counter() - began


def _verdict(search: Any, n: int, seed: int) -> bool:
    problem = search.task.problem(n, search.model.d, seed)
    train = STORE_PATHS[path_of(search)]
    return train(search.model, search.plan, problem, [seed], search.target, lambda: False)[0].accuracy > search.target
