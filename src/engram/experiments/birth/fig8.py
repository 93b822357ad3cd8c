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

from collections.abc import Sequence
from itertools import pairwise
from math import log, nan

import numpy as np

from engram.claims import Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds
from engram.claims.readings import birth_step, unborn
from engram.errors import EngramError
from engram.experiments.birth import SIZES, in_context
from engram.records import Record
from engram.specs import Train

SOURCE = "Birth of a Transformer, Fig. 8 (Appendix E, effect of dimension)"
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
BATCH = {scale: batch for scale, (_, _, batch) in SIZES.items()}
LARGE = BATCH | {"quick": BATCH["paper"]}  # at which few steps are counted


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """Labels are ("fixed", d), and ("tuning", d, batch, rate) and ("tuned", d, batch, rate)."""
    untuned, steps = STEPS[scale]
    found: Labelled = {("fixed", d): [_train(scale, d, FIXED, untuned, seed) for seed in seeds] for d in WIDTHS[scale]}
    for d in WIDTHS[scale]:
        found = {**found, **_grid(scale, d, steps, RATES[scale], TUNED.get(scale, {}).get(d), seeds)}
    if scale == "quick":
        found = {**found, **_grid("paper", HIGH, 30, FEW_RATES, FEW_TUNED, seeds)}
    return found


def _grid(scale: Scale, d: int, steps: int, rates: Sequence[float], best: float | None, seeds: Seeds) -> Labelled:
    """Every rate on the tuning seeds, and the best on the others; every rate on these too while none is known."""
    tried = {("tuning", rate): TUNING_SEEDS for rate in rates}
    reported = {("tuned", rate): seeds for rate in (rates if best is None else (best,))}
    return {
        (part, d, BATCH[scale], rate): [_train(scale, d, rate, steps, seed) for seed in of_part]
        for (part, rate), of_part in (tried | reported).items()
    }


def _train(scale: Scale, d: int, rate: float, steps: int, seed: int) -> Train:
    T, _, batch = SIZES[scale]
    return in_context((T, d, batch), seed, rate, steps, trained=("W_O2",), probe_every=1, attention_every=steps)


def claims(runs: Runs) -> Measures:
    tuned = {d: at_tuned_rate(runs, d, BATCH[runs.scale]) for d in WIDTHS[runs.scale]}
    steps = tuned[LOW][0].train.steps
    recalls = {d: [mean_recall(record) for record in same] for d, same in tuned.items()}
    for narrow, wide in pairwise(tuned):
        name = f"tuned: mean recall up to step {steps}, d={wide} minus d={narrow}"
        yield Measure.difference(name, recalls[wide], recalls[narrow])
    large = LARGE[runs.scale]
    few = [birth_step(record, RECALL, 0.9) for record in at_tuned_rate(runs, HIGH, large)]
    yield Measure.over_seeds(f"tuned: steps to recall 0.9, d={HIGH}, batch {large}", few, high=FEW_STEPS, resolution=1)
    narrow, wide = runs["fixed", LOW], runs["fixed", HIGH]
    slowed = _slowdowns(narrow, tuned[LOW], never=narrow[0].train.steps), _slowdowns(wide, tuned[HIGH])
    difference = Measure.difference(f"slowdown by the fixed rate, d={LOW} minus d={HIGH}", *slowed)
    yield difference.bounded("≥", unborn(narrow, RECALL, 0.3))


def _slowdowns(fixed: Records, tuned: Records, never: float = nan) -> list[float]:
    """For each seed the log of the steps to recall 0.3 at the fixed rate, or `never`, over those at the tuned one."""
    slow = [birth_step(record, RECALL, 0.3, never) for record in fixed]
    fast = [birth_step(record, RECALL, 0.3) for record in tuned]
    return [log(a / b) for a, b in zip(slow, fast, strict=True)]


def mean_recall(record: Record) -> float:
    return float(record.curve(RECALL)[1].mean())


def at_tuned_rate(runs: Runs, d: int, batch: int) -> list[Record]:
    """The reported seeds at the rate that was best on the tuning seeds, which are not reported."""
    means = tuning(runs, d, batch)
    best = max(means, key=lambda rate: means[rate])
    ran = {rate for rate in means if ("tuned", d, batch, rate) in runs}
    if best not in ran:
        raise EngramError(f"fig8: d={d}: the tuning seeds choose the rate {best}, but the others ran at {ran}")
    return [record for record in runs["tuned", d, batch, best] if record.train.seed not in TUNING_SEEDS]


def tuning(runs: Runs, d: int, batch: int) -> dict[float, float]:
    """Mean recall over the tuning seeds, by rate."""
    rates = RATES[runs.scale] if batch == BATCH[runs.scale] else FEW_RATES
    return {rate: float(np.mean([mean_recall(r) for r in runs["tuning", d, batch, rate]])) for rate in rates}


def figure(runs: Runs) -> Figure:
    from engram.show.birth import dimension_figure

    widths, batch = WIDTHS[runs.scale], BATCH[runs.scale]
    fixed, tuned = {d: runs["fixed", d] for d in widths}, {d: at_tuned_rate(runs, d, batch) for d in widths}
    return dimension_figure(fixed, tuned, {d: tuning(runs, d, batch) for d in widths})
