"""With a fixed number of answers a trained MLP stores N = md/1.2 pairs, without the logarithm: Fig. 6, M = 32.

The protocol of memory.mlp-trained with f(i) = ⌊i M/N⌋, M = 32.

    engram run memory.mlp-fixed-outputs --seeds 5
"""

from collections.abc import Iterator, Sequence
from typing import Any

from engram.claims import Claim
from engram.claims.experiment import Scale
from engram.experiments.memory.mlp_trained import SHAPES, by_shape_figure, law_measures, search
from engram.records import Record
from engram.specs import Search
from engram.tasks import Association

TIMES = "quick 15 s a seed on 2 cores; paper days a seed: for a cluster"
SOURCE = "Understanding factual recall in transformers, Fig. 6 (protocol of its code)"
CLAIMS = {"memory.mlp-fixed-outputs": "With M = 32 answers a trained MLP of m units stores N = md/1.2 pairs."}
TASK = Association(kind="floor", M=32)
WIDTHS = {"smoke": (8,), "quick": (8, 11, 16), "paper": (8, 11, 16, 22, 32, 45, 64, 90)}


def specs(scale: Scale, seeds: Sequence[int]) -> list[Search]:
    sizes = [(d, shape * d, seed) for seed in seeds for d in WIDTHS[scale] for shape in SHAPES[scale]]
    return [search(TASK, d, m, m * d / 1.2, seed) for d, m, seed in sizes]


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    measures = law_measures(records, "N", 1.2, lambda N: N)
    yield Claim("memory.mlp-fixed-outputs", CLAIMS["memory.mlp-fixed-outputs"], SOURCE, measures)


def figure(records: Sequence[Record]) -> Any:
    return by_shape_figure(
        records, {"N = md/1.2 (published fit)": lambda md: md / 1.2}, "Trained MLP, 32 answers: pairs at 99 %"
    )
