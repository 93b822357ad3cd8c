"""The margin of a Hebbian memory has mean 1 and variance 2/d + (2N−3)/d².

Margin: right score minus a wrong one, over all keys and all wrong values, embeddings on the sphere, one value per key.
A memory of rank m has a law of its own, derived here; its leading terms alone, 2/d + 2N(1/d)(1/m + 1/d), miss 3/m.

    engram run memory.margin --seeds 5
"""

from engram.claims import Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds, checks
from engram.experiments.memory import mean, means
from engram.theory.capacity import low_rank_margin_variance, margin_variance

TIMES = "quick 7 s a seed, paper 1 min a seed on 2 cores"

SOURCE = "slides 'Capacity: intuition' (bound on the variance of a score); the exact variances are derived here"
CLAIMS = {"memory.margin": "The margin of a Hebbian memory has mean 1 and variance 2/d + (2N−3)/d²."}
SIZES = {
    "smoke": ((8, 6),),
    "quick": ((16, 5), (16, 20), (32, 20), (32, 100), (64, 20), (64, 100), (64, 400)),
    "paper": ((16, 5), (16, 20), (32, 20), (32, 100), (64, 20), (64, 100), (64, 400), (128, 100), (128, 1000)),
}  # d, N
LOW = (32, 100)  # d, N of the memories of low rank
RANKS = {"smoke": (2,), "quick": (4, 8, 16, 32), "paper": (4, 8, 16, 32, 64)}
ENTRIES = {"smoke": 10_000, "quick": 5_000_000, "paper": 20_000_000}
LOW_RANK = {"smoke": 2, "quick": 4_000, "paper": 20_000}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """By (d, N) at full rank, else by the rank."""
    law, entries, draws = "margins.hebb_margins", ENTRIES[scale], LOW_RANK[scale]
    full = {(d, N): checks(law, seeds, entries // (N * max(N, d)), d=d, N=N) for d, N in SIZES[scale]}
    d, N = LOW
    low = {("rank", m): checks("margins.low_rank_margins", seeds, draws, d=d, N=N, m=m) for m in RANKS[scale]}
    return full | low


def claims(runs: Runs) -> Measures:
    for d, N in SIZES[runs.scale]:
        yield from against_law(f"d={d}, N={N}", runs[d, N], margin_variance(N, d))
    d, N = LOW
    for m in RANKS[runs.scale]:
        yield from against_law(f"d={d}, N={N}, rank {m}", runs["rank", m], low_rank_margin_variance(N, d, m))


def against_law(name: str, records: Records, variance: float) -> Measures:
    yield mean(f"{name}: mean margin", records, "mean", low=0.97, high=1.03)
    ratios = [value / variance for value in means(records, "variance")]
    yield Measure.over_seeds(f"{name}: variance over law", ratios, low=0.97, high=1.03)


def figure(runs: Runs) -> Figure:
    from engram.show.memory_laws import margin_spread

    full = {(d, N): means(runs[d, N], "variance") for d, N in SIZES[runs.scale]}
    return margin_spread(full, {m: means(runs["rank", m], "variance") for m in RANKS[runs.scale]}, *LOW)
