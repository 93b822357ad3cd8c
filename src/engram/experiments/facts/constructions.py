"""Facts written by hand: heads that filter and count (Theorem 3), heads that copy and an MLP that stores (Theorem 4).

Attention only: d = 1024, heads of width 256 with 4 members each; an answer scores the number of sets A_s, A_r that it
lies in. Attention and MLP: random features of degree (1, 1) with ReLU; the sizes are ours. Sphere embeddings,
S = R = 16, D = 8: all 256 facts are tested, each in a prompt with noise.

    engram run facts.constructions --seeds 5
"""

from collections.abc import Sequence

import numpy as np

from engram.claims import Claimed, Figure, Labelled, Measure, Runs, Scale, Seeds, checks

SOURCE = "Understanding factual recall in transformers, Theorems 3 and 4"
CLAIMS = {
    "facts.attention-construction": "Attention alone recalls all facts; scores cluster at 2, 1 and 0.",
    "facts.mlp-construction": "Heads that copy and an MLP of random features recall all facts.",
}
ATTENTION, HISTOGRAM, MLP = (f"learning.fact_construction.{name}" for name in ("of_attention", "histogram", "of_mlp"))
BOOK = {"smoke": {"S": 4, "R": 4, "D": 2}, "quick": {"S": 16, "R": 16, "D": 8}, "paper": {"S": 16, "R": 16, "D": 8}}
WIDTHS = {"smoke": (64, 128), "quick": (256, 512, 1024), "paper": (256, 512, 1024, 2048)}
UNITS = {"smoke": (64, 128), "quick": (512, 1024, 2048, 4096, 8192), "paper": (512, 1024, 2048, 4096, 8192)}
MEMBERS = {"smoke": 2, "quick": 4, "paper": 4}
ENOUGH = {"smoke": (128, 128), "quick": (1024, 8192), "paper": (1024, 8192)}  # widths and units of the claims
NONE = 1 / 1000  # less than one fact
MLP_WIDTH = {"smoke": 64, "quick": 512, "paper": 512}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    return {
        **{("attention", d): checks(ATTENTION, seeds, **_sizes(scale, d)) for d in WIDTHS[scale]},
        **{("MLP", m): checks(MLP, seeds, **_sizes(scale, MLP_WIDTH[scale]), m=m) for m in UNITS[scale]},
        "histogram": checks(HISTOGRAM, [0], **_sizes(scale, ENOUGH[scale][0])),
    }


def _sizes(scale: Scale, d: int) -> dict[str, int]:
    return BOOK[scale] | {"d": d, "d_h": d // 4, "members": MEMBERS[scale]}


def claims(runs: Runs) -> Claimed:
    d, m = ENOUGH[runs.scale]
    attention, mlp = ([record.rows[0] for record in runs[label]] for label in (("attention", d), ("MLP", m)))
    measures = [Measure.worst(f"d={d}: share of facts not recalled, worst seed", _lost(attention), NONE)]
    for count in (2, 1, 0):
        over = [row[f"score.{count}"] - count for row in attention]
        measures.append(Measure.over_seeds(f"mean score in {count} of the sets, minus {count}", over, -0.1, 0.1))
        spread = [row[f"spread.{count}"] for row in attention]
        measures.append(Measure.over_seeds(f"standard deviation of scores in {count} of the sets", spread, high=0.25))
    yield "facts.attention-construction", measures
    cost = f"{mlp[0]['parameters_per_fact']:.0f} parameters a fact"
    label = f"d={MLP_WIDTH[runs.scale]}, m={m} ({cost}): share not recalled, worst seed"
    yield "facts.mlp-construction", [Measure.worst(label, _lost(mlp), NONE)]


def _lost(rows: Sequence[dict[str, float]]) -> list[float]:
    return [1 - row["accuracy"] for row in rows]


def figure(runs: Runs) -> Figure:
    from engram.show.facts import constructions

    def mean(part: str, sizes: Sequence[int]) -> dict[int, float]:
        return {n: float(np.mean([record.rows[0]["accuracy"] for record in runs[part, n]])) for n in sizes}

    by_width, by_units = mean("attention", WIDTHS[runs.scale]), mean("MLP", UNITS[runs.scale])
    return constructions(runs["histogram"][0].rows, by_width, by_units)
