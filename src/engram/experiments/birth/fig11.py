"""Fig. 11: with four heads a layer, one head of layer 1 looks back, and the induction of layer 2 is shared.

Two layers of four heads, ReLU layers of 4d units, layer norms, everything trained by Adam with lr 0.003 (the paper does
not state it), K=3 random triggers, uniform outputs, loss on all tokens. Which head does what is not read off a picture:
the edges t → t−1 of one head of layer 1, or the edges to successors of earlier visits of one head of layer 2, are
blocked, and the loss in context says what that costs: for one head, and for all heads of the layer at once. How much
of the latter the top head of layer 1 accounts for differs from seed to seed (0.97, 0.47, 0.94): other heads can stand
in for it. Three seeds cannot place such a number; the claim sets it beside that of layer 2.

    engram run birth.fig11 --seeds 3
"""

from dataclasses import dataclass
from math import nan

import numpy as np

from engram.claims import Figure, Labelled, Measure, Measures, Runs, Scale, Seeds
from engram.experiments.birth import full_transformer
from engram.models import Layer
from engram.records import Record

SOURCE = "Birth of a Transformer, Fig. 11"
CLAIMS = {"birth.heads-share": "One head of layer 1 does most of the looking back; the induction is spread over heads."}
SEEDS = {"quick": 3}
STEPS = {"smoke": 6, "quick": 400, "paper": 1000}
HEADS = 4
EDGES = {"layer 1: edges to t−1": ("previous", 1), "layer 2: edges to successors": ("successors", 2)}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    layers, looks = (Layer(heads=HEADS, feed_forward="mlp"),) * 2, ("effects", "masses")
    return {"four heads": [full_transformer(scale, seed, layers, STEPS[scale], "random", looks) for seed in seeds]}


def claims(runs: Runs) -> Measures:
    back, after = ([Effects.of(record, *edges) for record in runs["four heads"]] for edges in EDGES.values())
    first, second = ([e.top for e in of_layer] for of_layer in (back, after))
    narrow, wide = ([e.spread for e in of_layer] for of_layer in (back, after))
    shares = [max(e.shares) for e in back]
    yield Measure.over_seeds("layer 1: share of its top head in the effects of its heads", shares, low=0.5)
    yield Measure.difference("effect of the top head over that of all heads: layer 1 minus layer 2", first, second)
    yield Measure.over_seeds("layer 2: effect of its top head over that of all its heads", second, high=0.5)
    yield Measure.over_seeds("layer 2: heads that share the induction effect", wide, low=1.5)
    yield Measure.difference("heads that share it: layer 2 minus layer 1", wide, narrow)


@dataclass(frozen=True)
class Effects:
    """Nats of loss in context that blocked edges cost: those of each head of a layer, and those of all its heads."""

    heads: list[float]
    together: float

    @classmethod
    def of(cls, record: Record, edges: str, layer: int) -> "Effects":
        count = record.train.model.layers[layer - 1].heads  # type: ignore[attr-defined]
        alone = [record.last(f"effect.{edges}.L{layer}H{h}") for h in range(1, count + 1)]
        return cls(alone, record.last(f"effect.{edges}.L{layer}"))

    @property
    def top(self) -> float:
        """The part of the whole layer's effect that the top head alone accounts for."""
        return max(self.heads) / self.together if self.together else nan

    @property
    def shares(self) -> np.ndarray:
        """Each head's part of the sum of effects; a head that only hurts has none."""
        positive = np.maximum(self.heads, 0.0)
        return positive / positive.sum() if positive.any() else np.full(len(positive), nan)

    @property
    def spread(self) -> float:
        """1/Σ share²: 1 if one head does it all, 4 if four do the same."""
        return float(1 / np.sum(self.shares**2))


def figure(runs: Runs) -> Figure:
    from engram.show.transformers import head_figure

    records = runs["four heads"]
    effects = {name: [Effects.of(record, *edges).heads for record in records] for name, edges in EDGES.items()}
    return head_figure(records, effects)
