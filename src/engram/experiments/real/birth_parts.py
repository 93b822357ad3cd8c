"""What a birth on real text needs: one change at a time of depth, optimiser and positions.

Two layers in place of three, Adam in place of Muon, embedded in place of rotary positions.

Everything else is as in real.birth. A head that is not born counts as born at the end: later it can only be.

    engram run real.birth-parts --seeds 3
"""

from engram.claims import Claimed, Figure, Labelled, Measure, Runs, Scale, Seeds
from engram.experiments.birth import log_ratio
from engram.experiments.real.birth import BORN, THREE, best, born, training
from engram.learning import Adam

SOURCE = "own; grew out of Birth of a Transformer, section 5, on real text"
CLAIMS = {
    "real.birth-depth": "On code two layers give birth to an induction head later than three, if at all.",
    "real.birth-optimiser": "With Adam in place of Muon it is born later, if at all.",
    "real.birth-positions": "With embedded in place of rotary positions it is born later, if at all.",
}
SEEDS = {"quick": 3, "paper": 3}
RATE = 0.003  # of Adam alone
VARIANTS = {
    "two layers": {"depth": 2},
    "Adam": {"optimiser": Adam(lr=RATE, betas=(0.9, 0.95))},
    "embedded positions": {"positions": "embedded"},
}
LABELS = dict(zip(CLAIMS, VARIANTS, strict=True))


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    variants = {THREE: {}} | VARIANTS
    return {label: [training(scale, seed, **change) for seed in seeds] for label, change in variants.items()}


def claims(runs: Runs) -> Claimed:
    for id, label in LABELS.items():
        yield id, [_later(runs, label)]


def _later(runs: Runs, label: str) -> Measure:
    """Log of the step at which the variant's induction head is born over that of the model with three layers."""
    theirs, ours = (
        [born(record, "induction", never=record.train.steps) for record in runs[one]] for one in (label, THREE)
    )
    level = BORN["induction"]
    return log_ratio(f"{label}: log of the step of an induction score above {level} over three layers", theirs, ours)


def figure(runs: Runs) -> Figure:
    from engram.show.text_births import parts

    return parts(runs, best)
