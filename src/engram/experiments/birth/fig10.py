"""Fig. 10: with everything trained, a ReLU layer instead of W_F and layer norms, the same memories are born.

Two layers, one head each with query matrices of its own, a ReLU layer of 4d units after the second, layer norm before
every block and at the end; embeddings, positions and readout are trained too. K=3 random triggers, uniform outputs,
loss on all tokens. The paper does not state its optimiser here; this is Adam with lr 0.003.

    engram run birth.fig10 --seeds 3
"""

from math import log

from engram.claims import Figure, Labelled, Measure, Measures, Runs, Scale, Seeds
from engram.claims.readings import late_mean, reached
from engram.experiments.birth import PAPER, RELU, full_transformer
from engram.models import Layer
from engram.records import Record

TIMES = "quick 3 min a seed, paper 1 h a seed on 2 cores"
SOURCE = f"{PAPER}, Fig. 10"
CLAIMS = {"birth.full-architecture": "With everything trained, ReLU layer and layer norms, the same memories are born."}
SEEDS = {"quick": 3}
STEPS = {"smoke": 6, "quick": 400, "paper": 1000}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    layers, steps = (Layer(), RELU), STEPS[scale]
    return {"everything trained": [full_transformer(scale, seed, layers, steps, "random") for seed in seeds]}


def claims(runs: Runs) -> Measures:
    records = runs["everything trained"]
    accuracy = [late_mean(r, "accuracy.in_context", r.train.steps) for r in records]
    yield Measure.over_seeds("in-context accuracy, mean of the last 30 steps", accuracy, low=0.9)
    for name, column in {"W_K2": "recall.W_K2", "W_K1 (t<64)": "recall.W_K1.t<64"}.items():
        ratios = [_later(record, column) for record in records]
        yield Measure.over_seeds(f"log of birth step of {name} over that of W_O2 (recall > 0.5)", ratios, low=0)


def _later(record: Record, column: str) -> float:
    """Log of the birth step of a key memory over that of W_O2; NaN where one of them was not born."""
    return log(reached(record, column, 0.5, width=1) / reached(record, "recall.W_O2", 0.5, width=1))


def figure(runs: Runs) -> Figure:
    from engram.show.transformers import everything_trained

    return everything_trained(runs["everything trained"])
