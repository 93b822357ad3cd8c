"""Other shapes store too: two factors like one matrix, thresholds and sets far more, updates of the right size.

A matrix written by Hebb's rule or fitted by least squares cannot give every pair {i, j} of names an answer of its own,
since e_i + e_j goes to W e_i + W e_j; a threshold MLP with one hidden unit a set can. (A matrix trained so that the
right score is the largest, whatever the vector, is another matter: it has names · d numbers to do it with.)

    engram run memory.architectures --seeds 5
"""

from collections.abc import Iterator, Sequence
from typing import Any

from engram.claims import Claim, Measure
from engram.claims.experiment import Scale
from engram.experiments.memory import exponents, of_law
from engram.records import Record
from engram.specs import Check
from engram.theory.architectures import factorised_std

TIMES = "quick 3 s a seed, paper 20 s a seed on 2 cores"
SOURCE = "Birth of a Transformer, section 4 and Appendix D; slides 'Maximal updates'"
CLAIMS = {
    "memory.factorised": "A product of two matrices of one gradient step each, W = (d/2d')UV, stores like W = Σ y xᵀ.",
    "memory.threshold-mlp": "A threshold MLP recalls all pairs far above the capacity of a matrix.",
    "memory.sets": "A linear memory, Hebbian or least squares, cannot map sets to new answers; a threshold MLP can.",
    "memory.maximal-updates": "W0 u and ΔW u are both of order 1 at every width, for ΔW = Σ α_j v_j u_jᵀ.",
}
BARS = (("threshold", "threshold MLP"), ("hebb", "Hebb"), ("least squares", "least squares"))
NORMS = {"W0 u": "‖W0 u‖", "ΔW u": "‖ΔW u‖", "relative": "‖ΔW‖/‖W0‖ (Frobenius)"}
LAWS = ("factorised_scores", "threshold", "sets", "maximal_updates")
SIZES = {
    "smoke": ({"N": 64, "d": 16}, {"names": 8, "d": 64}, {"largest": 64}),
    "quick": ({"N": 2048, "d": 64}, {"names": 64, "d": 256}, {"largest": 1024}),
    "paper": ({"N": 4096, "d": 64}, {"names": 64, "d": 256}, {"largest": 2048}),
}
DRAWS = {"smoke": (1, 1, 2), "quick": (1, 1, 10), "paper": (1, 2, 20)}
RANKS = (16, 64, 256)
FACTORISED = {"smoke": 2, "quick": 100, "paper": 500}


def specs(scale: Scale, seeds: Sequence[int]) -> list[Check]:
    factors = [("factorised_scores", {"d": 256, "m": m, "n": 20}, FACTORISED[scale]) for m in RANKS]
    laws = [*factors, *zip(LAWS[1:], SIZES[scale], DRAWS[scale], strict=True)]
    return [Check(law=f"architectures.{law}", sizes=s, draws=n, seed=seed) for seed in seeds for law, s, n in laws]


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    runs = {law: of_law(records, f"architectures.{law}") for law in LAWS[1:]}
    factorised = of_law(records, "architectures.factorised_scores", m=64)
    yield claim(
        "memory.factorised",
        seeds("d=256, d'=64, 20 pairs: mean right score", factorised, "right.mean", 0.97, 1.03),
        seeds("deviation of wrong scores, derived 0.158", factorised, "wrong.std", 0.9 * 0.158, 1.1 * 0.158),
    )
    yield claim(
        "memory.threshold-mlp",
        seeds("accuracy of the threshold MLP", runs["threshold"], "threshold", 0.999, 1 + 1e-9),
        seeds("accuracy of the Hebbian matrix", runs["threshold"], "hebb", 0, 0.25),
    )
    yield claim(
        "memory.sets",
        seeds("accuracy of the Hebbian matrix", runs["sets"], "hebb", 0, 0.5),
        seeds("accuracy of least squares", runs["sets"], "least squares", 0, 0.5),
        seeds("share of the answers that least squares leaves", runs["sets"], "residual", 0.9, 1),
        seeds("accuracy of the threshold MLP", runs["sets"], "threshold", 0.99, 1 + 1e-9),
    )
    grown = {name: exponents(runs["maximal_updates"], name, "d") for name in ("W0 u", "ΔW u")}
    yield claim(
        "memory.maximal-updates",
        *(Measure.over_seeds(f"exponent of ‖{name}‖ in d", found, -0.1, 0.1) for name, found in grown.items()),
    )


def claim(id: str, *measures: Measure) -> Claim:
    return Claim(id, CLAIMS[id], SOURCE, measures)


def seeds(name: str, runs: Sequence[Sequence[dict[str, float]]], column: str, low: float, high: float) -> Measure:
    return Measure.over_seeds(name, [sum(row[column] for row in rows) / len(rows) for rows in runs], low, high)


def by_width(runs: Sequence[Sequence[dict[str, float]]], column: str) -> dict[float, list[float]]:
    return {at[0]["d"]: [row[column] for row in at] for at in zip(*runs, strict=True)}


def figure(records: Sequence[Record]) -> Any:
    from engram.show.laws import shapes_figure

    def mean(law: str, column: str) -> float:
        return seeds("", of_law(records, f"architectures.{law}"), column, 0, 1).measured

    sizes = {r.check.law: r.check.sizes for r in records}
    pairs, sets = sizes["architectures.threshold"], sizes["architectures.sets"]
    bars = {f"{pairs['N']} pairs, d={pairs['d']}\n{name}": mean("threshold", column) for column, name in BARS[:2]}
    bars |= {f"pairs of {sets['names']} names, d={sets['d']}\n{name}": mean("sets", column) for column, name in BARS}
    factors = {m: of_law(records, "architectures.factorised_scores", m=m) for m in RANKS}
    noise = {m: [rows[0]["wrong.std"] for rows in runs] for m, runs in factors.items()}
    updates = of_law(records, "architectures.maximal_updates")
    norms = {name: by_width(updates, column) for column, name in NORMS.items()}
    return shapes_figure(noise, lambda m: factorised_std(20, 256, m), bars, norms)
