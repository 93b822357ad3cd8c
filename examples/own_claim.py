"""A claim of one's own, with runs under labels: does a wider model learn its output memory sooner?

It does: recall passes 0.5 at step 24 for d = 128 and at step 46 for d = 64 (seed 0).

engram run ./own_claim.py --seeds 5
"""

from math import log

from engram import SGD, Bigram, Measure, Plan, Simplified, Train

SOURCE = "this file, after Fig. 8 of Birth of a Transformer"
CLAIMS = {"mine.wider-is-sooner": "The output memory is born sooner at d = 128 than at d = 64."}
WHY = {}  # id → explanation, for a claim that turns out to disagree


def specs(scale, seeds):
    """Labels say what each run is; claims and figure get the records under the same labels."""
    T, batch, steps = {"smoke": (32, 4, 12)}.get(scale, (64, 64, 200))
    plan = Plan(optimiser=SGD(lr=1.0, momentum=0.9), steps=steps, batch=batch, trained=("W_O2",), probe_every=1)
    return {
        d: [Train(task=Bigram(K=5, T=T), model=Simplified(d=d), plan=plan, seed=seed) for seed in seeds]
        for d in (64, 128)
    }


def claims(runs):
    """One value a seed, the band it must lie in, and the interval over seeds: the ledger decides."""
    narrow, wide = ([record.births()["W_O2"] or record.train.steps for record in runs[d]] for d in (64, 128))
    ratios = [log(max(1, slow) / max(1, fast)) for slow, fast in zip(narrow, wide, strict=True)]
    yield "mine.wider-is-sooner", [Measure.over_seeds("log of steps to recall 0.5, d = 64 over d = 128", ratios, low=0)]
