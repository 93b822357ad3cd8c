"""Facts that are fewer than all pairs, or grow in another way: what they cost is their number, not that of the pairs.

The protocol of facts.capacity, in models with α = β = 1. A subset is taken out of a table with twice as many pairs as
the model should store facts; beside it R = √S, and D = S. In a much larger table a subset costs more: there
are too many names for heads so narrow, and the theorem also requires H d_h of the order of S + R.

    engram run facts.scalings --seeds 3
"""

from math import sqrt
from statistics import mean
from typing import Any

from engram.claims import Figure, Labelled, Measure, Measures, Runs, Scale, Seeds
from engram.experiments.facts.capacity import PUBLISHED, D, by_parameters, facts_stored, model_of, search
from engram.specs import Search
from engram.tasks.facts import FactsOfSize

SOURCE = "Understanding factual recall in transformers, Fig. 4 left and Figs. 7–9 (protocol of its code)"
CLAIMS = {
    "facts.subset": "To store a subset of all facts takes parameters for that subset rather than for the whole table."
}
SEEDS = {"quick": 5, "paper": 3}
WIDTHS = {"smoke": (8,), "quick": (16, 22), "paper": (16, 22)}
NAMES = {
    "R=S": "all pairs, R = S",
    "subset": "half of the pairs",
    "R=√S": "all pairs, R = √S",
    "D=S": "all pairs, D = S",
}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """All pairs and a subset at every width; other ways to grow once, for the figure."""
    chosen = {(scaling, d): seeds for d in WIDTHS[scale] for scaling in ("R=S", "subset")}
    chosen |= {(scaling, WIDTHS[scale][0]): [0] for scaling in ("R=√S", "D=S") if 0 in seeds}
    return {(scaling, d): [_search(scaling, d, scale, seed) for seed in own] for (scaling, d), own in chosen.items()}


def _search(scaling: Any, d: int, scale: Scale, seed: int) -> Search:
    model = model_of((1.0, 1.0), d)
    side = round(sqrt(2 * PUBLISHED * model.parameters)) if scaling == "subset" else None
    return search(FactsOfSize(D=D, scaling=scaling, S=side), model, scale, seed)


def claims(runs: Runs) -> Measures:
    label = "facts of a table twice as large over those of a full one, mean over widths (0.5: all pairs count)"
    stored = {size: list(map(facts_stored, same)) for size, same in runs.items()}
    ratios = [[a / b for a, b in zip(stored["subset", d], stored["R=S", d], strict=True)] for d in WIDTHS[runs.scale]]
    yield Measure.over_seeds(label, [mean(seed) for seed in zip(*ratios, strict=True)], low=0.5)


def figure(runs: Runs) -> Figure:
    from engram.show.facts import facts_by_parameters

    grown = {scaling: [same for (own, _), same in runs.items() if own == scaling] for scaling, _ in runs}
    named = {NAMES[scaling]: by_parameters(models) for scaling, models in grown.items()}
    return facts_by_parameters(named, PUBLISHED, "Which facts: all pairs, or half of them")
