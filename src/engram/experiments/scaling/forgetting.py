"""Lower cross-entropy can mean more wrong answers: tokens are forgotten on the way to its minimum.

Two classes (z mod 2) on the unit circle. Where the cross-entropy is least, other tokens are right than where the 0/1
error is least (N = 30, p(z) ∝ 1/z); both minima are computed, not trained. On the way down from γ = (7.5, 2.5) with
small steps on the population (N = 10, p(z) ∝ 1/z²) the error rises while the loss falls. A seed is 200 random planes.

    engram run scaling.forgetting --seeds 5
"""

from engram.claims import Figure, Labelled, Measure, Measures, Runs, Scale, Seeds, checks
from engram.claims.readings import counted, means

SOURCE = "Cabannes, Simsek and Bietti 2024, section on limited capacity, and its published code (exp_forgetting_2d)"
CLAIMS = {
    "scaling.over-optimisation": "In a plane the least cross-entropy errs more than need be; it falls as errors rise.",
}
DRAWS = {"smoke": 5, "quick": 200, "paper": 1000}
STEPS = {"smoke": 30, "quick": 1000, "paper": 1000}
TOKENS = (3, 30)


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    draws = DRAWS[scale]
    return {
        **{N: checks("dynamics.forgetting", seeds, draws, N=N) for N in TOKENS},
        "path": checks("dynamics.forgetful_path", seeds, draws, steps=STEPS[scale]),
    }


def claims(runs: Runs) -> Measures:
    draws, many = DRAWS[runs.scale], runs[TOKENS[-1]]
    worse = [int((record.column("excess") > 1e-12).sum()) for record in many]
    yield Measure.share("N=30: planes in which the least cross-entropy errs more than need be", worse, draws, 0.5)
    yield Measure.over_seeds(
        "N=30: 0/1 error at the least cross-entropy minus least error", means(many, "excess"), 0.01
    )
    risen = counted([record.last("risen") for record in runs["path"]], draws)
    yield Measure.share("N=10: planes in which the error rises at a step that lowers the loss", risen, draws, 0.5)


def figure(runs: Runs) -> Figure:
    from engram.show.memory_dynamics import forgetting

    return forgetting(runs["path"][0], {N: runs[N] for N in TOKENS})
