"""The same probes on a model of ours and on its copy that other programs read: export, file, reader, probes.

A transformer with random weights is written as a GPT-2 folder, as `engram runs export --format hf` does, and read as
models of others are. What is compared: logits, attention of all heads, the alignment of every head with the previous
token, what each head's W_Qᵀ W_K and W_O W_V are, the loss when a head is silenced. All in float32.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from engram.adapters import network_from
from engram.adapters.export import gpt2_files
from engram.adapters.source import CONFIG, WEIGHTS, source_of
from engram.models import Head, Layer, Model, Network, Transformer, network_of
from engram.models.network import Part
from engram.probes.causal import alignments, without_heads
from engram.probes.edges import previous_edges
from engram.tasks import Bigram
from engram.values import Rows, generator, law

FEED_FORWARD = ("none", "linear", "mlp")
SEQUENCES = 4


@law("real.same_probe")
def same_probe(draws: int, seed: int, d: int, T: int, L: int, H: int, feed_forward: str, scale: str) -> Rows:
    """For each of `draws` models the largest differences between it and its copy, by what is measured."""
    layer = Layer.model_validate({"heads": H, "feed_forward": feed_forward})
    model = Transformer.model_validate({"d": d, "layers": (layer,) * L, "hidden": 4 * d, "norm": "pre", "scale": scale})
    task = Bigram(K=3, T=T)
    for draw in range(draws):
        weights = model.init(task.N, T, int(generator(seed, "same_probe", draw).integers(2**62)))
        yield differences(Model(model, weights), torch.from_numpy(task.sample(seed, draw, SEQUENCES).tokens))


def copied(model: Model) -> Network:
    """The model behind its way through a Hugging Face folder."""
    files = gpt2_files(model)
    return network_from(source_of("copy", files[CONFIG], files[WEIGHTS]))


@torch.no_grad()
def differences(model: Model, tokens: Tensor) -> dict[str, float]:
    """Largest differences of any entry; those of matrices relative to their largest entry."""
    ours, theirs = network_of(model), copied(model)
    one, other = dict(_measured(ours, tokens)), dict(_measured(theirs, tokens))
    found = {name: 0.0 for name, _ in one}
    for (name, which), value in one.items():
        off = float((value - other[name, which]).abs().max())
        by = float(value.abs().max()) if name in ("qk", "ov") else 1.0
        found[name] = max(found[name], off / by)
    return found


def _measured(network: Network, tokens: Tensor) -> Iterator[tuple[tuple[str, Head], Tensor]]:
    """What probes see of a network, by the place where they look."""
    patterns: dict[int, Tensor] = {}

    def look(part: Part, layer: int, tensor: Tensor) -> None:
        if part == "pattern":
            patterns[layer] = tensor

    yield ("logits", (0, 0)), network.stream(tokens, look)
    yield from ((("pattern", (layer, 0)), pattern) for layer, pattern in patterns.items())
    for head, found in alignments(network, tokens, {"previous": previous_edges(tokens)}).items():
        yield ("alignment", head), found["previous"]
    for head in network.heads():
        qk, ov = network.qk(head), network.ov(head)
        yield ("qk", head), qk.query.W.T @ qk.key.W / qk.temperature
        yield ("ov", head), ov.output.W @ ov.value.W
        yield ("silenced", head), network.stream(tokens, without_heads([head])).log_softmax(dim=-1)
