"""Common bigrams come first, copying from the context later; and the last feed-forward part holds to the bigram.

The training of real.birth with a feed-forward part of 4d units in every layer. On text that is held out, o_t is what
followed the last visit of z_t in its window, b_t the likeliest successor of z_t in the text that is trained on. A
common bigram is a position whose target is b_t and not o_t, a copy one whose target is o_t and not b_t.

    engram run real.bigrams --seeds 5
"""

from math import log

import numpy as np

from engram.claims import Claimed, Figure, Labelled, Measure, Runs, Scale, Seeds
from engram.experiments.birth import log_ratio
from engram.experiments.real.birth import training
from engram.records import Record

SOURCE = "own; Birth of a Transformer, section 5, and Chen, Bruna and Bietti 2025, on real text"
CLAIMS = {
    "real.bigrams-first": "On code common bigrams are learned before copying from the context.",
    "real.last-mlp": "Without its last feed-forward part the model moves probability from the bigram to the copy.",
}
WHY = {
    "real.last-mlp": (
        "On all five seeds the odds of the copy fall without the last feed-forward part, from the birth of the "
        "induction head on: in this small model the part supports what layer 3 copied, and does not hold to the bigram "
        "as in the larger models of the papers. Only removing it whole was measured, not truncating a matrix. Control: "
        "in the same runs common bigrams come before copies, as predicted (real.bigrams-first)."
    ),
}
LAYERS = "with feed-forward parts"
LATE = 4  # looks at the end whose mean is what was reached


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    return {LAYERS: [training(scale, seed, feed_forward="mlp") for seed in seeds]}


def half(record: Record, kind: str) -> float:
    """The first step at which the accuracy has made half of its way from the first look to the last ones."""
    steps, values = record.curve(f"guessed.{kind}")
    reached = values[-LATE:].mean()
    return float(max(1, steps[values >= (values[0] + reached) / 2][0]))


def moved(record: Record) -> float:
    """Log of p(copy)/p(bigram) where the two differ, without the last feed-forward part minus with it."""
    p = {name: record.last(f"conflict.{name}") for name in ("copied", "bigram", "cut.copied", "cut.bigram")}
    return log(p["cut.copied"] / p["cut.bigram"]) - log(p["copied"] / p["bigram"])


def claims(runs: Runs) -> Claimed:
    records = runs[LAYERS]
    common, copied = ([half(record, kind) for record in records] for kind in ("common", "copied"))
    name = "log of the steps to half of the accuracy: copies over common bigrams"
    yield "real.bigrams-first", [log_ratio(name, copied, common)]
    without = "log of p(copy)/p(bigram), without the last feed-forward part minus with it"
    yield "real.last-mlp", [Measure.over_seeds(without, list(map(moved, records)), low=0)]


def figure(runs: Runs) -> Figure:
    from engram.show.text_births import bigrams_and_copies

    return bigrams_and_copies(runs[LAYERS], [moved_over_steps(record) for record in runs[LAYERS]])


def moved_over_steps(record: Record) -> tuple[np.ndarray, np.ndarray]:
    """The same at every look."""
    names = ("cut.copied", "bigram", "cut.bigram", "copied")
    (steps, a), *others = (record.curve(f"conflict.{name}") for name in names)
    b, c, d = (values for _, values in others)
    return steps, np.log(a * b / (c * d))
