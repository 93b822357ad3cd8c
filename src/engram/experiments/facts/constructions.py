"""Facts written by hand: heads that filter and count (Theorem 3), heads that copy and an MLP that stores (Theorem 4).

Attention only: d = 1024, heads of width 256 with 4 members each; an answer scores the number of sets A_s, A_r that it
lies in. Attention and MLP: random features of degree (1, 1) with ReLU; the sizes are ours. Sphere embeddings,
S = R = 16, D = 8: all 256 facts are asked for, each in a prompt with noise.

    engram run facts.constructions --seeds 5
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from engram.claims import Claim, Measure
from engram.claims.experiment import Scale
from engram.experiments.memory import of_law
from engram.records import Record
from engram.specs import Check

TIMES = "quick 6 s a seed, paper 1 min a seed on 2 cores"
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


def specs(scale: Scale, seeds: Sequence[int]) -> list[Check]:
    book, members = BOOK[scale], MEMBERS[scale]
    shapes = [book | {"d": d, "d_h": d // 4, "members": members} for d in WIDTHS[scale]]
    d = MLP_WIDTH[scale]
    mlps = [book | {"d": d, "d_h": d // 4, "members": members, "m": m} for m in UNITS[scale]]
    laws = [(ATTENTION, sizes) for sizes in shapes] + [(MLP, sizes) for sizes in mlps]
    found = [Check(law=law, sizes=sizes, seed=seed) for law, sizes in laws for seed in seeds]
    return [*found, Check(law=HISTOGRAM, sizes=shapes[WIDTHS[scale].index(ENOUGH[scale][0])], seed=0)]


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    scale = "smoke" if records[0].check.sizes["S"] < 16 else "quick"
    d, m = ENOUGH[scale]
    attention = [rows[0] for rows in of_law(records, ATTENTION, d=d)]
    measures = [Measure.exact(f"d={d}: share of facts not recalled, worst seed", _lost(attention), NONE)]
    for count in (2, 1, 0):
        over = [row[f"score.{count}"] - count for row in attention]
        measures.append(Measure.over_seeds(f"mean score in {count} of the sets, minus {count}", over, -0.1, 0.1))
        spread = [row[f"spread.{count}"] for row in attention]
        measures.append(Measure.over_seeds(f"standard deviation of scores in {count} of the sets", spread, high=0.25))
    yield _claim("facts.attention-construction", *measures)
    mlp = [rows[0] for rows in of_law(records, MLP, m=m)]
    label = f"d={MLP_WIDTH[scale]}, m={m} ({mlp[0]['parameters_per_fact']:.0f} parameters a fact): share not recalled"
    yield _claim("facts.mlp-construction", Measure.exact(f"{label}, worst seed", _lost(mlp), NONE))


def _lost(rows: Sequence[dict[str, float]]) -> float:
    return max(1 - row["accuracy"] for row in rows)


def _claim(id: str, *measures: Measure) -> Claim:
    return Claim(id, CLAIMS[id], SOURCE, tuple(measures))


def figure(records: Sequence[Record]) -> Any:
    from engram.show.facts import constructions

    def mean(law: str, size: str) -> dict[int, float]:
        sizes = sorted({r.check.sizes[size] for r in records if r.check.law == law})
        return {n: float(np.mean([rows[0]["accuracy"] for rows in of_law(records, law, **{size: n})])) for n in sizes}

    (histogram,) = of_law(records, HISTOGRAM)
    return constructions(histogram, mean(ATTENTION, "d"), mean(MLP, "m"))
