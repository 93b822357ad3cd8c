"""Softmax attention is one step of retrieval from a dense memory whose patterns are the context.

α X softmax(β Xᵀ x̃) = s − α ∇E(s) at s = x̃, for E(s) = ‖s‖²/(2α) − (1/β) log Σ_t exp(β x_t · s); α = 1 is the update of
modern Hopfield networks. They hold at least √p c^{(d−1)/4} patterns, with c = 3.1546 for β=1, K=3, d=20, p=.001.

    engram run memory.attention --seeds 5
"""

from engram.claims import Claimed, Figure, Labelled, Measure, Runs, Scale, Seeds, checks
from engram.claims.readings import worst_by_seed

SOURCE = "Smart, Bietti and Sengupta 2025, section 4; Ramsauer et al. 2021, Theorem 3"
CLAIMS = {
    "memory.attention-is-retrieval": "Softmax attention is one gradient step of size α on a dense memory's energy.",
    "memory.ramsauer-constant": "The capacity's constant is c = 3.1546 at β = 1, K = 3, d = 20, p = 0.001.",
}
DRAWS = {"smoke": 5, "quick": 100, "paper": 400}
APART = {"smoke": (5, 16), "quick": (25, 4096), "paper": (100, 8192)}  # draws, most patterns
CONSTANT = 3.1546


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    draws, most = APART[scale]
    return {
        "bound": checks("retrieval.ramsauer_bound", [0]),
        "steps": checks("retrieval.attention_step", seeds, DRAWS[scale]),
        "apart": checks("retrieval.separation", seeds, draws, most=most),
    }


def claims(runs: Runs) -> Claimed:
    names = {
        "error.step": "attention minus one gradient step",
        "error.ramsauer": "X softmax(β Xᵀ x) minus one gradient step, α = 1",
    }
    exact = [Measure.worst(name, worst_by_seed(runs["steps"], c), 1e-12) for c, name in names.items()]
    yield "memory.attention-is-retrieval", exact
    constant = Measure.exact(f"c minus {CONSTANT}", runs["bound"][0].last("c") - CONSTANT, 1e-4)
    yield "memory.ramsauer-constant", [constant]


def separated(runs: Runs) -> dict[int, list[float]]:
    """N → the share of well separated draws for each seed."""
    by_N = zip(*(r.rows for r in runs["apart"]), strict=True)
    return {int(same[0]["N"]): [row["separated"] for row in same] for same in by_N}


def figure(runs: Runs) -> Figure:
    from engram.show.retrieval import attention_as_retrieval

    steps = [row for r in runs["steps"] for row in r.rows]
    return attention_as_retrieval(runs["bound"][0].rows[0], steps, separated(runs))
