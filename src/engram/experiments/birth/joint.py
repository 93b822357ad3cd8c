"""The birth of an induction head: the output memory first, then accuracy together with the two attention memories.

The simplified two-layer transformer learns W_K1, W_K2 and W_O2 jointly on the bigram task with K=5 random triggers and
uniform outputs: the set-up of section 5 and Fig. 3 of "Birth of a Transformer", with nothing frozen. The least
accuracies are not the paper's: they were set beforehand from a prototype.

    engram birth            one run, watched
    engram run birth.joint --seeds 5
"""

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds
from engram.claims.readings import birth_step, late_mean, mean_difference, unborn
from engram.experiments.birth import born_after_output, in_context, log_ratio, recalled

SOURCE = "Birth of a Transformer, section 5 (training of the model of section 4.2)"
CLAIMS = {
    "birth.learns": "The simplified two-layer transformer learns to predict in context.",
    "birth.output-first": "The output memory W_O2 is learned before the key memories W_K2 and W_K1.",
    "birth.first-layer-last": "Of the two key memories W_K2 is learned first, and W_K1 last.",
    "birth.early-positions": "The previous-token memory W_K1 is learned better at early positions (t<64).",
}
WHY = {
    "birth.first-layer-last": (
        "At t<64, where most of the work is done, W_K1 is born before W_K2; read at all positions it is born "
        "later or not at all within the run. The order that the talks state holds for the probe over all "
        "positions only: which layer is last depends on where W_K1 is read. Control: in the same runs both come "
        "after W_O2 (birth.output-first)."
    ),
}
SIZES = {
    "smoke": (32, 16, 4, 12),
    "quick": (256, 128, 128, 400),
    "paper": (256, 128, 512, 500),
}  # T, d, batch, steps
LEAST_ACCURACY = {400: {400: 0.90}, 500: {300: 0.90, 500: 0.94}}  # steps of the run → at step → above


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    *sizes, steps = SIZES[scale]
    return {"joint": [in_context(sizes, seed, 0.2, steps) for seed in seeds]}


def claims(runs: Runs) -> Claimed:
    records = runs["joint"]
    steps = records[0].train.steps
    yield "birth.learns", [_learns(records, *least) for least in LEAST_ACCURACY.get(steps, {steps: 0.90}).items()]
    ends = [record.curve("recall.W_O2")[1][-1] for record in records]
    stored = recalled("recall of W_O2 at the end", records, "recall.W_O2", ends, low=0.95)
    yield "birth.output-first", [*born_after_output(records, never=steps), stored]
    yield "birth.first-layer-last", [*_first_layer_last(records, steps)]
    late = min(100, steps // 2)
    gaps = [mean_difference(r, "recall.W_K1.t<64", "recall.W_K1", late) for r in records]
    name = f"recall of W_K1, t<64 minus all, from step {late}"
    yield "birth.early-positions", [Measure.over_seeds(name, gaps, low=0)]


def _first_layer_last(records: Records, steps: int) -> Measures:
    """A W_K1 that is not born counts as born at the end: later it can only be."""
    second = [birth_step(record, "recall.W_K2") for record in records]
    for where, column in {"all positions": "recall.W_K1", "t<64": "recall.W_K1.t<64"}.items():
        first = [birth_step(record, column, never=steps) for record in records]
        name = f"log of birth step of W_K1 ({where}) over that of W_K2 (recall > 0.5)"
        yield log_ratio(name, first, second).bounded("≥", unborn(records, column))


def _learns(records: Records, step: int, least: float) -> Measure:
    reached = [late_mean(record, "accuracy.in_context", step) for record in records]
    return Measure.over_seeds(f"in-context accuracy, mean of the last 30 steps up to {step}", reached, low=least)


def figure(runs: Runs) -> Figure:
    from engram.show.curves import birth_curves

    return birth_curves(runs["joint"])
