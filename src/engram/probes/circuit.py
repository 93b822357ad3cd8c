r"""The circuit of a model, part by part: what each part gives to the right answer, and who reads whom.

    attribution    its direct share of (logit − mean logit) of the right answer
    worth          nats by which the loss rises when it writes nothing
    cut            nats by which the loss rises when the keys of a reader do not see what a writer wrote
    recall         of the memory W_K2 in the weights of writer and reader alone (engram.probes.composition)

All are means over the same positions of unseen sequences. What is large here need not be a circuit that anybody has a
name for: roles are a matter of other probes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from engram.models import Head, Model, Network, Trace, network_of
from engram.models.cuts import general
from engram.models.network import Watch
from engram.probes.attribution import attribution
from engram.probes.causal import keep, without_heads, without_in_keys, without_part
from engram.probes.composition import partners, raw
from engram.tasks import Batch

MOST_CUTS = 128  # pairs of heads that are cut, those with the largest recall first
MOST_TOKENS = 512  # that recall is measured on
Mask = Bool[np.ndarray, "B T"]
Kind = Literal["embedding", "head", "feed-forward"]


@dataclass(frozen=True)
class CircuitPart:
    """`head` is (layer, head) of heads; `worth` is None where nothing is taken away."""

    name: str
    kind: Kind
    layer: int
    attribution: float
    worth: float | None
    head: Head | None = None


@dataclass(frozen=True)
class CircuitEdge:
    """A reader whose keys find what a writer wrote; None is what was not measured."""

    writer: str
    reader: str
    recall: float | None
    cut: float | None


@dataclass(frozen=True)
class Circuit:
    """`loss` and `p_right` are those of the whole model, over so many positions."""

    parts: tuple[CircuitPart, ...]
    edges: tuple[CircuitEdge, ...]
    loss: float
    p_right: float
    positions: int


def read_positions(batch: Batch, loss: str) -> Mask:
    """The positions that a training reads; of one that reads all, those in context, or where something is asked."""
    if loss != "all" or "in_context" in batch.groups:
        return batch.groups["in_context" if loss == "all" else loss]
    asked = [mask for name, mask in batch.groups.items() if name not in ("blank", "undefined")]
    return np.logical_or.reduce(asked)


@torch.no_grad()
def circuit_of(model: Model, batch: Batch, mask: Mask) -> Circuit:
    """Of a `Transformer` or `Simplified`."""
    network, read = network_of(model), Read(batch, mask)
    whole = network.stream(batch.tokens)
    loss = read.loss(whole)

    def costs(watch: Watch) -> float:
        return read.loss(network.stream(batch.tokens, watch)) - loss

    parts = tuple(_parts(model, network, batch, read, costs))
    edges = tuple(_edges(network, costs))
    return Circuit(parts, edges, loss, read.p_right(whole), read.positions)


@dataclass(frozen=True)
class Read:
    """Right answers at the positions that count."""

    batch: Batch
    mask: Mask

    @property
    def positions(self) -> int:
        return int(self.mask.sum())

    @property
    def right(self) -> Tensor:
        return torch.from_numpy(self.batch.targets[self.mask])

    def at(self, logits: Float[Tensor, "B T n"]) -> Float[Tensor, "positions n"]:
        return logits[torch.from_numpy(self.mask)]

    def loss(self, logits: Float[Tensor, "B T n"]) -> float:
        """NaN where there is no position."""
        return float(cross_entropy(self.at(logits).double(), self.right))

    def p_right(self, logits: Float[Tensor, "B T n"]) -> float:
        p = self.at(logits).double().softmax(dim=1)
        return float(p.gather(1, self.right[:, None]).mean())

    def lead(self, logits: Float[Tensor, "B T n"]) -> float:
        """(logit − mean logit) of the right answer."""
        here = self.at(logits).double()
        return float((here.gather(1, self.right[:, None])[:, 0] - here.mean(dim=1)).mean())


def _parts(
    model: Model, network: Network, batch: Batch, read: Read, costs: Callable[[Watch], float]
) -> Iterator[CircuitPart]:
    for name, kind, layer, head, written in _written(model, network, batch):
        taken = without_heads([head]) if head else without_part("mlp", layer)
        worth = None if kind == "embedding" else costs(taken)
        yield CircuitPart(name, kind, layer, read.lead(written), worth, head)


def _written(
    model: Model, network: Network, batch: Batch
) -> Iterator[tuple[str, Kind, int, Head | None, Float[Tensor, "B T N"]]]:
    """Each part with its share of the logits; biases of heads belong to no part."""
    L, (architecture, w) = network.sizes.L, general(model.architecture, model.weights)
    fed = [i for i in range(1, L + 1) if f"W_F{i}" in w]
    places = [*(("z", i) for i in range(1, L + 1)), *(("mlp", i) for i in fed), ("resid", 1), ("resid", L + 1)]
    kept = keep(network, batch.tokens, places)  # type: ignore[arg-type]  # literals in a list
    x = kept["resid", L + 1]

    def share(part: Tensor) -> Tensor:
        trace = Trace({"part": part}, (), (), x, x[..., :1])
        return attribution(architecture, w, trace)["part"]

    yield "embedding", "embedding", 0, None, share(kept["resid", 1])
    for i in range(1, L + 1):
        for layer, h in (head for head in network.heads() if head[0] == i):
            yield f"L{i}H{h}", "head", i, (layer, h), share(network.ov((i, h)).output(kept["z", i][:, h - 1]))
        if i in fed:
            name = f"W_F{i}" if f"W_F{i}" in model.weights else "W_F"
            yield name, "feed-forward", i, None, share(kept["mlp", i])


def _edges(network: Network, costs: Callable[[Watch], float]) -> Iterator[CircuitEdge]:
    """Every pair of heads, the reader behind the writer."""
    readers = [head for head in network.heads() if head[0] > 1]
    tokens = np.arange(min(MOST_TOKENS, network.sizes.N))
    found = partners(network, readers, raw(network, tokens)) if readers else []
    pairs = [(writer, one.reader, recall) for one in found for writer, recall in one.recalls]
    pairs.sort(key=lambda pair: -pair[2])
    for place, (writer, reader, recall) in enumerate(pairs):
        cut = costs(without_in_keys(network, writer, [reader])) if place < MOST_CUTS else None
        yield CircuitEdge(_name(writer), _name(reader), recall, cut)


def _name(head: Head) -> str:
    return "L{}H{}".format(*head)
