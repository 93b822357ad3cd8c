"""The output memory of an induction head is learned in a few steps, if they are large.

Only W_O2 of the simplified transformer is trained (d = 64, bigram task, K = 5 random triggers, positions in context),
by SGD without momentum at rates from 20 to 200, for 50 steps: a linear memory of 65 tokens inside a transformer.

    engram run scaling.induction --seeds 5
"""

from engram.claims import Figure, Labelled, Measures, Runs, Scale, Seeds
from engram.claims.readings import birth_step, unborn, value_at
from engram.experiments.birth import log_ratio, recalled
from engram.learning import SGD, Plan
from engram.models import Simplified
from engram.specs import Train
from engram.tasks import Bigram

SOURCE = "Cabannes, Simsek and Bietti 2024, published code (exp_ihead), whose logs are not published"
CLAIMS = {
    "scaling.induction-large-steps": "W_O2 alone is learned within 50 steps of 20 to 200, with steps of 200 soonest.",
}
RATES = (20.0, 50.0, 100.0, 200.0)
SIZES = {"smoke": (32, 16, 4), "quick": (128, 64, 128), "paper": (256, 64, 512)}  # T, d, batch
STEPS = {"smoke": 12, "quick": 50, "paper": 50}
RECALL = "recall.W_O2"


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """By rate."""
    return {rate: [_training(scale, rate, seed) for seed in seeds] for rate in RATES}


def _training(scale: Scale, rate: float, seed: int) -> Train:
    T, d, batch = SIZES[scale]
    plan = Plan(optimiser=SGD(lr=rate), steps=STEPS[scale], batch=batch, trained=("W_O2",), probe_every=1)
    return Train(task=Bigram(K=5, T=T), model=Simplified(d=d), plan=plan, seed=seed)


def claims(runs: Runs) -> Measures:
    last = STEPS[runs.scale]
    for rate in RATES:
        shares = [value_at(record, RECALL, last) for record in runs[rate]]
        yield recalled(f"η={rate:g}: recall of W_O2 at the end", runs[rate], RECALL, shares, 0.5)
    slow, fast = (
        [birth_step(record, RECALL, never=last + 1) for record in runs[rate]] for rate in (RATES[0], RATES[-1])
    )
    ratio = log_ratio("log of the step at which half is recalled, η=20 over η=200", slow, fast)
    yield ratio.bounded("≥", unborn(runs[RATES[0]], RECALL)).bounded("≤", unborn(runs[RATES[-1]], RECALL))


def figure(runs: Runs) -> Figure:
    from engram.show.memory_dynamics import large_steps

    return large_steps(dict(runs))
