r"""Heads of a real language model: where they look, what they read in each other's writing, what they are worth.

Everything is measured by engram.probes, as on models of ours: repeats, composition, ov_copying, ablation. The model is
named by the SHA-256 of its file, and another one is refused. Each law has a twin on random weights with as many layers
and heads, which takes its place where the file is not there.
"""

from collections.abc import Collection, Iterator
from functools import lru_cache

from engram.laws.registered_model import registered
from engram.models import Head, Layer, Model, Network, Transformer, network_of
from engram.probes.ablation import random_heads, share_left, top_heads, without_writer, z_means
from engram.probes.causal import without_heads
from engram.probes.composition import Embedded, effective, partners, raw
from engram.probes.ov_copying import copying_recall
from engram.probes.repeats import Passed, fresh_tokens, passed, repeats
from engram.values import Rows, law

START = 0  # <|endoftext|>, which stands between the texts that the model was trained on
WHOLE, TOP, RANDOM, WRITER = range(4)  # what is taken away, in the column `without`
TOKENS = "real_heads.tokens"


@lru_cache(maxsize=1)
def stand_in() -> Network:
    """Random weights with as many layers and heads as the model has."""
    model = Transformer(d=36, layers=(Layer(heads=9),) * 30, norm="pre")
    return network_of(Model(model, model.init(N=90, T=40, seed=0)))


@law("real.head_scores")
def real_scores(draws: int, seed: int, model: str, period: int) -> Rows:
    """Both scores of every head, and the losses, on `draws` sequences."""
    yield from scores(registered(model).network, draws, seed, period)


@law("real.stand_in_head_scores")
def stand_in_scores(draws: int, seed: int, period: int) -> Rows:
    """The same of random weights."""
    yield from scores(stand_in(), draws, seed, period)


@law("real.ablated_heads")
def real_ablation(draws: int, seed: int, model: str, period: int, top: int, layer: int, head: int) -> Rows:
    """What is left of the gain without the top heads, random ones, and one head; `draws` sequences."""
    yield from ablation(registered(model).network, draws, seed, period, top, (layer, head))


@law("real.stand_in_ablated_heads")
def stand_in_ablation(draws: int, seed: int, period: int, top: int, layer: int, head: int) -> Rows:
    """The same of random weights."""
    yield from ablation(stand_in(), draws, seed, period, top, (layer, head))


@law("real.keys_without")
def real_keys(draws: int, seed: int, model: str, period: int, layer: int, head: int) -> Rows:
    """Induction scores of all heads, and what is left of the gain, when no later key sees what one head wrote."""
    yield from keys_without(registered(model).network, draws, seed, period, (layer, head))


@law("real.stand_in_keys_without")
def stand_in_keys(draws: int, seed: int, period: int, layer: int, head: int) -> Rows:
    """The same of random weights."""
    yield from keys_without(stand_in(), draws, seed, period, (layer, head))


@law("real.key_recall")
def real_recall(draws: int, seed: int, model: str, readers: str, embedding: str) -> Rows:
    """The recall of the readers' keys, as in "18.4 19.7", through every earlier head, on `draws` tokens."""
    yield from key_recalls(registered(model).network, draws, seed, heads_of(readers), embedding)


@law("real.stand_in_key_recall")
def stand_in_recall(draws: int, seed: int, readers: str, embedding: str) -> Rows:
    """The same of random weights."""
    yield from key_recalls(stand_in(), draws, seed, heads_of(readers), embedding)


@law("real.copying_recall")
def real_copying(draws: int, seed: int, model: str, heads: str) -> Rows:
    """Whether heads write the token that they look at, on `draws` tokens, raw and effective embeddings."""
    yield from copied(registered(model).network, draws, seed, heads_of(heads))


@law("real.stand_in_copying_recall")
def stand_in_copying(draws: int, seed: int, heads: str) -> Rows:
    """The same of random weights."""
    yield from copied(stand_in(), draws, seed, heads_of(heads))


def heads_of(words: str) -> list[Head]:
    """(layer, head) of "18.4 19.7"."""
    return [(int(layer), int(head)) for layer, head in (word.split(".") for word in words.split())]


def scores(network: Network, draws: int, seed: int, period: int) -> Iterator[dict[str, float]]:
    """A row for each head; the losses are the same in all of them."""
    found = passed(network, repeats(network, seed, START, period, draws))
    for layer, head in network.heads():
        both = {"previous": found.previous[layer, head], "induction": found.induction[layer, head]}
        yield {"layer": layer, "head": head, **both, "first": found.first, "repeat": found.repeat}


def ablation(
    network: Network, draws: int, seed: int, period: int, top: int, writer: Head
) -> Iterator[dict[str, float]]:
    """A row for the whole model and each set of heads; chosen, and their means taken, on the next batch of the seed."""
    given, other = (repeats(network, seed, START, period, draws, number) for number in (0, 1))
    chosen = top_heads(passed(network, other).induction, top)
    sets = {WHOLE: [], TOP: chosen, RANDOM: random_heads(network, chosen, seed), WRITER: [writer]}
    mean = z_means(network, [head for heads in sets.values() for head in heads], other)
    whole = passed(network, given)
    for which, heads in sets.items():
        found = passed(network, given, without_heads(heads, mean)) if heads else whole
        yield {"without": which, "heads": len(heads), **_losses(found), "left": share_left(found, whole)}


def _losses(found: Passed) -> dict[str, float]:
    return {"first": found.first, "repeat": found.repeat}


def keys_without(network: Network, draws: int, seed: int, period: int, writer: Head) -> Iterator[dict[str, float]]:
    """A row for each later head: its induction score in the whole model and without the writer in the keys."""
    given = repeats(network, seed, START, period, draws)
    whole, cut = passed(network, given), without_writer(network, writer, given)
    for layer, head in network.heads():
        if layer > writer[0]:
            both = {"whole": whole.induction[layer, head], "induction": cut.induction[layer, head]}
            yield {"layer": layer, "head": head, **both, **_losses(cut), "left": share_left(cut, whole)}


def key_recalls(
    network: Network, draws: int, seed: int, readers: list[Head], embedding: str
) -> Iterator[dict[str, float]]:
    """A row for each reader and each earlier head."""
    tokens = fresh_tokens(network.sizes.N, draws, seed, TOKENS, START)[0]
    x = raw(network, tokens) if embedding == "raw" else _effective(network, draws, seed, readers)
    for found in partners(network, readers, x):
        for writer, value in found.recalls:
            names = zip(("layer", "head", "writer_layer", "writer_head"), (*found.reader, *writer), strict=True)
            yield {**dict(names), "recall": value}


def _effective(network: Network, draws: int, seed: int, heads: Collection[Head]) -> Embedded:
    tokens = fresh_tokens(network.sizes.N, draws, seed, TOKENS, START)[0]
    return effective(network, tokens, START, range(1, max(layer for layer, _ in heads) + 1))


def copied(network: Network, draws: int, seed: int, heads: list[Head]) -> Iterator[dict[str, float]]:
    """A row for each head."""
    tokens = fresh_tokens(network.sizes.N, draws, seed, TOKENS, START)[0]
    of: dict[str, Embedded] = {"raw": raw(network, tokens), "effective": _effective(network, draws, seed, heads)}
    for layer, head in heads:
        recalls = {name: copying_recall(network, (layer, head), x, tokens) for name, x in of.items()}
        yield {"layer": layer, "head": head, **recalls}
