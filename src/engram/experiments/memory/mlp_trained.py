"""A trained MLP stores N ≈ md/(0.35 ln N) pairs, whatever its shape: Fig. 1 (right) of "Understanding factual recall".

The published protocol: identity on N tokens, sphere embeddings, two-layer ReLU network d → m → d, full-batch
cross-entropy, Adam with learning rate 0.03, at most 32768 steps, accuracy looked at every 256 steps and a training over
at its first success. The search begins at the law ± 40 % and ends at 3 %. Parameters are counted as md, not 2md.
Not published: a training that is far behind is given up (PLAN.hopeless), and a seed has one codebook whose first N rows
are used at size N, where the published code draws anew. Quick is the small end of the published sizes, d ≤ 22, m/d ≤ 4.

    engram run memory.mlp-trained --seeds 5
"""

from collections.abc import Callable, Iterator, Sequence
from math import log
from typing import Any

from engram.claims import Claim, Measure
from engram.claims.experiment import Scale
from engram.claims.fits import power_law
from engram.claims.readings import capacities, constants, geometric_mean
from engram.experiments.memory import collapse
from engram.learning import Adam, FullBatch
from engram.models.stores import TwoLayer
from engram.records import Record
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


def specs(scale: Scale, seeds: Sequence[int]) -> list[Search]:
    sizes = [(d, shape * d, seed) for seed in seeds for d in WIDTHS[scale] for shape in SHAPES[scale]]
    return [search(Association(), d, m, mlp_capacity(m * d), seed) for d, m, seed in sizes]


def search(task: Association, d: int, m: int, expected: float, seed: int) -> Search:
    """Around the size that the law expects."""
    bracket = max(2, round(0.6 * expected)), round(1.4 * expected)
    model = TwoLayer(d=d, m=m)
    return Search(task=task, model=model, plan=PLAN, bracket=bracket, tolerance=0.03, seed=seed)


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    measures = law_measures(records, "N ln N", 0.35, lambda N: N * log(N))
    yield Claim("memory.mlp-trained", CLAIMS["memory.mlp-trained"], SOURCE, measures)


def law_measures(
    records: Sequence[Record], name: str, law: float, grown: Callable[[float], float]
) -> tuple[Measure, ...]:
    """md = law · grown(N): the constant within 15 %, the same within 15 % for all shapes m/d, and exponent 1 ± 0.15."""

    def constant(model: Any, N: float) -> float:
        return model.m * model.d / grown(N)

    means = [geometric_mean(values) for values in constants(records, constant)]
    shapes = {f"m/d = {s}": list(map(geometric_mean, constants(of, constant))) for s, of in shaped(records).items()}
    by_md = {md: list(map(grown, found)) for md, found in capacities(records, lambda model: model.m * model.d).items()}
    return (
        Measure.over_seeds(f"md/({name}), geometric mean over sizes", means, low=0.85 * law, high=1.15 * law),
        *collapse(f"md/({name})", shapes, 0.15),
        power_law(by_md).measure(f"exponent of {name} in md", 0.85, 1.15),
    )


def shaped(records: Sequence[Record]) -> dict[int, list[Record]]:
    """Records by m/d."""
    ratios = [round(r.store.m / r.store.d) for r in records]
    return {shape: [r for r, s in zip(records, ratios, strict=True) if s == shape] for shape in sorted(set(ratios))}


def figure(records: Sequence[Record]) -> Any:
    return by_shape_figure(records, {"N ln N = md/0.35 (published fit)": mlp_capacity}, "Trained MLP: pairs at 99 %")


def by_shape_figure(records: Sequence[Record], laws: dict[str, Any], title: str, power: int = 1) -> Any:
    """Capacity against md, one colour a shape."""
    from engram.show.capacity import capacity_figure

    found = {f"m/d = {s}": capacities(of, lambda model: model.m * model.d) for s, of in shaped(records).items()}
    series = {name: {md: [n**power for n in sizes] for md, sizes in by.items()} for name, by in found.items()}
    return capacity_figure(series, laws, "parameters md", title)
