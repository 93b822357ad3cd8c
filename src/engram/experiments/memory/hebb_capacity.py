"""A sum of outer products stores N ∝ d² pairs when every pair has its own answer.

W = Σ_z u_z e_zᵀ with embeddings on the sphere; N is the size at which recall, averaged over codebooks, falls to 99 %.

    engram run memory.hebb-capacity --seeds 5
"""

from engram.claims import Claimed, Figure, Labelled, Measure, Runs, Scale, Seeds
from engram.claims.fits import curves, exponent
from engram.claims.readings import capacities, capacity
from engram.experiments.memory import geometric_means, searches
from engram.models.stores import Outer
from engram.theory.capacity import hebb_capacity

SOURCE = "talks, 'Capacity: intuition'; Understanding factual recall, Theorem 1; the constant was measured before"
CLAIMS = {
    "memory.hebb-capacity": "A Hebbian matrix stores N ∝ d² pairs at 99 %.",
    "memory.hebb-constant": "The factor is 0.027: N = 0.027 d².",
}
WIDTHS = {"smoke": (16, 32), "quick": (16, 32, 64, 128, 256), "paper": (16, 32, 64, 128, 256, 512)}
ASKED = {"smoke": 1000, "quick": 40_000, "paper": 100_000}  # pairs asked in all, to tell 99 % from 98.9 %


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    return {d: searches(Outer(d=d), hebb_capacity(d), ASKED[scale], seeds) for d in WIDTHS[scale]}


def claims(runs: Runs) -> Claimed:
    factors = geometric_means([capacity(r) / r.store.d**2 for r in same] for same in runs.values())
    grown = curves(runs.records, lambda record: (record.store.d, capacity(record)))
    yield "memory.hebb-capacity", [exponent("exponent of N in d", grown, 1.9, 2.1)]
    factor = Measure.over_seeds("N/d², geometric mean over d", factors, low=0.027 * 0.85, high=0.027 * 1.15)
    yield "memory.hebb-constant", [factor]


def figure(runs: Runs) -> Figure:
    from engram.show.capacity import capacity_figure

    found, laws = {"measured, one dot per seed": capacities(runs.records)}, {"N = 0.027 d²": hebb_capacity}
    return capacity_figure(found, laws, "width d", "Hebbian matrix: pairs at 99 %")
