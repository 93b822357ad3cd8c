"""How many samples a composition of k permutations needs: by a curriculum, from a mixture, and from the hardest alone.

The trainings of hops.curriculum for k = 1, 2 and 4 (quick), 2, 4 and 8 (paper). A number of hops is solved at the first
look at which its accuracy on unseen sequences is above 0.9. Of a mixture, the samples needed are those until k hops are
solved; of a curriculum by layers, those that each stage takes until its own hops are solved, summed over the stages:
what is left of a stage when they are is not counted.

    engram run hops.samples --seeds 5
"""

from math import isfinite
from statistics import geometric_mean

from engram.claims import Claimed, Figure, Labelled, Measure, Records, Runs, Scale, Seeds
from engram.claims.fits import by_seed, exponent
from engram.claims.readings import reached
from engram.experiments.hops import CURRICULUM
from engram.experiments.hops.curriculum import GUESS, SOLVED, accuracy, column, powers, training
from engram.records import Record

SOURCE = f"{CURRICULUM}; talks, slides on k-hop reasoning"
CLAIMS = {
    "hops.samples": "A curriculum by layers needs samples in proportion to k; the hardest data alone teach nothing.",
    "hops.samples-mixture": "A mixture needs samples in proportion to k.",
}
ENDS = {"smoke": (2, 4, 6, 8), "quick": (200, 1400, 3000), "paper": (400, 4000, 20_000, 60_000)}
FOLDS = {"smoke": (2, 4), "quick": (1, 2, 4), "paper": (2, 4, 8)}
BAND = 0.5, 1.5  # of an exponent that is called one


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """By (regime, k); the same ends of stages for every k."""
    return {
        (regime, k): [training(regime, scale, k, ENDS[scale][: k.bit_length()], seed) for seed in seeds]
        for regime in ("layer by layer", "mixture", "hardest only")
        for k in FOLDS[scale]
    }


def claims(runs: Runs) -> Claimed:
    folds = FOLDS[runs.scale]
    span = f"k = {folds[0]} … {folds[-1]}"
    layers, mixed = ({k: needed(runs[regime, k]) for k in folds} for regime in ("layer by layer", "mixture"))
    k = folds[-1]
    ends = accuracy(runs["hardest only", k], k)
    alone = Measure.over_seeds(f"hardest only, k = {k}: accuracy at the end", ends, high=GUESS)
    yield "hops.samples", [exponent(f"curriculum: exponent of samples in k, {span}", by_seed(layers), *BAND), alone]
    yield "hops.samples-mixture", [exponent(f"mixture: exponent of samples in k, {span}", by_seed(mixed), *BAND)]


def needed(records: Records) -> list[float]:
    """Samples of each seed; NaN where the hardest is not solved."""
    return [record.train.plan.batch * steps_needed(record) for record in records]


def steps_needed(record: Record) -> float:
    """Steps until k hops are solved; with stages, the sum over them of the steps until their own hops are."""
    plan, hops = record.train.plan, powers(record.train.task.k)  # type: ignore[attr-defined]
    if not plan.stages:
        return reached(record, column(hops[-1]), SOLVED, width=1)
    begins = [stage.step for stage in plan.stages]
    return sum(_within(record, k, begin) for k, begin in zip(hops, begins, strict=True))


def _within(record: Record, hops: int, begin: int) -> float:
    """Steps from the beginning of a stage until its hops are solved."""
    steps, values = record.curve(column(hops))
    solved = steps[(steps >= begin) & (values > SOLVED)]
    return max(1.0, float(solved[0]) - begin) if len(solved) else float("nan")


def figure(runs: Runs) -> Figure:
    from engram.show.hop_training import needed as drawn

    ways = {"curriculum by layers": "layer by layer", "mixture": "mixture"}
    found = {name: {k: needed(runs[regime, k]) for k in FOLDS[runs.scale]} for name, regime in ways.items()}
    least, *_ = folds = FOLDS[runs.scale]
    first = [samples for samples in found["curriculum by layers"][least] if isfinite(samples)]
    as_told = {k: k / least * geometric_mean(first) for k in folds} if first else {}
    return drawn(
        found,
        "permutations k",
        "samples until k hops are solved",
        "Samples against k (“never”: not solved in the steps given)",
        ("proportional to k, as the talks say", as_told),
    )
