"""Facts that are fewer than all pairs, or grow in another way: what they cost is their number, not that of the pairs.

The protocol of facts.capacity, in models with α = β = 1. A subset is taken out of a table with twice as many pairs as
the model should store facts; beside it R = √S, and D = S. In a much larger table a subset costs more: names
become too many for heads so narrow, and the theorem asks for H d_h of the order of S + R, too.

    engram run facts.scalings --seeds 3
"""

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any

from engram.claims import Claim, Measure
from engram.claims.experiment import Scale
from engram.experiments.facts.capacity import PUBLISHED, SOURCE, D, Stored, facts_stored, model_of, search
from engram.models.factual import Factual
from engram.records import Record
from engram.specs import Search
from engram.tasks.facts import FactsOfSize

TIMES = "quick 4 min a seed, paper 15 min a seed on 2 cores"
CLAIMS = {
    "facts.subset": "To store a subset of all facts takes parameters for that subset rather than for the whole table."
}
SEEDS = {"quick": 3, "paper": 3}
WIDTHS = {"smoke": (8,), "quick": (16, 22), "paper": (16, 22)}
NAMES = {
    "R=S": "all pairs, R = S",
    "subset": "half of the pairs",
    "R=√S": "all pairs, R = √S",
    "D=S": "all pairs, D = S",
}


def specs(scale: Scale, seeds: Sequence[int]) -> list[Search]:
    return [
        search(task, model_of((1.0, 1.0), d), scale, seed)
        for d in WIDTHS[scale]
        for seed in seeds
        for task in _tasks(model_of((1.0, 1.0), d), more=d == WIDTHS[scale][0] and seed == 0)
    ]


def _tasks(model: Factual, more: bool) -> list[FactsOfSize]:
    """All pairs and a subset; other ways to grow once, for the figure."""
    side = round(sqrt(2 * PUBLISHED * model.parameters))
    both = [FactsOfSize(D=D), FactsOfSize(D=D, scaling="subset", S=side)]
    return [*both, FactsOfSize(D=D, scaling="R=√S"), FactsOfSize(D=D, scaling="D=S")] if more else both


def by_scaling(records: Sequence[Record]) -> dict[str, Stored]:
    """Facts over seeds, by scaling and parameters."""
    found: dict[str, Stored] = {}
    for record in records:
        name = record.search.task.scaling  # type: ignore[union-attr]
        found.setdefault(name, {}).setdefault(record.store.parameters, []).append(facts_stored(record))
    return found


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    found, id = by_scaling(records), "facts.subset"
    pairs = [pair for p, facts in found["subset"].items() for pair in zip(facts, found["R=S"][p], strict=True)]
    label = "facts of a table twice as large over those of a full one, by width and seed (0.5: all pairs count)"
    measure = Measure.over_seeds(label, [subset / full for subset, full in pairs], low=0.5)
    yield Claim(id, CLAIMS[id], SOURCE, (measure,))


def figure(records: Sequence[Record]) -> Any:
    from engram.show.facts import facts_by_parameters

    named = {NAMES[scaling]: stored for scaling, stored in by_scaling(records).items()}
    return facts_by_parameters(named, PUBLISHED, "α = β = 1")
