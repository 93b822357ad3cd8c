"""Induction heads of a real model: the same ones look at what followed last time, whatever the tokens are.

A start token and 50 random tokens twice, four sequences a seed: the induction score of each of the 270 heads of
SmolLM2-135M-Instruct is its attention on the token that followed the last visit (engram.probes.repeats).

    engram run real.induction-heads --seeds 10000-10004
"""

from typing import Any

import numpy as np

from engram.claims import Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds, checks
from engram.experiments.real import SMOLLM2

TIMES = "there is one model of this size"
SOURCE = "our own study of SmolLM2-135M-Instruct; Olsson et al. 2022 for the scores"
CLAIMS = {
    "real.induction-heads": "In SmolLM2-135M-Instruct L19H7 is an induction head on any random tokens, and 6 to 16 of "
    "its 270 heads have an induction score above 0.3.",
}
PERIOD = {"smoke": 12, "quick": 50, "paper": 50}
SEQUENCES = {"smoke": 2, "quick": 4, "paper": 4}
BEST, ABOVE = (19, 7), 0.3


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """At smoke scale random weights of ours take the place of the language model."""
    if scale == "smoke":
        return {"scores": checks("real.stand_in_head_scores", seeds, SEQUENCES[scale], period=PERIOD[scale])}
    return {"scores": checks("real.head_scores", seeds, SEQUENCES[scale], model=SMOLLM2, period=PERIOD[scale])}


def claims(runs: Runs) -> Measures:
    records = runs["scores"]
    lacking = [1 - score(record.rows, *BEST) for record in records]
    yield Measure.worst("L19H7: 1 minus its induction score, worst seed", lacking, 0.25)
    above = [float((record.column("induction") > ABOVE).sum()) for record in records]
    yield Measure.over_seeds("heads with an induction score above 0.3", above, 6, 16, resolution=1)


def score(rows: list[dict[str, Any]], layer: int, head: int) -> float:
    return next(row["induction"] for row in rows if (row["layer"], row["head"]) == (layer, head))


def table(runs: Runs) -> list[dict[str, Any]]:
    """The ten heads with the largest mean induction score, with both scores."""
    means = by_head(runs["scores"])
    top = sorted(means, key=lambda head: -means[head]["induction"])[:10]
    return [{"head": f"L{i}H{h}", **{name: round(v, 3) for name, v in means[i, h].items()}} for i, h in top]


def by_head(records: Records) -> dict[tuple[int, int], dict[str, float]]:
    """The mean over seeds of both scores, and the smallest induction score."""
    found = {name: np.stack([record.column(name) for record in records]) for name in ("induction", "previous")}
    heads = [(int(row["layer"]), int(row["head"])) for row in records[0].rows]
    means = {name: values.mean(axis=0) for name, values in found.items()}
    return {
        head: {name: float(of[i]) for name, of in means.items()} | {"smallest": float(found["induction"][:, i].min())}
        for i, head in enumerate(heads)
    }


def figure(runs: Runs) -> Figure:
    from engram.show.real_heads import two_scores

    whose = "Random weights" if runs.scale == "smoke" else "SmolLM2-135M-Instruct (4-bit-derived)"
    return two_scores(by_head(runs["scores"]), f"{whose}, {len(runs['scores'])} seeds of random tokens")
