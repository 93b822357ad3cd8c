"""With two answers only, a Hebbian matrix stores N ∝ d pairs: many keys that share an answer add up to noise along it.

y = z mod 2. Recall is Φ(√(d/(N−1))), so it depends on N/d alone, and N at a given recall is proportional to d.

    engram run memory.many-to-one --seeds 5
"""

import numpy as np

from engram.claims import Claimed, Figure, Labelled, Measure, Runs, Scale, Seeds, checks
from engram.claims.fits import curves, exponent
from engram.claims.readings import capacities, capacity
from engram.models.stores import Outer
from engram.specs import Search
from engram.tasks import Association
from engram.theory.collapse import two_valued_capacity

TIMES = "quick 10 s a seed, paper 30 s a seed on 2 cores"

SOURCE = "talks, 'Capacity: intuition' (f* with two values: N ≈ d)"
CLAIMS = {
    "memory.many-to-one": "With y = z mod 2 a Hebbian matrix stores N ∝ d pairs.",
    "memory.many-to-one-law": "Its recall depends on N/d alone, and is Φ(√(d/(N−1))).",
}
WIDTHS = {"smoke": (32, 64), "quick": (32, 64, 128, 256), "paper": (32, 64, 128, 256, 512)}
ASKED = {"smoke": 1000, "quick": 40_000, "paper": 100_000}
TARGET = 0.95


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    asked, widths = ASKED[scale], WIDTHS[scale]
    return {
        "searches": [search(d, seed, asked) for seed in seeds for d in widths],
        **{("recall", d): checks("collapse.many_to_one", seeds, asked // d, d=d) for d in widths},
    }


def search(d: int, seed: int, asked: int) -> Search:
    task, bracket = Association(kind="modulo", M=2), (max(2, d // 8), 2 * d)
    return Search(task=task, model=Outer(d=d), target=TARGET, bracket=bracket, draws=asked // d, seed=seed)


def claims(runs: Runs) -> Claimed:
    measured = [runs["recall", d] for d in WIDTHS[runs.scale]]
    recall, law = (np.array([[r.column(name) for r in same] for same in measured]) for name in ("accuracy", "law"))
    widest, off = np.ptp(recall, axis=0).max(axis=1), abs(recall - law).max(axis=(0, 2))  # axes: d, seed, N/d
    grown = curves(runs["searches"], lambda record: (record.store.d, capacity(record)))
    yield "memory.many-to-one", [exponent(f"exponent of N at {TARGET:.0%} in d", grown, 0.9, 1.1)]
    law_alone = [
        Measure.over_seeds("largest difference of recall between widths at equal N/d", widest.tolist(), high=0.03),
        Measure.over_seeds("largest difference of recall to Φ(√(d/(N−1)))", off.tolist(), high=0.03),
    ]
    yield "memory.many-to-one-law", law_alone


def figure(runs: Runs) -> Figure:
    from engram.show.capacity import collapse_figure

    found = {d: [row for r in runs["recall", d] for row in r.rows] for d in WIDTHS[runs.scale]}
    return collapse_figure(capacities(runs["searches"]), lambda d: two_valued_capacity(d, TARGET), found)
