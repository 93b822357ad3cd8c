r"""Models that the authors of hop_k trained and published, asked again: errors over k, and where their heads look.

    error        the share of letters, among those with a defined target, whose largest logit is not at the target
    alignment    ⟨A, M⟩ / (‖A‖ ‖M‖) of a head's attention A with the edges M of find^j (engram.probes.causal)

The files of a model are read from the folder that ENGRAM_REFERENCE names, by their SHA-256. The published errors were
measured with dropout on, as in training: neither the authors' training loop nor their evaluation switches it off.
"""

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Int

from engram.adapters import network_from
from engram.adapters.gpt2 import GPT2
from engram.adapters.source import CONFIG, WEIGHTS, source_of
from engram.models import Layer, Model, Network, Transformer, network_of
from engram.models.dropout import Dropout
from engram.probes.causal import alignments, uniform_alignment
from engram.probes.edges import find_edges
from engram.reference import read_reference
from engram.tasks import Hops
from engram.values import Rows, generator, law

FOLDER = "hops/gpt2-L{L}"
NONE = Dropout()
AT_ONCE = 10  # strings, so that their maps stay in the cache


def published(L: int, config: str, weights: str) -> GPT2:
    """The authors' model of L layers; `config` and `weights` are the SHA-256 of its files."""
    folder = FOLDER.format(L=L)
    read = read_reference(f"{folder}/{CONFIG}", config), read_reference(f"{folder}/{WEIGHTS}", weights)
    network = network_from(source_of(folder, *read))
    assert isinstance(network, GPT2)
    return network


def stand_in(L: int) -> Network:
    """Random weights of ours in the place of a published model."""
    task, model = Hops(), Transformer(d=16, layers=(Layer(heads=2, feed_forward="mlp"),) * L, hidden=32, norm="pre")
    return network_of(Model(model, model.init(task.N, task.T, 0)))


@law("published.hop_errors")
def published_errors(draws: int, seed: int, L: int, config: str, weights: str, dropout: bool) -> Rows:
    """The error of the authors' model at k = 0 … 16, each on `draws` strings of its own."""
    network = published(L, config, weights)
    yield from errors(network, draws, seed, network.dropout if dropout else NONE)


@law("hops.stand_in_errors")
def stand_in_errors(draws: int, seed: int, L: int, dropout: bool) -> Rows:
    """The same of random weights."""
    yield from errors(stand_in(L), draws, seed, Dropout(0.1, 0.1, 0.1) if dropout else NONE)


@law("published.hop_alignment")
def published_alignment(draws: int, seed: int, L: int, config: str, weights: str, k: int, most: int) -> Rows:
    """The alignment of every head of the authors' model with find^1 … find^most, in `draws` strings that ask for k."""
    yield from aligned(published(L, config, weights), draws, seed, k, most)


@law("hops.stand_in_alignment")
def stand_in_alignment(draws: int, seed: int, L: int, k: int, most: int) -> Rows:
    """The same of random weights."""
    yield from aligned(stand_in(L), draws, seed, k, most)


@torch.no_grad()
def errors(network: Network, draws: int, seed: int, dropout: Dropout) -> Iterator[dict[str, float]]:
    """A row for each number of hops: how many letters have a target, and the share of them that is wrong."""
    for k in Hops().asked:
        batch = Hops(hops=(k,)).sample(seed, k, draws)
        watch = dropout.watch(int(generator(seed, "dropout", k).integers(2**62)))
        guess = np.concatenate([network.stream(part, watch).argmax(dim=-1).cpu() for part in _parts(batch.tokens)])
        asked = batch.groups[f"hop{k}"]
        yield {"k": k, "letters": int(asked.sum()), "error": float((guess != batch.targets)[asked].mean())}


def _parts(tokens: Int[np.ndarray, "B T"]) -> list[Int[np.ndarray, "b T"]]:
    return [tokens[first : first + AT_ONCE] for first in range(0, len(tokens), AT_ONCE)]


@torch.no_grad()
def aligned(network: Network, draws: int, seed: int, k: int, most: int) -> Iterator[dict[str, float]]:
    """A row for each head and find^j: its alignment, and that of uniform attention."""
    tokens = Hops(hops=(k,)).sample(seed, k, draws).tokens
    edges = {str(j): find_edges(tokens[:, 1:], j) for j in range(1, most + 1)}
    chance = {j: float(uniform_alignment(which).nanmean()) for j, which in edges.items()}
    for (layer, head), by_j in alignments(network, np.array(tokens), edges).items():
        for j, found in by_j.items():
            mean = float(found.nanmean())
            yield {"layer": layer, "head": head, "j": int(j), "alignment": mean, "chance": chance[j]}
