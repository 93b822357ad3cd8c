r"""Which earlier head a head reads through its keys, seen in the weights.

An induction head finds a position by the token before it, which an earlier head (the writer) has written there. The
memory W_K2 of "Birth of a Transformer" is then in the weights of reader and writer alone:

    S_kj = W_Q n(x_k) · W_K n'(W_O W_V n(x̃_j))        query of token k in the reader, key of token j through the writer
    recall = share of tokens k with argmax_j (S_kj − mean_i S_ij) = k                      chance 1/n

x and x̃ are effective embeddings: the residual of [bos, token] that enters the layer of the reader and of the writer;
n are the norms of these layers with their gain, n' the reader's norm of what the writer wrote by itself. Subtracting
the mean of each column takes away what a key says to every query. With rotary positions query and key stand at the same
position, so that the rotation drops out: an induction head must find its token at any distance.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.errors import EngramError
from engram.models import Head, Network
from engram.models.network import Part

AT_ONCE = 128  # tokens in one pass: activations of a wide layer stay small
Embedded = Mapping[int, Float[Tensor, "n d"]]  # by layer, what enters it


@dataclass(frozen=True)
class Partners:
    """How well the keys of a reader find tokens through each earlier head, the best first."""

    reader: Head
    recalls: tuple[tuple[Head, float], ...]

    @property
    def best(self) -> Head:
        return self.recalls[0][0]

    def recall(self, writer: Head) -> float:
        return dict(self.recalls)[writer]


def raw(network: Network, tokens: Int[np.ndarray, " n"]) -> Embedded:
    """Rows of E, the same for all layers."""
    E = network.matrices()["E"]
    x = E[torch.as_tensor(tokens, device=E.device).long()]
    return dict.fromkeys(range(1, network.sizes.L + 1), x)


@torch.no_grad()
def effective(network: Network, tokens: Int[np.ndarray, " n"], bos: int | None, layers: Collection[int]) -> Embedded:
    """The residual of [bos, token] that enters each of these layers: n·d numbers a layer are kept."""
    wanted, parts = set(layers), dict[int, list[Tensor]]()

    def look(part: Part, layer: int, x: Tensor) -> None:
        if part == "resid" and layer in wanted:
            parts.setdefault(layer, []).append(x[:, -1].clone())  # a copy: a view would keep the whole stream

    front = np.full((len(tokens), int(bos is not None)), -1 if bos is None else bos)
    pairs = np.concatenate([front, np.asarray(tokens)[:, None]], axis=1)
    for first in range(0, len(pairs), AT_ONCE):
        network.stream(pairs[first : first + AT_ONCE], look, stop=max(wanted) - 1, read="none")
    return {layer: torch.cat(found) for layer, found in parts.items()}


def recall(scores: Float[Tensor, "n n"]) -> float:
    """The share of rows that are largest on the diagonal, without what all rows share."""
    centred = scores - scores.mean(dim=0)
    return float((centred.argmax(dim=1) == torch.arange(len(scores), device=scores.device)).double().mean())


@torch.no_grad()
def partners(network: Network, readers: Sequence[Head], x: Embedded) -> list[Partners]:
    """For each reader the recall of its keys through every earlier head; one n×n matrix at a time."""
    found: dict[Head, dict[Head, float]] = {reader: {} for reader in readers}
    queries = {reader: _query(network, reader, x) for reader in readers}
    for writer in network.heads():
        behind = [reader for reader in readers if reader[0] > writer[0]]
        wrote = written(network, writer, x) if behind else None
        for reader in behind:
            assert wrote is not None
            found[reader][writer] = recall(queries[reader] @ _key(network, reader, wrote).T)
    return [Partners(reader, _sorted(of)) for reader, of in found.items()]


@torch.no_grad()
def key_recall(network: Network, writer: Head, reader: Head, x: Embedded) -> float:
    """The recall of one pair of heads."""
    if reader[0] <= writer[0]:
        raise EngramError(f"reader: {reader} is not behind {writer}; a head reads what earlier layers wrote")
    return recall(_query(network, reader, x) @ _key(network, reader, written(network, writer, x)).T)


def written(network: Network, writer: Head, x: Embedded) -> Float[Tensor, "n d"]:
    """W_O W_V n(x): what a head writes about each token when it looks at nothing else."""
    ov = network.ov(writer)
    return ov.output(ov.value(network.normed("head", writer[0], x[writer[0]])))


def _query(network: Network, reader: Head, x: Embedded) -> Float[Tensor, "n d_h"]:
    return network.qk(reader).query(network.normed("head", reader[0], x[reader[0]]))


def _key(network: Network, reader: Head, wrote: Float[Tensor, "n d"]) -> Float[Tensor, "n d_h"]:
    return network.qk(reader).key(network.normed("head", reader[0], wrote))


def _sorted(recalls: Mapping[Head, float]) -> tuple[tuple[Head, float], ...]:
    return tuple(sorted(recalls.items(), key=lambda item: (-item[1], item[0])))


def layers_up_to(heads: Iterable[Head]) -> range:
    """The layers whose embeddings a set of readers needs."""
    return range(1, max(layer for layer, _ in heads) + 1)
