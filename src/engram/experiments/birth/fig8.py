"""Fig. 8: the wider the model, the sooner the output memory W_O2 is learned, more so when the rate is not tuned.

W_O2 is trained alone on in-context positions (K=5 random triggers, uniform outputs), for several widths d: at the
paper's rate 0.2, and at a rate tuned for each width. As published the rate is chosen by its result, but on other seeds:
for each width the rate with the best mean recall over the run on the two tuning seeds. Where it is known (TUNED, which
the claim checks against the tuning seeds) the reported seeds run at this rate only, else at every rate. On the tuning
seeds the best rate lay inside the grid for every width, and no run diverged: the problem is convex, and too large a
rate only keeps the recall low.

"A few iterations" is read as fewer than 20 steps to recall 0.9 at the paper's batch, of which a quick run has a few
steps for this. A slowdown is the log of the steps to recall 0.3, which d=32 can reach, at the fixed rate over those at
the tuned rate. A narrow run at the fixed rate that does not reach it in time counts with its whole length: too small a
slowdown, against the claim.

    engram run birth.fig8 --seeds 6
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import log, nan
from typing import Any

import numpy as np

from engram.claims import Claim, Measure
from engram.claims.experiment import Scale
from engram.claims.readings import birth
from engram.errors import EngramError
from engram.experiments.birth import PAPER, SIZES, Groups, sgd
from engram.learning import Plan
from engram.models import Simplified
from engram.records import Record
from engram.specs import Train
from engram.tasks import Bigram

TIMES = "quick 40 s a seed and 1 min of tuning, paper 4 min a seed and 5 min of tuning, on 2 cores"
SOURCE = f"{PAPER}, Fig. 8 (Appendix E, effect of dimension)"
CLAIMS = {
    "birth.dimension": "W_O2 is learned faster with higher d, at d=128 in a few steps if the rate is tuned; untuned, "
    "low d is slowed down further."
}
SEEDS = {"quick": 6}  # the gain from d=128 to 256 is small: five seeds do not decide it
FIXED = 0.2
RATES = {"smoke": (3.2, 12.8), "quick": (3.2, 6.4, 12.8, 25.6), "paper": (6.4, 12.8, 25.6, 51.2, 102.4)}
WIDTHS = {"smoke": (32, 128), "quick": (32, 64, 128, 256), "paper": (32, 64, 128, 256)}
STEPS = {"smoke": (3, 2), "quick": (300, 80), "paper": (300, 80)}  # at the fixed rate, at each rate of the grid
TUNING_SEEDS = (1000, 1001)
TUNED: dict[str, dict[int, float]] = {"quick": {32: 12.8, 64: 12.8, 128: 12.8, 256: 6.4}}
FEW_RATES, FEW_TUNED = (12.8, 25.6, 51.2), 25.6
LOW, HIGH = 32, 128
RECALL, FEW_STEPS = "recall.W_O2", 20
Runs = dict[int, list[Record]]  # by width, seeds in order


def specs(scale: Scale, seeds: Sequence[int]) -> list[Train]:
    untuned, tuned = STEPS[scale]
    fixed = [_train(scale, d, FIXED, untuned, seed) for d in WIDTHS[scale] for seed in seeds]
    best = TUNED.get(scale, {})
    grid = [
        _train(scale, d, rate, tuned, seed)
        for d in WIDTHS[scale]
        for rate, seed in _tuning(RATES[scale], best.get(d), seeds)
    ]
    few = _tuning(FEW_RATES, FEW_TUNED, seeds) if scale == "quick" else []
    return [*fixed, *grid, *(_train("paper", HIGH, rate, 30, seed) for rate, seed in few)]


def _tuning(rates: Sequence[float], best: float | None, seeds: Sequence[int]) -> list[tuple[float, int]]:
    """Every rate on the tuning seeds, and the best on the others; every rate on these too while none is known."""
    return [(rate, seed) for rate in rates for seed in TUNING_SEEDS] + [
        (rate, seed) for rate in (rates if best is None else (best,)) for seed in seeds
    ]


def _train(scale: Scale, d: int, rate: float, steps: int, seed: int) -> Train:
    T, _, batch = SIZES[scale]
    plan = Plan(optimiser=sgd(rate), steps=steps, batch=batch, trained=("W_O2",), probe_every=1, attention_every=steps)
    return Train(task=Bigram(K=5, T=T), model=Simplified(d=d), plan=plan, seed=seed)


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    large, records = _batches(records)
    fixed, tuned = at_fixed_rate(records), at_tuned_rate(records)
    steps = tuned[LOW][0].train.steps
    rises = [
        Measure.over_seeds(
            f"tuned: mean recall up to step {steps}, d={wide} minus d={narrow}",
            [mean_recall(b) - mean_recall(a) for a, b in zip(tuned[narrow], tuned[wide], strict=True)],
            low=0,
        )
        for narrow, wide in pairwise(tuned)
    ]
    few = [steps_to(record, 0.9) for record in at_tuned_rate(large)[HIGH]]
    slowed = _slowdowns(fixed[LOW], tuned[LOW], never=fixed[LOW][0].train.steps), _slowdowns(fixed[HIGH], tuned[HIGH])
    further = [narrow - wide for narrow, wide in zip(*slowed, strict=True)]
    yield Claim(
        "birth.dimension",
        CLAIMS["birth.dimension"],
        SOURCE,
        (
            *rises,
            Measure.over_seeds(f"tuned: steps to recall 0.9, d={HIGH}, batch {_batch(large[0])}", few, high=FEW_STEPS),
            Measure.over_seeds(f"slowdown by the fixed rate, d={LOW} minus d={HIGH}", further, low=0),
        ),
    )


def _batches(records: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    """The trainings with the largest batch, which tell how few steps suffice, and those with that of the first."""
    largest, usual = max(map(_batch, records)), _batch(records[0])
    return [r for r in records if _batch(r) == largest], [r for r in records if _batch(r) == usual]


def _batch(record: Record) -> int:
    return record.train.plan.batch


def _slowdowns(fixed: Sequence[Record], tuned: Sequence[Record], never: float = nan) -> list[float]:
    """For each seed the log of the steps to recall 0.3 at the fixed rate, or `never`, over those at the tuned one."""
    return [log(steps_to(a, 0.3, never) / steps_to(b, 0.3)) for a, b in zip(fixed, tuned, strict=True)]


def mean_recall(record: Record) -> float:
    return float(record.curve(RECALL)[1].mean())


def steps_to(record: Record, level: float, never: float = nan) -> float:
    """Updates until the recall is above the level, or `never`."""
    step = birth(record, RECALL, level)
    return never if step is None else max(1, step)


def at_fixed_rate(records: Sequence[Record]) -> Runs:
    return _by_width([record for record in records if rate(record) == FIXED])


def at_tuned_rate(records: Sequence[Record]) -> Runs:
    """For each width the reported seeds at the rate that was best on the tuning seeds."""
    best = {d: max(means, key=lambda rate: means[rate]) for d, means in tuning(records).items()}
    if not best:
        raise EngramError(f"none of these records has a tuning seed ({', '.join(map(str, TUNING_SEEDS))})")
    reported = [r for r in records if r.train.seed not in TUNING_SEEDS and rate(r) != FIXED]
    for d in best:
        ran = {rate(r) for r in reported if width(r) == d}
        if best[d] not in ran:
            raise EngramError(f"fig8: d={d}: the tuning seeds choose the rate {best[d]}, but the others ran at {ran}")
    return _by_width([r for r in reported if rate(r) == best[width(r)]])


def tuning(records: Sequence[Record]) -> dict[int, dict[float, float]]:
    """Mean recall over the tuning seeds, by width and rate."""
    runs = _by_width([record for record in records if record.train.seed in TUNING_SEEDS])
    return {
        d: {eta: float(np.mean([mean_recall(r) for r in of_d if rate(r) == eta])) for eta in map(rate, of_d)}
        for d, of_d in runs.items()
    }


def _by_width(records: Sequence[Record]) -> Runs:
    found = Groups()
    for record in records:
        found.setdefault(width(record), []).append(record)
    return found


def width(record: Record) -> int:
    assert isinstance(record.train.model, Simplified)
    return record.train.model.d


def rate(record: Record) -> float:
    return record.train.plan.optimiser.lr


def figure(records: Sequence[Record]) -> Any:
    from engram.show.dimension import dimension_figure

    _, records = _batches(records)
    return dimension_figure(at_fixed_rate(records), at_tuned_rate(records), tuning(records))
