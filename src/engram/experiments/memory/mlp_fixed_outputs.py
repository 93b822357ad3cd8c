"""With a fixed number of answers a trained MLP stores N = md/1.2 pairs, without the logarithm: Fig. 6, M = 32.

The protocol of memory.mlp-trained with f(i) = ⌊i M/N⌋, M = 32.

    engram run memory.mlp-fixed-outputs --seeds 5
"""

from engram.claims import Figure, Labelled, Measures, Runs, Scale, Seeds
from engram.experiments.memory.mlp_trained import SHAPES, by_shape_figure, law_measures, searches
from engram.tasks import Association

TIMES = "quick 15 s a seed on 2 cores; paper days a seed: for a cluster"
SOURCE = "Understanding factual recall in transformers, Fig. 6 (protocol of its code)"
CLAIMS = {"memory.mlp-fixed-outputs": "With M = 32 answers a trained MLP of m units stores N = md/1.2 pairs."}
TASK = Association(kind="floor", M=32)
WIDTHS = {"smoke": (8,), "quick": (8, 11, 16), "paper": (8, 11, 16, 22, 32, 45, 64, 90)}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    return searches(TASK, lambda md: md / 1.2, WIDTHS[scale], SHAPES[scale], seeds)


def claims(runs: Runs) -> Measures:
    return law_measures(runs, "N", 1.2, lambda N: N)


def figure(runs: Runs) -> Figure:
    laws = {"N = md/1.2 (published fit)": lambda md: md / 1.2}
    return by_shape_figure(runs, laws, "Trained MLP, 32 answers: pairs at 99 %")
