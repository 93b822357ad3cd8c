"""What B bits can hold: the loss they must leave, the encoder that reaches it, and how near memories come.

Every f(x) is uniform on M values. Keeping the likeliest inputs leaves exactly the least loss that B bits allow, log M
times the mass of the others; no codebook of a small problem does better. Written and trained matrices are rounded to
the fewest levels that keep 99 % recall, and the bits they hold about a permutation (log2 N!, less Fano's share for
errors) are divided by the bits of their weights.

    engram run memory.bounds --seeds 5
"""

from engram.claims import Figure, Labelled, Measure, Measures, Rows, Runs, Scale, Seeds, checks
from engram.claims.readings import worst_by_seed
from engram.experiments.memory import exponent, worst

SOURCE = "Understanding factual recall in transformers, section on lower bounds"
CLAIMS = {
    "memory.bounds": "B bits leave a loss of at least log M times the mass that they cannot hold.",
}
BOOKS = ((4, 2, 1), (3, 2, 1), (3, 2, 2), (2, 3, 1), (2, 3, 2), (2, 4, 1))  # N, M, B
ALPHAS = (1.5, 2.0)
TAIL = {"smoke": 100_000, "quick": 1_000_000, "paper": 4_000_000}
PAIRS = {"smoke": 200, "quick": 4_000, "paper": 20_000}
HEBB, TRAINED = {"smoke": 16, "quick": 64, "paper": 128}, {"smoke": 8, "quick": 32, "paper": 64}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    law, N = "bounds.power_law_bounds", TAIL[scale]
    return {
        "codebooks": [c for N, M, B in BOOKS for c in checks("bounds.best_codebook", [0], N=N, M=M, B=B)],
        **{("power law", alpha): checks(law, [0], 12, alpha=alpha, N=N) for alpha in ALPHAS},
        "top-k": checks("bounds.top_k", seeds, 100),
        "Hebbian": checks("precision.hebb_efficiency", seeds, PAIRS[scale], d=HEBB[scale]),
        "trained": checks("precision.trained_efficiency", seeds, 8, d=TRAINED[scale]),
    }


def claims(runs: Runs) -> Measures:
    yield Measure.worst("top-k encoder minus bound", worst_by_seed(runs["top-k"], "gap"), 1e-12)
    gap = min(r.rows[0]["gap"] for r in runs["codebooks"])
    yield Measure.known("best codebook minus bound, least of six problems", gap, low=-1e-12)
    for alpha in ALPHAS:
        yield from power_law_measures(runs["power law", alpha][0].rows, alpha)


def power_law_measures(rows: Rows, alpha: float) -> Measures:
    in_bits, in_M = by_bits(rows), [row for row in rows if row["bits"] == 2520]
    for name, part, column, expected in (("B", in_bits, "bits", 1 - alpha), ("log M", in_M, "log M", alpha)):
        off = exponent(part, "bound", column) - expected
        yield Measure.exact(f"α={alpha}: exponent of the bound in {name} minus {expected}", off, 0.05)
    yield Measure.exact(f"α={alpha}: top-k loss over bound minus 1", worst([rows], "gap"), 1e-12)


def by_bits(rows: Rows) -> Rows:
    """The rows at M = 1024 over numbers of bits."""
    return [row for row in rows if row["bits"] != 2520]


def figure(runs: Runs) -> Figure:
    from engram.show.memory_laws import bound_figure

    tails = {alpha: by_bits(runs["power law", alpha][0].rows) for alpha in ALPHAS}
    return bound_figure(tails, {kind: runs[kind] for kind in ("Hebbian", "trained")})
