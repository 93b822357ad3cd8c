"""Gradients of attention are memories: Lemmas 4 and 5 in closed form, and every gradient as a sum of outer products.

Each closed form is compared with automatic differentiation, entry by entry in float64, on random problems. Lemma 4 is
the gradient of the second layer's keys at zero, Lemma 5 that of the first layer's. In general ∇_W L is the sum over all
places y = W x of (∂L/∂y) xᵀ: for all ten matrices of the simplified model.

    engram run theory.gradients --seeds 5
"""

from engram.claims import Claimed, Figure, Labelled, Measure, Runs, Scale, Seeds, checks
from engram.claims.readings import worst_by_seed
from engram.theory.backward import MATRICES

SOURCE = "Birth of a Transformer, Lemmas 4 and 5 (Appendix B.2)"
CLAIMS = {
    "theory.lemma4": "At W_K2 = 0 the gradient is Σ_k E[(p̂_k − 1{y=k}) (1/T) Σ_t u_kᵀΦ2x_t (x_t − x̄) x_Tᵀ] (Lemma 4).",
    "theory.lemma5": "At W_K1 = 0, with the second softmax linear, the gradient is that of Lemma 5.",
    "theory.backward-vectors": "The gradient of every matrix is E[(what came back)(what went in)ᵀ].",
}
LAWS = {"gradients.closed_forms": ("lemma4", "lemma5"), "backward.outer_products": MATRICES}
PROBLEMS = {"smoke": 2, "quick": 20, "paper": 50}
SHAPES = ({"A": 5, "T": 4, "N": 6, "d": 5}, {"A": 12, "T": 9, "N": 8, "d": 16})


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    return {law: [c for shape in SHAPES for c in checks(law, seeds, PROBLEMS[scale], **shape)] for law in LAWS}


def claims(runs: Runs) -> Claimed:
    found, off = errors(runs), "largest difference from autograd"
    for name in ("lemma4", "lemma5"):
        yield f"theory.{name}", [Measure.worst(off, found[name], 1e-10)]
    measures = [Measure.worst(f"{name}: {off}", found[name], 1e-10) for name in MATRICES]
    yield "theory.backward-vectors", measures


def errors(runs: Runs) -> dict[str, list[float]]:
    """By lemma or matrix the largest difference of an entry from autograd, for each seed."""
    return {name: worst_by_seed(runs[law], name) for law, names in LAWS.items() for name in names}


def figure(runs: Runs) -> Figure:
    from engram.show.gradient_steps import errors_against_autograd

    return errors_against_autograd({name: max(found, key=abs) for name, found in errors(runs).items()})
