"""Other shapes store too: two factors like one matrix, thresholds and sets far more, updates of the right size.

A matrix written by Hebb's rule or fitted by least squares cannot give every pair {i, j} of names an answer of its own,
since e_i + e_j goes to W e_i + W e_j; a threshold MLP with one hidden unit per set can. (A matrix trained so that the
right score is the largest, whatever the vector, is another matter: it has names · d numbers to do it with.)

    engram run memory.architectures --seeds 5
"""

from math import comb

from engram.claims import Claimed, Figure, Labelled, Measure, Records, Runs, Scale, Seeds, checks
from engram.claims.readings import counted
from engram.experiments.memory import exponent, mean, means
from engram.theory.architectures import factorised_std

SOURCE = "Birth of a Transformer, section 4 and Appendix D; slides 'Maximal updates'"
CLAIMS = {
    "memory.factorised": "A product of two matrices of one gradient step each, W = (d/2d')UV, stores like W = Σ y xᵀ.",
    "memory.threshold-mlp": "A threshold MLP recalls all pairs far above the capacity of a matrix.",
    "memory.sets": "A linear memory, Hebbian or least squares, cannot map sets to new answers; a threshold MLP can.",
    "memory.maximal-updates": "W0 u and ΔW u are both of order 1 at every width, for ΔW = Σ α_j v_j u_jᵀ.",
}
BARS = (("threshold", "threshold MLP"), ("hebb", "Hebb"), ("least squares", "least squares"))
LAWS = ("threshold", "sets", "maximal_updates")
SIZES = {
    "smoke": ({"N": 64, "d": 16}, {"names": 8, "d": 64}, {"largest": 64}),
    "quick": ({"N": 2048, "d": 64}, {"names": 64, "d": 256}, {"largest": 1024}),
    "paper": ({"N": 4096, "d": 64}, {"names": 64, "d": 256}, {"largest": 2048}),
}
DRAWS = {"smoke": (1, 1, 2), "quick": (1, 1, 10), "paper": (1, 2, 20)}
RANKS = (16, 64, 256)
FACTORISED = {"smoke": 2, "quick": 100, "paper": 500}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    law, draws = "architectures.factorised_scores", FACTORISED[scale]
    factors = {("factors", m): checks(law, seeds, draws, d=256, m=m, n=20) for m in RANKS}
    others = zip(LAWS, SIZES[scale], DRAWS[scale], strict=True)
    return factors | {law: checks(f"architectures.{law}", seeds, draws, **sizes) for law, sizes, draws in others}


def claims(runs: Runs) -> Claimed:
    factors, pairs, sets = runs["factors", 64], runs["threshold"], runs["sets"]
    scores = [
        mean("d=256, d'=64, 20 pairs: mean right score", factors, "right.mean", 0.97, 1.03),
        mean("deviation of wrong scores, derived 0.158", factors, "wrong.std", 0.9 * 0.158, 1.1 * 0.158),
    ]
    yield "memory.factorised", scores
    on_pairs = [
        _recalled("accuracy of the threshold MLP", pairs, pairs[0].check.sizes["N"], 0.95),
        mean("accuracy of the Hebbian matrix", pairs, "hebb", 0, 0.25),
    ]
    yield "memory.threshold-mlp", on_pairs
    on_sets = [
        mean("accuracy of the Hebbian matrix", sets, "hebb", 0, 0.5),
        mean("accuracy of least squares", sets, "least squares", 0, 0.5),
        mean("share of the answers that least squares leaves", sets, "residual", 0.9, 1),
        _recalled("accuracy of the threshold MLP", sets, comb(sets[0].check.sizes["names"], 2), 0.95),
    ]
    yield "memory.sets", on_sets
    grown = {name: [exponent(r.rows, name, "d") for r in runs["maximal_updates"]] for name in ("W0 u", "ΔW u")}
    updates = [Measure.slope(f"exponent of ‖{name}‖ in d", found, -0.1, 0.1) for name, found in grown.items()]
    yield "memory.maximal-updates", updates


def _recalled(name: str, records: Records, pairs: int, low: float) -> Measure:
    """The accuracy of the threshold MLP, which is near 1: a share of all pairs in all draws."""
    asked = pairs * records[0].check.draws
    return Measure.share(name, counted(means(records, "threshold"), asked), asked, low, 1 + 1e-9)


def figure(runs: Runs) -> Figure:
    from engram.show.memory_laws import shapes_figure

    pairs, sets = (runs[law][0].check.sizes for law in ("threshold", "sets"))
    bars = {f"{pairs['N']} pairs, d={pairs['d']}\n{name}": means(runs["threshold"], c) for c, name in BARS[:2]}
    bars |= {f"pairs of {sets['names']} names, d={sets['d']}\n{name}": means(runs["sets"], c) for c, name in BARS}
    noise = {m: means(runs["factors", m], "wrong.std") for m in RANKS}
    return shapes_figure(noise, lambda m: factorised_std(20, 256, m), bars, runs["maximal_updates"])
