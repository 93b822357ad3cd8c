"""Fig. 10: with everything trained, a ReLU layer instead of W_F and layer norms, the same memories are born.

Two layers, one head each with query matrices of its own, a ReLU layer of 4d units after the second, layer norm before
every block and at the end; embeddings, positions and readout are trained too. K=3 random triggers, uniform outputs,
loss on all tokens. The paper does not state its optimiser here; this is Adam with lr 0.003.

    engram run birth.fig10 --seeds 3
"""

from engram.claims import Figure, Labelled, Measure, Measures, Runs, Scale, Seeds
from engram.claims.readings import late_mean
from engram.experiments.birth import RELU, born_after_output, full_transformer
from engram.models import Layer

SOURCE = "Birth of a Transformer, Fig. 10"
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
    yield from born_after_output(records)


def figure(runs: Runs) -> Figure:
    from engram.show.transformers import everything_trained

    return everything_trained(runs["everything trained"])
