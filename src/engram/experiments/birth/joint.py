"""The birth of an induction head: the output memory first, then accuracy together with the two attention memories.

The simplified two-layer transformer learns W_K1, W_K2 and W_O2 jointly on the bigram task with K=5 random triggers and
uniform outputs: the set-up of section 5 and Fig. 3 of "Birth of a Transformer", with nothing frozen. The least
accuracies are not the paper's: they were set beforehand from a prototype.

    engram birth            one run, watched
    engram run birth.joint --seeds 5
"""

from math import log, nan

from engram.claims import Claimed, Figure, Labelled, Measure, Runs, Scale, Seeds
from engram.claims.readings import birth, late_mean, mean_difference
from engram.experiments.birth import in_context
from engram.records import Record

TIMES = "quick 30 s a seed, paper 2 min a seed on 2 cores (without a C++ compiler 2 and 10 min)"
SOURCE = "Birth of a Transformer, section 5 (training of the model of section 4.2)"
CLAIMS = {
    "birth.learns": "The simplified two-layer transformer learns to predict in context.",
    "birth.output-first": "The output memory W_O2 is learned before the key memories W_K2 and W_K1.",
    "birth.early-positions": "The previous-token memory W_K1 is learned better at early positions (t<64).",
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
    reached = [
        Measure.over_seeds(
            f"in-context accuracy, mean of the last 30 steps up to {step}",
            [late_mean(r, "accuracy.in_context", step) for r in records],
            low=least,
        )
        for step, least in LEAST_ACCURACY.get(steps, {steps: 0.90}).items()
    ]
    yield "birth.learns", reached
    births = [
        _log_ratio("W_K2", [_later(r, "recall.W_K2") for r in records]),
        _log_ratio("W_K1 (t<64)", [_later(r, "recall.W_K1.t<64") for r in records]),
        Measure.over_seeds("recall of W_O2 at the end", [r.curve("recall.W_O2")[1][-1] for r in records], low=0.99),
    ]
    yield "birth.output-first", births
    late = min(100, steps // 2)
    gaps = [mean_difference(r, "recall.W_K1.t<64", "recall.W_K1", late) for r in records]
    name = f"recall of W_K1, t<64 minus all, from step {late}"
    yield "birth.early-positions", [Measure.over_seeds(name, gaps, low=0)]


def figure(runs: Runs) -> Figure:
    from engram.show.curves import birth_curves

    return birth_curves(runs["joint"])


def _log_ratio(memory: str, values: list[float]) -> Measure:
    return Measure.over_seeds(f"log of birth step of {memory} over that of W_O2 (recall > 0.5)", values, low=0)


def _later(record: Record, column: str) -> float:
    """Log of the birth step of a key memory over that of W_O2; NaN if the key memory was never born."""
    output, key = birth(record, "recall.W_O2"), birth(record, column)
    if key is None:
        return nan
    return log(max(1, key) / max(1, record.train.steps if output is None else output))
