"""Attention or MLP: facts can be stored in either, but attention must be wide enough to tell them apart (Fig. 4 right).

S = R = 32, D = 8 (1024 facts), d = 32, heads of width 8; one training for each number of heads and of MLP units: Adam
with learning rate 0.01, at most 16384 steps, until all of 1024 test prompts are answered. The best check counts.
`quick` is half of it in every size: 256 facts, d = 16, heads of width 4.

    engram run facts.trade-off
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import inf, sqrt

import numpy as np

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Runs, Scale, Seeds, checks
from engram.claims.readings import counted
from engram.learning import FreshBatch

SOURCE = "Understanding factual recall in transformers, Fig. 4 right (protocol of its code)"
CLAIMS = {
    "facts.either-suffices": "Attention alone stores all facts, and so do few heads with an MLP.",
    "facts.attention-floor": "Too few heads cannot be rescued by the MLP.",
}
SEEDS = {"quick": 5, "paper": 3}
LAW = "learning.fact_search.best_accuracy"
SIZES = {
    "smoke": {"S": 4, "R": 4, "D": 2, "T": 8, "d": 8, "d_h": 2, "steps": 20},
    "quick": {"S": 16, "R": 16, "D": 8, "T": 32, "d": 16, "d_h": 4, "steps": 8192},
    "paper": {"S": 32, "R": 32, "D": 8, "T": 32, "d": 32, "d_h": 8, "steps": 16384},
}
HEADS = {"smoke": (1, 2), "quick": (1, 2, 12, 32), "paper": (1, 2, 4, 6, 8, 12, 20, 32)}
UNITS = {"smoke": (0, 4), "quick": (0, 16, 128), "paper": (0, 16, 32, 48, 64, 96, 128)}
FEW = {"smoke": 2, "quick": 12, "paper": 8}  # heads that suffice with an MLP; published: 5
FULL, MOST = 0.99, 0.95  # of the published boundary; of what a handful of seeds can show
BOUNDARY = ((1280, 4096), (1280, 1660), (4700, 0))  # attention d·d_h·H and MLP d·m, known at the published sizes only
SMALL_FLOORS = {1: 0.6, 2: 0.9}  # ours; published: 0.1–0.3 with one head and about 0.6 with two, whatever the MLP
FLOORS = {"smoke": SMALL_FLOORS, "quick": SMALL_FLOORS, "paper": {1: 0.5, 2: 0.8}}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    sizes = product(HEADS[scale], UNITS[scale])
    return {(heads, m): checks(LAW, seeds, **SIZES[scale], heads=heads, m=m) for heads, m in sizes}


def accuracies(runs: Runs) -> dict[tuple[int, int], list[float]]:
    """Accuracy of each seed, by heads and MLP units."""
    return {size: [record.rows[0]["accuracy"] for record in same] for size, same in runs.items()}


def claims(runs: Runs) -> Claimed:
    found, few = accuracies(runs), FEW[runs.scale]
    heads, units = HEADS[runs.scale][-1], UNITS[runs.scale][-1]
    either = [
        _answered(f"{heads} heads, no MLP: accuracy", found[heads, 0], low=MOST),
        _answered(f"{few} heads, {units} units: accuracy", found[few, units], low=MOST),
        _answered(f"{few} heads, no MLP: accuracy", found[few, 0], high=MOST),
    ]
    yield "facts.either-suffices", [*either, *(_boundary(found, units) if runs.scale == "paper" else ())]
    yield "facts.attention-floor", [_with_best_mlp(runs, heads, high) for heads, high in FLOORS[runs.scale].items()]


def _with_best_mlp(runs: Runs, heads: int, high: float) -> Measure:
    found = accuracies(runs)
    most = np.max([found[heads, m] for m in UNITS[runs.scale]], axis=0).tolist()
    return _answered(f"{heads} head{'s' * (heads > 1)}: accuracy with the best MLP", most, high=high)


def _answered(name: str, accuracies: Sequence[float], low: float = -inf, high: float = inf) -> Measure:
    """A share of the test prompts."""
    prompts = FreshBatch().tests
    return Measure.share(name, counted(accuracies, prompts), prompts, low, high)


def _boundary(found: dict[tuple[int, int], list[float]], units: int) -> Measures:
    """Heads at which accuracy passes 0.99 with the largest MLP and with none, over the published boundary."""
    for m, published in ((units, BOUNDARY[0][0] / 256), (0, BOUNDARY[-1][0] / 256)):
        over = [turn / published for turn in _turns(found, m)]
        yield Measure.over_seeds(f"{m} units: heads needed over {published:.1f}", over, 0.67, 1.5)


def _turns(found: dict[tuple[int, int], list[float]], m: int) -> Iterator[float]:
    """For each seed the geometric mean of the most heads that fail and the next."""
    heads = sorted({h for h, _ in found})
    for seed in range(len(found[heads[0], m])):
        failed = [h for h in heads if found[h, m][seed] < FULL]
        behind = [h for h in heads if h > max(failed, default=0)]
        yield sqrt(max(failed, default=1) * (behind[0] if behind else 2 * heads[-1]))


def figure(runs: Runs) -> Figure:
    from engram.show.facts import trade_off

    sizes = runs.records[0].check.sizes
    cells = {
        (sizes["d"] * sizes["d_h"] * heads, sizes["d"] * m): float(np.mean(values))
        for (heads, m), values in accuracies(runs).items()
    }
    return trade_off(cells, facts=sizes["S"] * sizes["R"], published=BOUNDARY if runs.scale == "paper" else ())
