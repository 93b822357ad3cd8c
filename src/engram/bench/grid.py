"""The grid of optimisers, estimated as a whole: the kernel against torch, cell by cell, one thread each."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import torch

from engram.bench.lines import Benchmark, best
from engram.errors import EngramError
from engram.laws.online_grid import CELLS, WAYS, Way, way_of
from engram.learning.online import Online, initial, train, train_plainly
from engram.native import kernel
from engram.tasks.zipf import Zipf

TASK, SEEDS, CELL = Zipf(), 10, CELLS["all"]
SLICE = {16: (33, 5), 64: (17, 4), 256: (9, 3), 1024: (5, 2)}  # by batch: steps of ours and of torch that are timed


def grid(bench: Any) -> Iterator[Benchmark]:
    """The seconds of a step for every model, optimiser, layer norm, width and batch, times the steps of the grid.

    Ours passes the smaller numbers of samples on its way to the largest; the baseline trains for each of them, as the
    published code does. Both on one thread: the grid itself runs on as many processes as there are cores.
    """
    if kernel() is None:
        raise EngramError("bench grid: there is no compiled kernel here; `engram doctor` says why")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        by_width = {d: _hours_at(d) for d in CELL.widths}
    finally:
        torch.set_num_threads(threads)
    for d, (ours, plain) in by_width.items():
        yield Benchmark(f"grid.d-{d}", ours, plain, "core-hours of all trainings at this width", unit="h")
    ours, plain = (sum(hours) for hours in zip(*by_width.values(), strict=True))
    about = f"core-hours of 40,320 trainings, from a step of {len(WAYS) * 28} kinds; baseline: torch, cell by cell"
    yield Benchmark("grid", ours, plain, about, unit="h")


def _hours_at(d: int) -> tuple[float, float]:
    """Core-hours at one width, ours and torch's."""
    seconds = [_seconds(way, d, batch) for way, batch in product(WAYS, CELL.batches)]
    return sum(ours for ours, _ in seconds) / 3600, sum(plain for _, plain in seconds) / 3600


def _seconds(way: Way, d: int, batch: int) -> tuple[float, float]:
    """Of the trainings of one kind, all rates and seeds."""
    (kind, optimiser), (some, few) = way_of(*way[:2]), SLICE[batch]
    how = Online(kind=kind, optimiser=optimiser, layernorm=way[2], d=d, lr=1.0, batch=batch)
    first, tokens = initial(TASK, kind, d, 0), TASK.sample(some * batch, 0)
    set_up, longer = (best(lambda n=n: train(how, TASK, first, tokens[: n * batch], [n * batch]), 3) for n in (1, some))
    step = max(0.0, longer - set_up) / (some - 1)
    plain = best(lambda: train_plainly(how, TASK, first, tokens[: few * batch], [few * batch]), 2) / few
    trainings, most = len(CELL.rates) * SEEDS, max(CELL.samples) // batch
    return trainings * (set_up + step * most), trainings * plain * sum(n // batch for n in CELL.samples)
