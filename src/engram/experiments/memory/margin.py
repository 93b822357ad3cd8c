"""The margin of a Hebbian memory has mean 1 and variance 2/d + (2N−3)/d².

Margin: right score minus a wrong one, over all keys and all wrong values, embeddings on the sphere, one value a key. A
memory of rank m has a law of its own, derived here; its leading terms alone, 2/d + 2N(1/d)(1/m + 1/d), miss 3/m.

    engram run memory.margin --seeds 5
"""

from collections.abc import Iterator, Sequence
from typing import Any

from engram.claims import Claim, Measure
from engram.claims.experiment import Scale
from engram.experiments.memory import of_law
from engram.records import Record
from engram.specs import Check
from engram.theory.capacity import low_rank_margin_variance, margin_variance

TIMES = "quick 7 s a seed, paper 1 min a seed on 2 cores"
SOURCE = "slides 'Capacity: intuition' (bound on the variance of a score); the exact variances are derived here"
CLAIMS = {"memory.margin": "The margin of a Hebbian memory has mean 1 and variance 2/d + (2N−3)/d²."}
SIZES = {
    "smoke": ((8, 6),),
    "quick": ((16, 5), (16, 20), (32, 20), (32, 100), (64, 20), (64, 100), (64, 400)),
    "paper": ((16, 5), (16, 20), (32, 20), (32, 100), (64, 20), (64, 100), (64, 400), (128, 100), (128, 1000)),
}  # d, N
RANKS = {"smoke": (2,), "quick": (4, 8, 16, 32), "paper": (4, 8, 16, 32, 64)}
ENTRIES = {"smoke": 10_000, "quick": 5_000_000, "paper": 20_000_000}
LOW_RANK = {"smoke": 2, "quick": 4_000, "paper": 20_000}


def specs(scale: Scale, seeds: Sequence[int]) -> list[Check]:
    checks = []
    for seed in seeds:
        for d, N in SIZES[scale]:
            draws = ENTRIES[scale] // (N * max(N, d))
            checks.append(Check(law="margins.hebb_margins", sizes={"d": d, "N": N}, draws=draws, seed=seed))
        for m in RANKS[scale]:
            sizes = {"d": 32, "N": 100, "m": m}
            checks.append(Check(law="margins.low_rank_margins", sizes=sizes, draws=LOW_RANK[scale], seed=seed))
    return checks


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    measures = []
    for (d, N), rows in spreads(records, "margins.hebb_margins", "d", "N").items():
        measures += against_law(f"d={d}, N={N}", rows, margin_variance(N, d))
    for (d, N, m), rows in spreads(records, "margins.low_rank_margins", "d", "N", "m").items():
        measures += against_law(f"d={d}, N={N}, rank {m}", rows, low_rank_margin_variance(N, d, m))
    yield Claim("memory.margin", CLAIMS["memory.margin"], SOURCE, tuple(measures))


def against_law(name: str, rows: Sequence[dict[str, float]], variance: float) -> Iterator[Measure]:
    yield Measure.over_seeds(f"{name}: mean margin", [row["mean"] for row in rows], low=0.97, high=1.03)
    yield Measure.over_seeds(
        f"{name}: variance over law", [row["variance"] / variance for row in rows], low=0.97, high=1.03
    )


def spreads(records: Sequence[Record], law: str, *names: str) -> dict[tuple[int, ...], list[dict[str, float]]]:
    """The row of each seed, by sizes."""
    sizes = {tuple(r.check.sizes[name] for name in names) for r in records if r.check.law == law}
    return {s: [rows[0] for rows in of_law(records, law, **dict(zip(names, s, strict=True)))] for s in sorted(sizes)}


def figure(records: Sequence[Record]) -> Any:
    from engram.show.laws import margin_spread

    full, low = (
        spreads(records, "margins.hebb_margins", "d", "N"),
        spreads(records, "margins.low_rank_margins", "d", "N", "m"),
    )
    return margin_spread(full, low)
