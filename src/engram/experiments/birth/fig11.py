"""Fig. 11: with four heads a layer, one head of layer 1 looks back, and the induction of layer 2 is shared.

Two layers of four heads, ReLU layers of 4d units, layer norms, everything trained by Adam with lr 0.003 (the paper does
not state it), K=3 random triggers, uniform outputs, loss on all tokens. Which head does what is not read off a picture:
the edges t → t−1 of one head of layer 1, or the edges to successors of earlier visits of one head of layer 2, are
blocked, and the loss in context tells what that costs.

    engram run birth.fig11 --seeds 3
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from engram.experiments import Scale
from engram.experiments.birth import PAPER, SIZES
from engram.learning import Adam, Plan
from engram.models import Layer, Transformer
from engram.records import Claim, Measure, Record, Train
from engram.tasks import Bigram

TIMES = "quick 4 min a seed, paper 1.5 h a seed on 2 cores"
SOURCE = f"{PAPER}, Fig. 11"
CLAIMS = {"birth.heads-share": "One head of layer 1 does most of the looking back; the induction is spread over heads."}
SEEDS = {"quick": 3}
STEPS = {"smoke": 6, "quick": 400, "paper": 1000}
HEADS = 4


def specs(scale: Scale, seeds: Sequence[int]) -> list[Train]:
    T, d, batch = SIZES[scale]
    model = Transformer(d=d, hidden=4 * d, layers=(Layer(heads=HEADS, feed_forward="mlp"),) * 2, norm="pre")
    looks = ("heads", "masses")
    plan = Plan(
        optimiser=Adam(lr=0.003), steps=STEPS[scale], batch=batch, trained=model.names, loss="all", at_end=looks
    )
    return [Train(task=Bigram(K=3, T=T), model=model, plan=plan, seed=seed) for seed in seeds]


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    back = [effects(record, "previous", 1) for record in records]
    after = [effects(record, "successors", 2) for record in records]
    top = [max(shares(e)) for e in back]
    wider = [spread(a) - spread(b) for a, b in zip(after, back, strict=True)]
    yield Claim(
        "birth.heads-share",
        CLAIMS["birth.heads-share"],
        SOURCE,
        (
            Measure.over_seeds("share of the previous-token effect in the top head of layer 1", top, low=0.5),
            Measure.over_seeds("heads of layer 2 that share the induction effect", [spread(e) for e in after], low=1.5),
            Measure.over_seeds("heads that share it: layer 2 minus layer 1", wider, low=0),
        ),
    )


def effects(record: Record, edges: str, layer: int) -> list[float]:
    """Nats of loss in context that each head of a layer costs when its edges are blocked."""
    return [record.rows[-1][f"effect.{edges}.L{layer}H{h}"] for h in range(1, HEADS + 1)]


def shares(effects: Sequence[float]) -> np.ndarray:
    """Each head's part of the sum of effects; a head without which the loss falls has none."""
    positive = np.maximum(effects, 0.0)
    return positive / positive.sum()


def spread(effects: Sequence[float]) -> float:
    """1/Σ share²: 1 if one head does it all, 4 if all four do the same."""
    return float(1 / np.sum(shares(effects) ** 2))


def figure(records: Sequence[Record]) -> Any:
    from engram.show.full import heads

    back = [effects(record, "previous", 1) for record in records]
    after = [effects(record, "successors", 2) for record in records]
    return heads(records, {"layer 1: edges to t−1": back, "layer 2: edges to successors": after})
