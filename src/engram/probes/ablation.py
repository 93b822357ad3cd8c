r"""What the heads with the largest scores are worth: replaced by their mean, against random heads of the same layers.

    gain         loss on the first copy minus loss on the repeat (engram.probes.repeats)
    share left   gain without the heads / gain of the whole model

Heads are chosen on one batch and measured on another; means are those of the batch on which they were chosen.
"""

from collections import Counter
from collections.abc import Collection, Mapping

import torch

from engram.models import Head, Network
from engram.probes.causal import Kept, means, without_in_keys
from engram.probes.repeats import Passed, Repeats, passed
from engram.values import generator


def top_heads(scores: Mapping[Head, float], k: int) -> list[Head]:
    """The k heads with the largest scores, the largest first."""
    return sorted(scores, key=lambda head: (-scores[head], head))[:k]


def random_heads(network: Network, chosen: Collection[Head], seed: int) -> list[Head]:
    """As many others, layer by layer, or where a layer has too few left of the other layers; none if none is left."""
    rng, counts = generator(seed, "probes.random_heads"), Counter(layer for layer, _ in chosen)
    others = [head for head in network.heads() if head[0] in counts and head not in chosen]
    found: list[Head] = []
    for layer, count in sorted(counts.items()):
        own = [head for head in others if head[0] == layer]
        found += [own[i] for i in rng.permutation(len(own))[:count]]
    rest = [head for head in others if head not in found]
    return found + [rest[i] for i in rng.permutation(len(rest))[: len(chosen) - len(found)]]


@torch.no_grad()
def z_means(network: Network, heads: Collection[Head], elsewhere: Repeats) -> Kept:
    """The mean over other sequences of what all heads in the layers of these attend to."""
    return means(network, elsewhere.tokens, [("z", layer) for layer in {layer for layer, _ in heads}])


def without_writer(network: Network, writer: Head, given: Repeats) -> Passed:
    """A pass in which no later head sees in its keys what one head wrote; queries and values see it."""
    later = [head for head in network.heads() if head[0] > writer[0]]
    return passed(network, given, without_in_keys(network, writer, later))


def share_left(without: Passed, whole: Passed) -> float:
    return without.gain / whole.gain
