"""Random vectors are nearly orthonormal, and gradients are memories: overlaps, Lemmas 1 and 2, layer-norm, span.

Overlaps are measured on independent draws; each closed form of a gradient is compared with automatic differentiation,
entry by entry in float64, on random problems. One formula of the paper is off: its variance of x·Wx counts only half of
the pairs i ≠ j.

    engram run memory.lemmas --seeds 5
"""

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds, checks
from engram.claims.readings import means, worst_by_seed
from engram.theory.margins import OVERLAPS, printed_variance

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


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    overlaps = {("overlaps", d): checks("overlaps.variances", seeds, DRAWS[scale], d=d) for d in WIDTHS[scale]}
    return overlaps | {
        law: [check for sizes in chosen for check in checks(f"lemmas.{law}", seeds, PROBLEMS[scale], **sizes)]
        for law, chosen in (("closed_forms", SHAPES), ("span", SPANS))
    }


def claims(runs: Runs) -> Claimed:
    yield "memory.overlaps", [m for d in WIDTHS[runs.scale] for m in overlaps(runs["overlaps", d], d)]
    for id, column in FORMS.items():
        errors = worst_by_seed(runs["closed_forms"], column)
        yield id, [Measure.worst("largest difference from autograd", errors, 1e-10)]
    distances = worst_by_seed(runs["span"], "distance")
    yield "memory.span", [Measure.worst("largest distance of W − α₀W₀ from the span", distances, 1e-10)]


def overlaps(records: Records, d: int) -> Measures:
    rows = [r.rows[0] for r in records]
    for name, (mean, variance) in OVERLAPS.items():
        ratios = [row[f"variance {name}"] / variance(d) for row in rows]
        shifts = [(row[f"mean {name}"] - mean) / variance(d) ** 0.5 for row in rows]
        yield Measure.over_seeds(f"d={d}: variance of {name} over law", ratios, low=0.97, high=1.03)
        yield Measure.over_seeds(f"d={d}: mean of {name} minus {mean}, in deviations", shifts, low=-0.03, high=0.03)
    printed, factor = [row["variance x·Wx"] / printed_variance(d) for row in rows], 2 * (d + 2) / (d + 5)
    name = f"d={d}: variance of x·Wx over the paper's expression, which lacks the factor {factor:.3f}"
    yield Measure.over_seeds(name, printed, low=0.97 * factor, high=1.03 * factor)


def figure(runs: Runs) -> Figure:
    from engram.show.memory_laws import law_ratios

    found = dict(claims(runs))
    over_law = [m for m in found.pop("memory.overlaps") if m.name.endswith(" over law")]
    ratios = {m.name.replace("variance of ", "").removesuffix(" over law"): m for m in over_law}
    variances = {d: means(runs["overlaps", d], "variance x·Wx") for d in WIDTHS[runs.scale]}
    return law_ratios(ratios, variances, {id.removeprefix("memory."): measures[0] for id, measures in found.items()})
