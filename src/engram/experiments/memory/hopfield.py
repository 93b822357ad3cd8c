"""Hopfield's memory keeps patterns up to about 0.138 d, and forgets them all at once beyond.

W = Σ_μ ξ_μ ξ_μᵀ with zero diagonal. From a stored pattern, bits are updated one after the other until none moves
(asynchronous dynamics); what remains is the overlap ξ · x / d. Without any wrong bit a given pattern survives only to
d / (2 ln d): a bit is wrong with probability p = Q(√((d−1)/(N−1))), a pattern without error with (1 − p)^d.

    engram run memory.hopfield --seeds 5
"""

from collections.abc import Iterator, Sequence
from math import log
from typing import Any

from engram.claims import Claim, Measure
from engram.claims.experiment import Scale
from engram.records import Record
from engram.specs import Check

TIMES = "quick 8 s a seed, paper 4 min a seed on 2 cores"
SOURCE = "Hopfield 1982; Amit, Gutfreund and Sompolinsky 1985; McEliece et al. 1987"
CLAIMS = {
    "memory.hopfield": "Patterns are attractors up to N = 0.138 d, without error up to d/(2 ln d); energy never rises.",
}
D = {"smoke": 100, "quick": 1000, "paper": 2000}
DRAWS = {"smoke": 1, "quick": 1, "paper": 2}
CLAIMED = (12, 18)  # 100 N / d
PERCENT = {"smoke": CLAIMED, "quick": (6, 9, 11, 12, 13, 14, 15, 16, 18, 20), "paper": (6, 9, *range(11, 21))}


def specs(scale: Scale, seeds: Sequence[int]) -> list[Check]:
    return [check for seed in seeds for check in of_seed(scale, seed)]


def of_seed(scale: Scale, seed: int) -> list[Check]:
    d, draws = D[scale], DRAWS[scale]
    few = {"d": d, "N": round(d / (2 * log(d)))}
    curve = [{"d": d, "N": d * percent // 100} for percent in PERCENT[scale]]
    return [
        *(Check(law="hopfield.retrieval", sizes=sizes, draws=draws, seed=seed) for sizes in curve),
        Check(law="hopfield.stability", sizes=few, draws=40 * draws, seed=seed),
        Check(law="hopfield.descent", sizes={"d": d, "N": round(0.12 * d)}, draws=draws, seed=seed),
    ]


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    curve = overlaps(records)
    stable, rises = values(records, "hopfield.stability", "stable"), values(records, "hopfield.descent", "rise")
    measures = (
        Measure.over_seeds("overlap at N = 0.12 d", curve[CLAIMED[0]], low=0.97),
        Measure.over_seeds("overlap at N = 0.18 d", curve[CLAIMED[1]], high=0.8),
        Measure.over_seeds("share of patterns without error at N = d/(2 ln d)", stable, low=0.85, high=0.95),
        Measure.exact("largest rise of the energy", max(0.0, *rises), tolerance=1e-9),
    )
    yield Claim("memory.hopfield", CLAIMS["memory.hopfield"], SOURCE, measures)


def figure(records: Sequence[Record]) -> Any:
    from engram.show.patterns import overlap_curve

    return overlap_curve(overlaps(records), records[0].check.sizes["d"])


def overlaps(records: Sequence[Record]) -> dict[int, list[float]]:
    """100 N/d → the mean overlap of each seed."""
    by_percent: dict[int, list[float]] = {}
    for r in (r for r in records if r.check.law == "hopfield.retrieval"):
        percent = 100 * r.check.sizes["N"] // r.check.sizes["d"]
        by_percent.setdefault(percent, []).append(sum(row["overlap"] for row in r.rows) / len(r.rows))
    return by_percent


def values(records: Sequence[Record], law: str, column: str) -> list[float]:
    """The mean of a column for each seed; of rises the largest."""
    reduce = max if column == "rise" else lambda rows: sum(rows) / len(rows)
    return [reduce([row[column] for row in r.rows]) for r in records if r.check.law == law]
