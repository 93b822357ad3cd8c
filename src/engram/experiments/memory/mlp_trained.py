"""A trained MLP stores N ≈ md/(0.35 ln N) pairs, whatever its shape: Fig. 1 (right) of "Understanding factual recall".

The published protocol: identity on N tokens, sphere embeddings, two-layer ReLU network d → m → d, full-batch
cross-entropy, Adam with learning rate 0.03, at most 32768 steps, accuracy checked every 256 steps, a training ended
by its first success. The search begins at the law ± 40 % and ends at 3 %. Parameters are counted as md, not 2md.
Not published: a training that is far behind is given up (PLAN.hopeless), and a seed has one codebook whose first N rows
are used at size N, where the published code draws new ones. Quick has the smallest published sizes, d ≤ 22, m/d ≤ 4.

    engram run memory.mlp-trained --seeds 5
"""

from collections.abc import Callable, Sequence
from math import log
from typing import Any

from engram.claims import Figure, Labelled, Measure, Measures, Runs, Scale, Seeds
from engram.claims.fits import Curve, curves, exponent
from engram.claims.readings import capacity
from engram.experiments.memory import collapse, geometric_means
from engram.learning import Adam, FullBatch
from engram.models.stores import TwoLayer
from engram.specs import Search
from engram.tasks import Association
from engram.theory.capacity import mlp_capacity

TIMES = "quick 1 min a seed on 2 cores; paper days a seed: for a cluster"
SOURCE = "Understanding factual recall in transformers, Fig. 1 right (protocol of its code)"
CLAIMS = {"memory.mlp-trained": "A trained MLP of m units stores N pairs with N ln N = md/0.35, whatever its shape."}
WIDTHS = {"smoke": (8,), "quick": (8, 11, 16, 22), "paper": (8, 11, 16, 22, 32, 45, 64, 90)}
SHAPES = {"smoke": (1, 2), "quick": (1, 2, 4), "paper": (1, 2, 4, 8)}  # m/d
PLAN = FullBatch(
    optimiser=Adam(lr=0.03),
    steps=2**15,
    check_every=256,
    hopeless=((1024, 0.5), (2048, 0.6), (4096, 0.72), (8192, 0.82), (16384, 0.9)),
)


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    return searches(Association(), mlp_capacity, WIDTHS[scale], SHAPES[scale], seeds)


def searches(
    task: Association, law: Callable[[int], float], widths: Sequence[int], shapes: Sequence[int], seeds: Seeds
) -> Labelled:
    """By m/d and d, each around the size that a law of md expects."""
    return {
        (shape, d): [search(task, d, shape * d, law(shape * d * d), seed) for seed in seeds]
        for d in widths
        for shape in shapes
    }


def search(task: Association, d: int, m: int, expected: float, seed: int) -> Search:
    bracket = max(2, round(0.6 * expected)), round(1.4 * expected)
    model = TwoLayer(d=d, m=m)
    return Search(task=task, model=model, plan=PLAN, bracket=bracket, tolerance=0.03, seed=seed)


def claims(runs: Runs) -> Measures:
    return law_measures(runs, "N ln N", 0.35, lambda N: N * log(N))


def law_measures(runs: Runs, name: str, law: float, grown: Callable[[float], float]) -> Measures:
    """md = law · grown(N): the constant within 15 %, the same within 15 % for all shapes m/d, and exponent 1 ± 0.15."""
    shapes: dict[str, list[list[float]]] = {}
    for (shape, d), same in runs.items():
        shapes.setdefault(f"m/d = {shape}", []).append([shape * d * d / grown(capacity(r)) for r in same])
    means = geometric_means(values for by_d in shapes.values() for values in by_d)
    yield Measure.over_seeds(f"md/({name}), geometric mean over sizes", means, low=0.85 * law, high=1.15 * law)
    yield from collapse(f"md/({name})", {shape: geometric_means(by_d) for shape, by_d in shapes.items()}, 0.15)
    yield exponent(f"exponent of {name} in md", stored(runs, grown), 0.85, 1.15)


def stored(runs: Runs, grown: Callable[[float], float]) -> list[Curve]:
    """For each seed grown(N) over md, all shapes together."""
    return curves(runs.records, lambda record: (record.store.m * record.store.d, grown(capacity(record))))


def figure(runs: Runs) -> Figure:
    return by_shape_figure(runs, {"N ln N = md/0.35 (published fit)": mlp_capacity}, "Trained MLP: pairs at 99 %")


def by_shape_figure(runs: Runs, laws: dict[str, Any], title: str, power: int = 1) -> Any:
    """Capacity against md, one colour per shape."""
    from engram.show.capacity import capacity_figure

    series: dict[str, dict[int, list[float]]] = {}
    for (shape, d), same in runs.items():
        series.setdefault(f"m/d = {shape}", {})[shape * d * d] = [capacity(r) ** power for r in same]
    return capacity_figure(series, laws, "parameters md", title)
