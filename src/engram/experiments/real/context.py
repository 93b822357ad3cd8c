"""What a longer context is worth to the models of real.birth, on the same tokens for every seed.

The training of real.birth, looked at once more at its end: 1024 stretches of held-out text, each behind 32 tokens of
what comes before it and behind 224. The in-context score is the second loss minus the first. In real.birth late tokens
are compared with early ones, of other windows in every seed, and that decides nothing (real.birth-context).

    engram run real.context --seeds 5
"""

from engram.claims import Claimed, Figure, Labelled, Measure, Runs, Scale, Seeds
from engram.experiments.real.birth import THREE, best, training
from engram.specs import Train

TIMES = "quick and paper 2 min a seed on 2 cores"
SOURCE = "own; grew out of Birth of a Transformer, section 5, on real text"
CLAIMS = {
    "real.birth-context-common": "After these births the same tokens of code are predicted better behind a long "
    "context than behind a short one.",
}


def with_stretches(train: Train) -> Train:
    return train.model_copy(update={"plan": train.plan.model_copy(update={"at_end": ("stretches",)})})


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    return {THREE: [with_stretches(training(scale, seed)) for seed in seeds]}


def claims(runs: Runs) -> Claimed:
    scores = [record.last("worth.far") - record.last("worth.near") for record in runs[THREE]]
    yield (
        "real.birth-context-common",
        [Measure.over_seeds("in-context score at the end, same tokens", scores, high=-0.05)],
    )


def figure(runs: Runs) -> Figure:
    from engram.show.text_births import text_births

    return text_births(runs[THREE], best)
