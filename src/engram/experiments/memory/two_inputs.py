"""A trained MLP stores a function of two inputs as it stores one of a single input: n² ∝ md.

A random f: [n]² → [32] from inputs e_{z1} + ẽ_{z2}; the protocol of memory.mlp-trained. A linear memory cannot do this.

    engram run memory.two-inputs --seeds 5
"""

from math import sqrt

from engram.claims import Figure, Labelled, Measures, Runs, Scale, Seeds
from engram.claims.fits import exponent
from engram.experiments.memory.mlp_trained import by_shape_figure, searches, stored
from engram.tasks import Association

TIMES = "quick and paper 2 min a seed on 2 cores"

SOURCE = "talks, 'MLP associative memories' (two inputs)"
CLAIMS = {"memory.two-inputs": "A trained MLP of m units stores a random f: [n]² → [32] with n² ∝ md."}
WIDTHS = {"smoke": (8,), "quick": (8, 16, 32), "paper": (8, 16, 32)}
SHAPES = {"smoke": (1, 2), "quick": (1, 2, 4), "paper": (1, 2, 4)}
TASK = Association(kind="random", M=32, inputs=2)


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    return searches(TASK, lambda md: sqrt(md / 1.2), WIDTHS[scale], SHAPES[scale], seeds)


def claims(runs: Runs) -> Measures:
    yield exponent("exponent of n² in md, md = 64 … 4096", stored(runs, lambda n: n**2), 0.85, 1.15)


def figure(runs: Runs) -> Figure:
    laws = {"n² = md/1.2, as for one input": lambda md: md / 1.2}
    return by_shape_figure(runs, laws, "Two inputs, 32 answers: pairs n² at 99 %", power=2)
