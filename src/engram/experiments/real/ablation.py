"""The heads that look back, taken away: what is left of what a real model gains from a repeat.

The eight heads of SmolLM2-135M-Instruct with the largest induction scores on one batch are replaced by their mean over
it; the loss on the repeat of 50 random tokens is then measured on another batch. For comparison eight random others of
the same layers, and the previous-token head L17H1 alone.

    engram run real.ablation --seeds 10000-10004
"""

from typing import Any

from engram.claims import Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds, checks
from engram.experiments.real import SMOLLM2
from engram.laws.real_heads import RANDOM, TOP, WHOLE, WRITER

TIMES = "there is one model of this size"
SOURCE = "our own study of SmolLM2-135M-Instruct; Olsson et al. 2022 for the scores"
CLAIMS = {
    "real.ablation": "Without its eight strongest induction heads SmolLM2-135M-Instruct keeps at most 35 % of what it "
    "gains from a repeat, without eight random heads of the same layers at least 85 %.",
}
SIZES: dict[str, Any] = {"top": 8, "layer": 17, "head": 1}
PERIOD = {"smoke": 12, "quick": 50, "paper": 50}
SEQUENCES = {"smoke": 2, "quick": 4, "paper": 4}
NAMES = {WHOLE: "whole model", TOP: "without the top 8", RANDOM: "without 8 random", WRITER: "without L17H1"}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """At smoke scale random weights of ours take the place of the language model."""
    sizes = SIZES | {"period": PERIOD[scale]}
    if scale == "smoke":
        return {"ablation": checks("real.stand_in_ablated_heads", seeds, SEQUENCES[scale], **sizes)}
    return {"ablation": checks("real.ablated_heads", seeds, SEQUENCES[scale], model=SMOLLM2, **sizes)}


def claims(runs: Runs) -> Measures:
    records = runs["ablation"]
    yield Measure.over_seeds("share of the gain left without the top 8 heads", values(records, TOP), high=0.35)
    yield Measure.over_seeds("share of the gain left without 8 random heads", values(records, RANDOM), low=0.85)


def values(records: Records, which: int, column: str = "left") -> list[float]:
    """A column of the row about one set of heads, by seed."""
    return [next(row[column] for row in record.rows if row["without"] == which) for record in records]


def table(runs: Runs) -> list[dict[str, Any]]:
    """Means over seeds: losses, and what is left of the gain."""
    columns = ("first", "repeat", "left")
    means = {(w, c): sum(found := values(runs["ablation"], w, c)) / len(found) for w in NAMES for c in columns}
    return [{"model": name, **{c: round(means[which, c], 3) for c in columns}} for which, name in NAMES.items()]


def figure(runs: Runs) -> Figure:
    from engram.show.real_heads import shares_left

    whose = "Random weights" if runs.scale == "smoke" else "SmolLM2-135M-Instruct (4-bit-derived)"
    shares = {NAMES[which]: values(runs["ablation"], which) for which in (TOP, RANDOM, WRITER)}
    bands = {NAMES[TOP]: (0.0, 0.35), NAMES[RANDOM]: (0.85, 1.0)}
    return shares_left(shares, bands, f"{whose}, {len(runs['ablation'])} seeds of random tokens")
