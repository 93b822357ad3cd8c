"""Margins grow like the logarithm of time: e^m + (M−1)m − 1 = pMt, for tokens that do not overlap.

Exact: descent with small steps against the implicit solution of its flow, as a number for one token and as a whole
matrix with random orthonormal embeddings; then large steps, which end on the same curve. The Hessian on which all that
is said of step sizes rests is compared with automatic differentiation.

    engram run scaling.margins --seeds 5
"""

from math import log

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Runs, Scale, Seeds, checks
from engram.claims.readings import worst_by_seed
from engram.experiments.memory import worst
from engram.theory.margin_law import margin_at

TIMES = "quick 1 s a seed, paper 20 s a seed (estimated) on 2 cores"

SOURCE = "Cabannes, Simsek and Bietti 2024, section on orthogonal embeddings, and its published code"
CLAIMS = {
    "scaling.log-margins": "With orthogonal embeddings e^m + (M−1)m − 1 = pMt, so margins grow like ln(pMt).",
    "scaling.hessian": "The Hessian is Σ_x p(x) e_x e_xᵀ ⊗ (Σ_y p̂_y u_y u_yᵀ − ū ūᵀ).",
}
WEIGHTS, PRINTED, TIME = (0.75, 0.25), (7.309, 6.204), 1000.0  # p of two tokens, and their margins then
RATES = (0.1, 1.0, 10.0)
UNTIL = {"smoke": (1.0, 100.0, 0.2), "quick": (TIME, 1e5, 10.0), "paper": (TIME, 1e5, 10.0)}  # small, large, matrix
SHAPES = ({"N": 4, "M": 3, "d": 3}, {"N": 6, "M": 4, "d": 5}, {"N": 12, "M": 10, "d": 6})
PROBLEMS = {"smoke": 1, "quick": 5, "paper": 20}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """Margins by (p, rate); nothing in them depends on the seed."""
    small, large, matrix = UNTIL[scale]
    flow = {(p, 1e-3): checks("dynamics.margins", [0], 60, p=p, M=2, rate=1e-3, until=small) for p in WEIGHTS}
    steps = {
        (WEIGHTS[0], r): checks("dynamics.margins", [0], 60, p=WEIGHTS[0], M=2, rate=r, until=large) for r in RATES
    }
    return {
        **flow,
        **steps,
        "matrix": checks("dynamics.orthogonal", seeds, 20, until=matrix),
        "hessian": [c for shape in SHAPES for c in checks("dynamics.hessian", seeds, PROBLEMS[scale], **shape)],
    }


def claims(runs: Runs) -> Claimed:
    yield "scaling.log-margins", [*_margins(runs)]
    forms = {"gradient": "gradient", "hessian": "Hessian"}
    yield (
        "scaling.hessian",
        [
            Measure.worst(
                f"largest difference of the {name} from autograd", worst_by_seed(runs["hessian"], column), 1e-10
            )
            for column, name in forms.items()
        ],
    )


def _margins(runs: Runs) -> Measures:
    for p, printed in zip(WEIGHTS, PRINTED, strict=True):
        yield Measure.exact(f"M=2, p={p}: margin at t=1000 minus {printed}", margin_at(p, 2, TIME) - printed, 5e-4)
    rows = [runs[p, 1e-3][0].rows for p in WEIGHTS]
    off = worst([[{"off": row["margin"] - row["law"]} for row in same] for same in rows], "off")
    yield Measure.exact("steps of 0.001, two tokens: largest difference of a margin from the law", off, 1e-3)
    differences = worst_by_seed(runs["matrix"], "difference")
    yield Measure.worst("steps of 0.001, five tokens in a matrix: largest difference from the law", differences, 1e-3)
    for rate in RATES:
        last = runs[WEIGHTS[0], rate][0].rows[-1]
        yield Measure.exact(
            f"steps of {rate}: margin at the end minus ln(pMt)",
            last["margin"] - log(2 * WEIGHTS[0] * last["time"]),
            0.05,
        )


def figure(runs: Runs) -> Figure:
    from engram.show.memory_dynamics import margins_over_time

    small = {p: runs[p, 1e-3][0].rows for p in WEIGHTS}
    return margins_over_time(small, {rate: runs[WEIGHTS[0], rate][0].rows for rate in RATES}, WEIGHTS[0])
