"""Softmax attention is one step of retrieval from a dense memory whose patterns are the context.

α X softmax(β Xᵀ x̃) = s − α ∇E(s) at s = x̃, for E(s) = ‖s‖²/(2α) − (1/β) log Σ_t exp(β x_t · s); α = 1 is the update of
modern Hopfield networks. These are sure to hold √p c^{(d−1)/4} patterns, with c = 3.1546 for β=1, K=3, d=20, p=.001.

    engram run memory.attention --seeds 5
"""

from collections.abc import Iterator, Sequence
from typing import Any

from engram.claims import Claim, Measure
from engram.claims.experiment import Scale
from engram.records import Record
from engram.specs import Check

TIMES = "quick 3 s a seed, paper 1 min a seed on 2 cores"
SOURCE = "Smart, Bietti and Sengupta 2025, section 4; Ramsauer et al. 2021, Theorem 3"
CLAIMS = {
    "memory.attention-is-retrieval": "Softmax attention is one gradient step of size α on a dense memory's energy.",
    "memory.ramsauer-constant": "c = 3.1546 at β=1, K=3, d=20, p=.001, and that many patterns are well separated.",
}
DRAWS = {"smoke": 5, "quick": 100, "paper": 400}
APART = {"smoke": (5, 16), "quick": (25, 4096), "paper": (100, 8192)}  # draws, most patterns
CONSTANT = 3.1546


def specs(scale: Scale, seeds: Sequence[int]) -> list[Check]:
    steps = [Check(law="retrieval.attention_step", draws=DRAWS[scale], seed=seed) for seed in seeds]
    draws, most = APART[scale]
    apart = [Check(law="retrieval.separation", sizes={"most": most}, draws=draws, seed=seed) for seed in seeds]
    return [Check(law="retrieval.ramsauer_bound"), *steps, *apart]


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    bound, steps, apart = split(records)
    worst = {name: max(row[f"error.{name}"] for row in steps) for name in ("step", "ramsauer")}
    exact = (
        Measure.exact("attention minus one gradient step", worst["step"], 1e-12),
        Measure.exact("X softmax(β Xᵀ x) minus one gradient step, α = 1", worst["ramsauer"], 1e-12),
    )
    yield Claim("memory.attention-is-retrieval", CLAIMS["memory.attention-is-retrieval"], SOURCE, exact)
    least = min(apart)
    constant = (
        Measure.exact(f"c minus {CONSTANT}", bound["c"] - CONSTANT, 1e-4),
        Measure.over_seeds(f"share of draws in which {least} patterns are well separated", apart[least], low=0.95),
    )
    yield Claim("memory.ramsauer-constant", CLAIMS["memory.ramsauer-constant"], SOURCE, constant)


def figure(records: Sequence[Record]) -> Any:
    from engram.show.patterns import attention_as_retrieval

    return attention_as_retrieval(*split(records))


def split(records: Sequence[Record]) -> tuple[dict[str, float], list[dict[str, float]], dict[int, list[float]]]:
    """The bound, the rows of all steps, and N → share of well separated draws for each seed."""
    apart: dict[int, list[float]] = {}
    for row in (row for r in records if r.check.law == "retrieval.separation" for row in r.rows):
        apart.setdefault(int(row["N"]), []).append(row["separated"])
    steps = [row for r in records if r.check.law == "retrieval.attention_step" for row in r.rows]
    return records[0].rows[0], steps, apart
