"""What the calculator says of twice the width is what is then measured there.

For each kind of memory a power law is fitted on widths up to d, over all seeds but one, and the capacity of that one at
width 2d is set beside the prediction, in half widths of its interval (engram.theory.extrapolation has the rule).
Trained matrices and MLPs are fitted in N ln N, which theory says is a power law. The Searches are those of
memory.hebb-capacity, memory.linear-trained, memory.mlp-trained and facts.capacity, whose records are shared; facts have
d = 8 besides.

    engram run scaling.prediction --seeds 5
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log

from engram.calculator.kinds import KINDS, Kind, fit_of, foretold
from engram.claims import Figure, Labelled, Measure, Measures, Runs, Scale, Seeds
from engram.claims.readings import capacity
from engram.experiments.facts.capacity import D, facts_stored, model_of
from engram.experiments.facts.capacity import search as fact_search
from engram.experiments.memory import hebb_capacity, linear_trained, mlp_trained, searches
from engram.models.stores import Outer
from engram.records import Record
from engram.specs import Spec
from engram.tasks import Association
from engram.tasks.facts import FactsOfSize
from engram.theory.capacity import hebb_capacity as hebb_law
from engram.theory.capacity import mlp_capacity
from engram.theory.extrapolation import Predicted, predicted

TIMES = "quick 6 min a seed, paper 30 min a seed on 2 cores; seconds where the four experiments have been run"
SOURCE = "ours; the laws are those of Understanding factual recall in transformers, Figs. 1 and 4"
CLAIMS = {
    "scaling.prediction": "Fitted on widths up to d, the calculator predicts the capacity at 2d within its interval: "
    "Hebb (2d = 256), trained matrix (64), MLP (22), facts (32).",
}
WIDTHS: dict[Scale, dict[str, tuple[int, ...]]] = {
    "smoke": {"hebb": (16, 22, 32, 64), "linear": (5, 6, 8, 16), "mlp": (3, 6), "facts": (5, 6, 8, 16)},
    "quick": {
        "hebb": (16, 32, 64, 128, 256),
        "linear": (8, 11, 16, 22, 32, 64),
        "mlp": (8, 11, 22),
        "facts": (8, 11, 16, 32),
    },
    "paper": {
        "hebb": (16, 32, 64, 128, 256, 512),
        "linear": (8, 11, 16, 22, 32, 45, 90),
        "mlp": (8, 11, 22),
        "facts": (8, 11, 16, 32),
    },
}
WHY = {
    "scaling.prediction": (
        "Matrices hold what is predicted, MLPs 27 % less (in N ln N), about at the edge of the interval. For facts the "
        "interval is of no use: at d = 8 a transformer holds 9 to 36 facts, far below the law that begins at d = 11; "
        "the line from d = 8 to 11 misses d = 16 by a factor of 10, and the rule widens the interval accordingly. 2.7 "
        "to 4.7 times too many are predicted. The calculator fits d = 11 to 32 and does not use d = 8. Control: by the "
        "same rule Hebbian matrices are met to 1 %."
    ),
}
USEFUL = 2.0  # an interval that is wider than this factor on either side says little


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """By kind and width."""
    return {(kind, d): _at_width(kind, d, scale, seeds) for kind, widths in WIDTHS[scale].items() for d in widths}


def _at_width(kind: str, d: int, scale: Scale, seeds: Seeds) -> list[Spec]:
    if kind == "hebb":
        return [*searches(Outer(d=d), hebb_law(d), hebb_capacity.ASKED[scale], seeds)]
    if kind == "linear":
        return [linear_trained.search(d, seed) for seed in seeds]
    if kind == "mlp":
        shapes = mlp_trained.SHAPES["quick"]  # m/d; at the largest width the largest alone is asked
        shapes = shapes[-1:] if d == WIDTHS[scale]["mlp"][-1] else shapes
        found = mlp_trained.searches(Association(), mlp_capacity, [d], shapes, seeds)
        return [spec for same in found.values() for spec in same]
    return [fact_search(FactsOfSize(D=D), model_of((1.0, 1.0), d), scale, seed) for seed in seeds]


def size_of(kind: Kind, record: Record) -> float:
    """What the kind counts as the size of a memory."""
    store = record.store
    if kind.name == "facts":
        return float(store.parameters)
    return float(store.m * store.d if kind.name == "mlp" else store.d)


def held(kind: Kind, record: Record) -> float:
    """What a memory holds: pairs at 99 %, or facts."""
    return float(facts_stored(record)) if kind.name == "facts" else capacity(record)


@dataclass(frozen=True)
class Tried:
    """A seed at width 2d beside what was predicted for it from the other seeds at widths up to d, as it is fitted."""

    measured: float
    predicted: Predicted

    @property
    def distance(self) -> float:
        """In half widths of the interval, with its sign."""
        return log(self.measured / self.predicted.value) / self.predicted.half


def tried(kind: Kind, runs: Runs) -> Iterator[Tried]:
    """Each seed at the largest width; a single seed has no others, and is fitted on itself."""
    up_to_d, at_twice = points_of(kind, runs)
    for seed, (size, measured) in at_twice:
        others = [point for other, point in up_to_d if other != seed] or [point for _, point in up_to_d]
        yield Tried(kind.grown(measured), predicted(fit_of(kind, others), size))


OfSeeds = list[tuple[int, tuple[float, float]]]  # a seed with a size and what is held there


def points_of(kind: Kind, runs: Runs) -> tuple[OfSeeds, OfSeeds]:
    """At widths up to half of the largest, and at the largest."""
    widths = sorted(d for name, d in runs if name == kind.name)
    by_width = {d: [(r.spec.seed, (size_of(kind, r), held(kind, r))) for r in runs[kind.name, d]] for d in widths}
    return [point for d in widths if 2 * d <= widths[-1] for point in by_width[d]], by_width[widths[-1]]


def claims(runs: Runs) -> Measures:
    for kind in KINDS.values():
        found = list(tried(kind, runs))
        name = f"{kind.name}: measured at twice the width, from the prediction, in half widths of its interval"
        yield Measure.over_seeds(name, [one.distance for one in found], -1, 1)
        name = f"{kind.name}: half width of the interval, as a factor"
        yield Measure.over_seeds(name, [exp(one.predicted.half) for one in found], high=USEFUL)


def figure(runs: Runs) -> Figure:
    from engram.show.prediction import prediction_figure

    return prediction_figure([_panel(kind, runs) for kind in KINDS.values()])


def _panel(kind: Kind, runs: Runs) -> dict[str, object]:
    """Measured points, and the prediction of all seeds for the largest size."""
    known, new = ([point for _, point in points] for points in points_of(kind, runs))
    fit = fit_of(kind, known)
    sizes = [*fit.sizes, max(x for x, _ in new)]
    return {
        "title": kind.about,
        "size": kind.size,
        "stores": kind.stores,
        "law": (kind.says, [kind.law(round(size)) for size in sizes]),
        "known": known,
        "new": new,
        "sizes": sizes,
        "fit": [foretold(kind, fit, size) for size in sizes],
    }
