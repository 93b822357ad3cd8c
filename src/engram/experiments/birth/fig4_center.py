"""Fig. 4 center: an induction head learned with uniform outputs works for others, one learned with likely ones fails.

The simplified model with W_F, loss on all tokens, K=3 random triggers, lr 1; outputs o_k uniform or drawn from
π_b(·|q_k) in training, both in testing (128 sequences that training never sees, every 25 steps).

    engram run birth.fig4-center --seeds 5
"""

from engram.claims import Figure, Labelled, Measure, Measures, Runs, Scale, Seeds
from engram.experiments.birth import three_triggers
from engram.records import Record

SOURCE = "Birth of a Transformer, Fig. 4 (center)"
CLAIMS = {
    "birth.diversity-generalises": "Uniform outputs lead to better generalisation to other outputs than bigram ones."
}
LAWS = ("uniform", "bigram")


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    return {outputs: [three_triggers(scale, seed, outputs) for seed in seeds] for outputs in LAWS}


def claims(runs: Runs) -> Measures:
    uniform = [lost(record, "uniform", "bigram") for record in runs["uniform"]]
    bigram = [lost(record, "bigram", "uniform") for record in runs["bigram"]]
    name = "in-context accuracy lost on the other outputs: bigram- minus uniform-trained"
    yield Measure.difference(name, bigram, uniform)
    yield Measure.over_seeds("lost when trained on uniform outputs", uniform, high=0.1)
    yield Measure.over_seeds("lost when trained on bigram outputs", bigram, low=0)


def lost(record: Record, own: str, other: str) -> float:
    """In-context accuracy at the end: on the outputs of training minus on the others."""
    return record.last(f"test.{own}.accuracy.in_context") - record.last(f"test.{other}.accuracy.in_context")


def figure(runs: Runs) -> Figure:
    from engram.show.birth import transfer

    return transfer(runs)
