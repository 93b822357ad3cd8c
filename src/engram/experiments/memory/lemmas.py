"""Random vectors are nearly orthonormal, and gradients are memories: overlaps, Lemmas 1 and 2, layer-norm, span.

Overlaps are measured on independent draws; each closed form of a gradient is compared with automatic differentiation,
entry by entry in float64, on random problems. One formula of the paper is off: its variance of x·Wx counts the pairs
i ≠ j by half.

    engram run memory.lemmas --seeds 5
"""

from collections.abc import Iterator, Sequence
from typing import Any

from engram.claims import Claim, Measure
from engram.claims.experiment import Scale
from engram.experiments.memory import of_law, worst
from engram.records import Record
from engram.specs import Check
from engram.theory.overlaps import OVERLAPS, printed_variance

TIMES = "quick 7 s a seed, paper 1 min a seed on 2 cores"
SOURCE = "Birth of a Transformer, Appendix A; Lemmas 1 and 2; Eq. 6 and 38"
CLAIMS = {
    "memory.overlaps": "Random embeddings and remappings overlap with the variances 2/d, 1/d, 2/d and (d+2)/d².",
    "memory.lemma1": "The gradient of the loss on tokens is a sum of outer products (Lemma 1, Eq. 5).",
    "memory.lemma2": "The gradient with noisy inputs depends on conditional means only (Lemma 2).",
    "memory.layernorm-gradient": "With layer-norm the gradient is projected off Wx (Eq. 38).",
    "memory.span": "Gradient descent, with or without weight decay, stays in α₀W₀ + span{u_j e_iᵀ} (Eq. 6).",
}
FORMS = {"memory.lemma1": "lemma1", "memory.lemma2": "lemma2", "memory.layernorm-gradient": "layernorm"}
WIDTHS = {"smoke": (8,), "quick": (16, 64), "paper": (16, 64, 128)}
DRAWS = {"smoke": 200, "quick": 60_000, "paper": 100_000}
PROBLEMS = {"smoke": 2, "quick": 20, "paper": 50}
SHAPES = ({"A": 6, "M": 6, "d": 5}, {"A": 7, "M": 6, "d": 5}, {"A": 40, "M": 30, "d": 32})
SPANS = ({"N": 4, "M": 3, "d": 16}, {"N": 10, "M": 12, "d": 24})


def specs(scale: Scale, seeds: Sequence[int]) -> list[Check]:
    checks = []
    for seed in seeds:
        checks += [
            Check(law="overlaps.variances", sizes={"d": d}, draws=DRAWS[scale], seed=seed) for d in WIDTHS[scale]
        ]
        checks += [Check(law="lemmas.closed_forms", sizes=s, draws=PROBLEMS[scale], seed=seed) for s in SHAPES]
        checks += [Check(law="lemmas.span", sizes=s, draws=PROBLEMS[scale], seed=seed) for s in SPANS]
    return checks


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    widths = sorted({r.check.sizes["d"] for r in records if r.check.law == "overlaps.variances"})
    yield Claim(
        "memory.overlaps", CLAIMS["memory.overlaps"], SOURCE, tuple(m for d in widths for m in overlaps(records, d))
    )
    errors = of_law(records, "lemmas.closed_forms")
    for id, column in FORMS.items():
        error = Measure.exact("largest difference from autograd", worst(errors, column), 1e-10)
        yield Claim(id, CLAIMS[id], SOURCE, (error,))
    spans = of_law(records, "lemmas.span")
    distance = Measure.exact("largest distance of W − α₀W₀ from the span", worst(spans, "distance"), 1e-10)
    yield Claim("memory.span", CLAIMS["memory.span"], SOURCE, (distance,))


def overlaps(records: Sequence[Record], d: int) -> Iterator[Measure]:
    rows = [rows[0] for rows in of_law(records, "overlaps.variances", d=d)]
    for name, (mean, variance) in OVERLAPS.items():
        ratios = [row[f"variance {name}"] / variance(d) for row in rows]
        shifts = [(row[f"mean {name}"] - mean) / variance(d) ** 0.5 for row in rows]
        yield Measure.over_seeds(f"d={d}: variance of {name} over law", ratios, low=0.97, high=1.03)
        yield Measure.over_seeds(f"d={d}: mean of {name} minus {mean}, in deviations", shifts, low=-0.03, high=0.03)
    printed, factor = [row["variance x·Wx"] / printed_variance(d) for row in rows], 2 * (d + 2) / (d + 5)
    name = f"d={d}: variance of x·Wx over the paper's expression, which lacks the factor {factor:.3f}"
    yield Measure.over_seeds(name, printed, low=0.97 * factor, high=1.03 * factor)


def figure(records: Sequence[Record]) -> Any:
    from engram.show.laws import law_ratios

    found = {claim.id: claim.measures for claim in claims(records)}
    over_law = [m for m in found.pop("memory.overlaps") if m.name.endswith(" over law")]
    ratios = {m.name.replace("variance of ", "").removesuffix(" over law"): m for m in over_law}
    variances: dict[int, list[float]] = {}
    for record in records:
        if record.check.law == "overlaps.variances":
            variances.setdefault(record.check.sizes["d"], []).append(record.rows[0]["variance x·Wx"])
    return law_ratios(ratios, variances, {id.removeprefix("memory."): measures[0] for id, measures in found.items()})
