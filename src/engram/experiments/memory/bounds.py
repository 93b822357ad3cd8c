"""What B bits can hold: the loss they must leave, the encoder that reaches it, and how near memories come.

Every f(x) is uniform on M values. Keeping the likeliest inputs leaves exactly the least loss that B bits allow, log M
times the mass of the others; no codebook of a small problem does better. Written and trained matrices are rounded to
the fewest levels that keep 99 % recall, and the bits they hold about a permutation (log2 N!, less Fano's share for
errors) are divided by the bits of their weights.

    engram run memory.bounds --seeds 5
"""

from collections.abc import Iterator, Sequence
from math import inf
from typing import Any

from engram.claims import Claim, Measure
from engram.claims.experiment import Scale
from engram.experiments.memory import exponents, of_law, worst
from engram.records import Record
from engram.specs import Check

TIMES = "quick 5 s a seed, paper 2 min a seed on 2 cores"
SOURCE = "Understanding factual recall in transformers, section on lower bounds"
CLAIMS = {
    "memory.bounds": "B bits leave a loss of at least log M times the mass they cannot hold; memories stay below.",
}
BOOKS = ((4, 2, 1), (3, 2, 1), (3, 2, 2), (2, 3, 1), (2, 3, 2), (2, 4, 1))  # N, M, B
ALPHAS = (15, 20)  # tenths
TAIL = {"smoke": 100_000, "quick": 1_000_000, "paper": 4_000_000}
PAIRS = {"smoke": 200, "quick": 4_000, "paper": 20_000}
HEBB, TRAINED = {"smoke": 16, "quick": 64, "paper": 128}, {"smoke": 8, "quick": 32, "paper": 64}


def specs(scale: Scale, seeds: Sequence[int]) -> list[Check]:
    once = [Check(law="bounds.best_codebook", sizes={"N": N, "M": M, "B": B}) for N, M, B in BOOKS]
    once += [Check(law="bounds.power_law_bounds", sizes={"tenths": a, "N": TAIL[scale]}, draws=12) for a in ALPHAS]
    for seed in seeds:
        once += [
            Check(law="bounds.top_k", draws=100, seed=seed),
            Check(law="precision.hebb_efficiency", sizes={"d": HEBB[scale]}, draws=PAIRS[scale], seed=seed),
            Check(law="precision.trained_efficiency", sizes={"d": TRAINED[scale]}, draws=8, seed=seed),
        ]
    return once


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    gap = min(rows[0]["gap"] for rows in of_law(records, "bounds.best_codebook"))
    measures = [
        Measure.exact("top-k encoder minus bound", worst(of_law(records, "bounds.top_k"), "gap"), 1e-12),
        Measure("best codebook minus bound, least of six problems", -1e-12, inf, gap, (gap, gap), 1, exact_law=True),
    ]
    for tenths in ALPHAS:
        (rows,) = of_law(records, "bounds.power_law_bounds", tenths=tenths)
        measures += power_law_measures(rows, tenths / 10)
    for law, name in (("hebb", "Hebbian"), ("trained", "trained")):
        best = [max(row["ratio"] for row in rows) for rows in of_law(records, f"precision.{law}_efficiency")]
        measures.append(Measure.over_seeds(f"bits stored per bit used, {name} matrix", best, low=0, high=1))
    yield Claim("memory.bounds", CLAIMS["memory.bounds"], SOURCE, tuple(measures))


def power_law_measures(rows: Sequence[dict[str, float]], alpha: float) -> Iterator[Measure]:
    in_bits, in_M = by_bits(rows), [row for row in rows if row["bits"] == 2520]
    for name, part, column, expected in (("B", in_bits, "bits", 1 - alpha), ("log M", in_M, "log M", alpha)):
        (slope,) = exponents([part], "bound", column)
        yield Measure.exact(f"α={alpha}: exponent of the bound in {name} minus {expected}", slope - expected, 0.05)
    yield Measure.exact(f"α={alpha}: top-k loss over bound minus 1", worst([rows], "gap"), 1e-12)


def by_bits(rows: Sequence[dict[str, float]]) -> list[dict[str, float]]:
    """The rows at M = 1024 over numbers of bits."""
    return [row for row in rows if row["bits"] != 2520]


def figure(records: Sequence[Record]) -> Any:
    from engram.show.laws import bound_figure

    tails = {a / 10: by_bits(of_law(records, "bounds.power_law_bounds", tenths=a)[0]) for a in ALPHAS}
    kinds = {"Hebbian": "hebb", "trained": "trained"}
    return bound_figure(tails, {name: of_law(records, f"precision.{law}_efficiency") for name, law in kinds.items()})
