"""Two tokens that overlap: large steps make the loss spike, and answer all tokens rightly much sooner.

N = M = d = 2, U = I, e_1 = (1, 0), e_2 = (a, √(1−a²)), full-batch descent from W = 0: nothing is random. At a = 0.95
the frequent token (p = 0.75) pulls the rare one to the wrong side first. The grid is that of the published code, less
its column a = 1, where no matrix can be right, and with the weight of each plot as it is labelled.

    engram run scaling.spikes
"""

from collections.abc import Sequence
from math import exp, log

import numpy as np

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Rows, Runs, Scale, Seeds, checks
from engram.experiments.memory import exponent

TIMES = "quick and paper 1 s a seed on 2 cores"

SOURCE = "Cabannes, Simsek and Bietti 2024, section on two particles, and its published code"
CLAIMS = {
    "scaling.spikes": "At a = 0.95 steps of 10 spike and are perfect at step 2; steps of 1 descend until step 52.",
    "scaling.large-steps-faster": "For 0.5 ≤ a < 1 and steps from 0.1 to 10, larger steps are perfect sooner.",
}
P = 0.75
LOSSES = {10.0: {0: 0.693, 1: 1.163, 2: 0.498, 3: 0.753}, 1.0: {0: 0.693, 1: 0.590, 2: 0.556, 34: 0.372}}
FIRST = {10.0: 2, 1.0: 52}
TABLE = {0.0: (1, 0.00100), 0.5: (4, 0.00202), -0.5: (1, 0.00067)}  # a: first perfect step, loss after 1000 steps
STEPS = {"smoke": (60, 60), "quick": (1000, 1000), "paper": (1000, 1000)}  # of the table and of the grid
POINTS = {"smoke": 3, "quick": 10, "paper": 10}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """By (a, η), and the grid; nothing depends on the seed."""
    long, grid = STEPS[scale]
    runs = {(0.95, rate): 60 for rate in LOSSES} | {(a, 1.0): long for a in TABLE}
    paths = {(a, r): checks("dynamics.two_tokens", [0], steps, a=a, p=P, rate=r) for (a, r), steps in runs.items()}
    return {**paths, "grid": checks("dynamics.first_perfect", [0], grid, points=POINTS[scale])}


def claims(runs: Runs) -> Claimed:
    yield "scaling.spikes", [*_spikes(runs)]
    yield "scaling.large-steps-faster", [*_grid(runs["grid"][0].rows)]


def _spikes(runs: Runs) -> Measures:
    for rate, losses in LOSSES.items():
        rows = runs[0.95, rate][0].rows
        off = max((rows[t]["loss"] - loss for t, loss in losses.items()), key=abs)
        steps = ", ".join(map(str, losses))
        yield Measure.exact(f"a=0.95, η={rate:g}: loss at steps {steps} minus published, largest", off, 1e-3)
        yield Measure.exact(
            f"a=0.95, η={rate:g}: first perfect step minus {FIRST[rate]}", first(rows) - FIRST[rate], 0.5
        )
    later = max(row["error"] for row in runs[0.95, 10.0][0].rows[2:35])
    yield Measure.exact("a=0.95, η=10: largest 0/1 error of steps 2 to 34 minus 0.75", later - 0.75, 1e-9)
    for a, (step, loss) in TABLE.items():
        rows = runs[a, 1.0][0].rows
        yield Measure.exact(f"a={a:g}, η=1: first perfect step minus {step}", first(rows) - step, 0.5)
        yield Measure.exact(f"a={a:g}, η=1: loss at step 1000 minus {loss:.5f}", rows[-1]["loss"] - loss, 1e-5)


def first(rows: Rows) -> int:
    """The first step without an error; one more than there are if there is none."""
    return next((t for t, row in enumerate(rows) if row["error"] == 0), len(rows))


def _grid(rows: Rows) -> Measures:
    """Cells in which a memory can be perfect; where η=0.1 is perfect at once, nothing is compared."""
    cells = possible(rows)
    ends = [(found[0]["first"], found[-1]["first"]) for found in cells]
    open_ = [(slow, fast) for slow, fast in ends if slow > 1]
    sooner = float(np.mean([fast < slow for slow, fast in open_]))
    yield Measure.known(
        "share of (a, p) in which η=10 is perfect before η=0.1, where that is not so at once", sooner, 0.95
    )
    by_rate = [
        {"rate": same[0]["rate"], "first": _geometric([row["first"] for row in same])}
        for same in zip(*cells, strict=True)
    ]
    slope = exponent(by_rate, "first", "rate")
    yield Measure.known("exponent of the first perfect step in η, geometric mean over (a, p)", slope, -1.1, -0.5)


def possible(rows: Rows) -> list[Rows]:
    """For every a < 1 and p the cells by their rates, from small to large."""
    found: dict[tuple[float, float], list[dict[str, float]]] = {}
    for row in rows:
        if row["a"] < 1:
            found.setdefault((row["a"], row["p"]), []).append(row)
    return [sorted(same, key=lambda row: row["rate"]) for same in found.values()]


def _geometric(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values))


def figure(runs: Runs) -> Figure:
    from engram.show.memory_dynamics import spikes

    paths = {rate: runs[0.95, rate][0].rows for rate in LOSSES}
    return spikes(paths, P, 0.95, runs["grid"][0].rows)
