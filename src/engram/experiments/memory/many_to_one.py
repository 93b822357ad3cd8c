"""With two answers only, a Hebbian matrix stores N ∝ d pairs: many keys that share an answer add up to noise along it.

y = z mod 2. Recall is Φ(√(d/(N−1))), so it depends on N/d alone, and N at a given recall is proportional to d.

    engram run memory.many-to-one --seeds 5
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from engram.claims import Claim, Measure
from engram.claims.experiment import Scale
from engram.claims.fits import power_law
from engram.claims.readings import capacities
from engram.models.stores import Outer
from engram.records import Record
from engram.specs import Check, Search
from engram.tasks import Association
from engram.theory.collapse import two_valued_capacity

TIMES = "quick 10 s a seed, paper 30 s a seed on 2 cores"
SOURCE = "talks, 'Capacity: intuition' (f* with two values: N ≈ d)"
CLAIMS = {
    "memory.many-to-one": "With y = z mod 2 a Hebbian matrix stores N ∝ d pairs, and recall depends on N/d alone."
}
WIDTHS = {"smoke": (32, 64), "quick": (32, 64, 128, 256), "paper": (32, 64, 128, 256, 512)}
ASKED = {"smoke": 1000, "quick": 40_000, "paper": 100_000}
TARGET = 0.95


def specs(scale: Scale, seeds: Sequence[int]) -> list[Search | Check]:
    curves = [
        Check(law="collapse.many_to_one", sizes={"d": d}, draws=ASKED[scale] // d, seed=seed)
        for seed in seeds
        for d in WIDTHS[scale]
    ]
    return [*(search(d, seed, ASKED[scale]) for seed in seeds for d in WIDTHS[scale]), *curves]


def search(d: int, seed: int, asked: int) -> Search:
    task, bracket = Association(kind="modulo", M=2), (max(2, d // 8), 2 * d)
    return Search(task=task, model=Outer(d=d), target=TARGET, bracket=bracket, draws=asked // d, seed=seed)


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    searches, curves = split(records)
    by_ratio = [list(zip(*found.values(), strict=True)) for found in curves.values()]  # for each seed
    widest = [max(np.ptp([row["accuracy"] for row in same]) for same in ratios) for ratios in by_ratio]
    off = [max(abs(row["accuracy"] - row["law"]) for same in ratios for row in same) for ratios in by_ratio]
    yield Claim(
        "memory.many-to-one",
        CLAIMS["memory.many-to-one"],
        SOURCE,
        (
            power_law(capacities(searches)).measure(f"exponent of N at {TARGET:.0%} in d", 0.9, 1.1),
            Measure.over_seeds("largest difference of recall between widths at equal N/d", widest, high=0.03),
            Measure.over_seeds("largest difference of recall to Φ(√(d/(N−1)))", off, high=0.03),
        ),
    )


def split(records: Sequence[Record]) -> tuple[list[Record], dict[int, dict[int, list[dict[str, float]]]]]:
    """The Searches, and the rows of the curves by seed and width."""
    curves: dict[int, dict[int, list[dict[str, float]]]] = {}
    for record in (r for r in records if isinstance(r.spec, Check)):
        curves.setdefault(record.spec.seed, {})[record.check.sizes["d"]] = record.rows
    return [r for r in records if isinstance(r.spec, Search)], curves


def figure(records: Sequence[Record]) -> Any:
    from engram.show.capacity import collapse_figure

    searches, curves = split(records)
    rows = {d: [row for found in curves.values() for row in found[d]] for d in sorted(next(iter(curves.values())))}
    return collapse_figure(capacities(searches), lambda d: two_valued_capacity(d, TARGET), rows)
