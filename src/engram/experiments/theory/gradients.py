"""Gradients of attention are memories: Lemmas 4 and 5 in closed form, and every gradient as a sum of outer products.

Each closed form is compared with automatic differentiation, entry by entry in float64, on random problems. Lemma 4 is
the gradient of the second layer's keys at zero, Lemma 5 that of the first layer's. In general ∇_W L is the sum over all
places where W acts of (what came back)(what went in)ᵀ: for all ten matrices of the simplified model.

    engram run theory.gradients --seeds 5
"""

from collections.abc import Iterator, Sequence
from typing import Any

from engram.claims import Claim, Measure
from engram.claims.experiment import Scale
from engram.experiments.memory import of_law, worst
from engram.records import Record
from engram.specs import Check
from engram.theory.backward import MATRICES

TIMES = "quick 1 s a seed, paper 3 s a seed on 2 cores"
SOURCE = "Birth of a Transformer, Lemmas 4 and 5 (Appendix B.2)"
CLAIMS = {
    "theory.lemma4": "At W_K2 = 0 the gradient is Σ_k E[(p̂_k − 1{y=k}) (1/T) Σ_t u_kᵀΦ2x_t (x_t − x̄) x_Tᵀ] (Lemma 4).",
    "theory.lemma5": "At W_K1 = 0, with the second softmax linear, the gradient is that of Lemma 5.",
    "theory.backward-vectors": "The gradient of every matrix is E[(what came back)(what went in)ᵀ].",
}
PROBLEMS = {"smoke": 2, "quick": 20, "paper": 50}
SHAPES = ({"A": 5, "T": 4, "N": 6, "d": 5}, {"A": 12, "T": 9, "N": 8, "d": 16})


def specs(scale: Scale, seeds: Sequence[int]) -> list[Check]:
    return [
        Check(law=law, sizes=shape, draws=PROBLEMS[scale], seed=seed)
        for law in ("gradients.closed_forms", "backward.outer_products")
        for shape in SHAPES
        for seed in seeds
    ]


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    found = errors(records)
    for name in ("lemma4", "lemma5"):
        yield _claim(f"theory.{name}", Measure.exact("largest difference from autograd", found[name], 1e-10))
    measures = (Measure.exact(f"{name}: largest difference from autograd", found[name], 1e-10) for name in MATRICES)
    yield _claim("theory.backward-vectors", *measures)


def errors(records: Sequence[Record]) -> dict[str, float]:
    """By lemma or matrix the largest difference of an entry from autograd."""
    lemmas, outer = (of_law(records, law) for law in ("gradients.closed_forms", "backward.outer_products"))
    return {name: worst(lemmas, name) for name in ("lemma4", "lemma5")} | {n: worst(outer, n) for n in MATRICES}


def _claim(id: str, *measures: Measure) -> Claim:
    return Claim(id, CLAIMS[id], SOURCE, measures)


def figure(records: Sequence[Record]) -> Any:
    from engram.show.steps import errors_against_autograd

    return errors_against_autograd(errors(records))
