r"""What a part of a network does: take it away, put another in its place, cut an edge, and see what changes.

Everything here is made for `Network.stream` and knows nothing else of a model. Most functions return a watcher:

    logits = network.stream(tokens, without_heads([(2, 1)]))                   a head writes nothing
    logits = network.stream(tokens, patched(keep(network, other, [("mlp", 3)])))    a part of another run
    logits = network.stream(tokens, chained(blocked({(1, 2): edges}), …))      several things at once

Zero-ablation replaces a part by 0, mean-ablation by its mean over sequences and positions (`means`), which leaves what
the part always does and takes away what it says about this input.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from engram.errors import EngramError, did_you_mean
from engram.models import Head, Model, Network, network_of
from engram.models.network import PARTS, Part, Watch
from engram.models.trace import Tokens
from engram.models.transformer import Blocked

Place = tuple[Part, int]  # a part, and its layer
Kept = Mapping[Place, Tensor]
MOST_KEPT = 1 << 30  # bytes


def chained(*watches: Watch) -> Watch:
    """One watcher after the other: each sees what the one before has made of a part."""

    def watch(part: Part, layer: int, tensor: Tensor) -> Tensor:
        for one in watches:
            new = one(part, layer, tensor)
            tensor = tensor if new is None else new
        return tensor

    return watch


def keep(network: Network, tokens: Tokens, places: Iterable[Place], watch: Watch | None = None) -> Kept:
    """These parts of a run, perhaps of one with something changed; more than 1 GB is refused before it is there."""
    wanted, found, size = _known(network, places), dict[Place, Tensor](), 0

    def look(part: Part, layer: int, tensor: Tensor) -> None:
        nonlocal size
        if (part, layer) in wanted:
            size += prod(tensor.shape) * tensor.element_size()
            if size > MOST_KEPT:
                raise EngramError(
                    f"keep: more than {MOST_KEPT >> 20} MB; keep fewer places, or fewer sequences at a time"
                )
            found[part, layer] = tensor

    network.stream(tokens, chained(*([watch] if watch else []), look), read="none")
    return found


def _known(network: Network, places: Iterable[Place]) -> set[Place]:
    given, L = list(places), network.sizes.L
    if isinstance(places, str) or not all(isinstance(place, tuple) and len(place) == 2 for place in given):
        raise EngramError(f'places: name parts with their layers, as in [("head", 1)]; got {places!r:.60}')
    for part, layer in given:
        if part not in PARTS or not (isinstance(layer, int) and 1 <= layer <= L + (part == "resid")):
            hint = did_you_mean(part, PARTS) if part not in PARTS else ""
            allowed = f"{hint}allowed: {', '.join(PARTS)} of 1 … {L}"
            raise EngramError(f"places: no part {part!r} in layer {layer!r}; {allowed}")
    return set(given)


def means(network: Network, tokens: Tokens, places: Iterable[Place]) -> Kept:
    """The mean of each part over sequences and positions, in a shape that takes its place everywhere."""
    wanted, found = _known(network, places), dict[Place, Tensor]()

    def look(part: Part, layer: int, tensor: Tensor) -> None:
        if (part, layer) in wanted:
            found[part, layer] = tensor.mean(dim=(0, -2), keepdim=True)

    network.stream(tokens, look, read="none")
    return found


def without_heads(heads: Collection[Head], mean: Kept | None = None) -> Watch:
    """These heads write nothing, or with `mean` (of z in their layers) always the same."""

    def watch(part: Part, layer: int, z: Tensor) -> Tensor | None:
        own = [h - 1 for i, h in heads if i == layer]
        if part != "z" or not own:
            return None
        new = z.clone()
        new[:, own] = 0 if mean is None else mean["z", layer][:, own].to(z)
        return new

    return watch


def without_part(part: Part, layer: int, mean: Kept | None = None) -> Watch:
    """A layer without its attention (part "head") or its feed-forward part ("mlp"), or with their mean instead."""

    def watch(seen: Part, at: int, tensor: Tensor) -> Tensor | None:
        if (seen, at) != (part, layer):
            return None
        return torch.zeros_like(tensor) if mean is None else mean[part, layer].to(tensor).expand_as(tensor)

    return watch


def patched(kept: Kept, heads: Collection[Head] | None = None, positions: Sequence[int] | None = None) -> Watch:
    """Parts of another run in the place of this one's.

    heads        only these, of parts with a head axis: scores, pattern, z
    positions    only at these, from 0
    """

    def watch(part: Part, layer: int, tensor: Tensor) -> Tensor | None:
        if (part, layer) not in kept:
            return None
        return torch.where(_chosen(part, layer, tensor, heads, positions), kept[part, layer], tensor)

    return watch


def patch(
    into: Model | Network,
    tokens: Tokens | str,
    places: Iterable[Place],
    source: Model | Network | None = None,
    source_tokens: Tokens | str | None = None,
    heads: Collection[Head] | None = None,
    positions: Sequence[int] | None = None,
) -> Float[Tensor, "B T n"]:
    """The logits of a model on some tokens, with parts of another run in the place of its own.

    tokens      their ids, or a text where the model reads text
    places      as in [("head", 1), ("resid", 2)]: the parts that engram.models.network lists, with their layer
    source      the model of the other run; this one by default
    source_tokens   what the other run reads; the same tokens by default
    heads, positions    only these
    """
    network, other = (one if isinstance(one, Network) else network_of(one) for one in (into, source or into))
    mine, theirs = _ids(tokens, into), _ids(tokens if source_tokens is None else source_tokens, source, into)
    if (here := _length(mine)) != (there := _length(theirs)):
        raise EngramError(f"source_tokens: both runs need equally many tokens; got {here} and {there}")
    return network.stream(mine, patched(keep(other, theirs, places), heads, positions))


def _ids(tokens: Tokens | str, *readers: Model | Network | None) -> Tokens:
    """Of a text, as the first Model among these reads it."""
    if not isinstance(tokens, str):
        return tokens
    reader = next((one for one in readers if isinstance(one, Model)), None)
    if reader is None:
        raise EngramError("tokens: a Network reads no text; give token ids")
    return reader.encode(tokens)


def _length(tokens: Any) -> int:
    return np.shape(tokens)[-1] if np.ndim(tokens) else 0


def _chosen(
    part: Part, layer: int, tensor: Tensor, heads: Collection[Head] | None, positions: Sequence[int] | None
) -> Tensor:
    """Where a part is replaced; broadcasts to its shape."""
    at = torch.ones(tensor.shape[-2], 1, dtype=torch.bool, device=tensor.device)
    if positions is not None:
        at[:] = False
        at[list(positions)] = True
    if heads is None:
        return at
    if tensor.ndim != 4:
        raise EngramError(f"patched: {part} has no heads; only scores, pattern and z can be patched head by head")
    which = torch.tensor([(layer, h) in heads for h in range(1, tensor.shape[1] + 1)], device=tensor.device)
    return which[:, None, None] & at


def blocked(edges: Blocked) -> Watch:
    """Heads that may not use some edges t → s (boolean, B×T×T): their scores are −∞. Every t must have a key left."""

    def watch(part: Part, layer: int, scores: Tensor) -> Tensor | None:
        own = {h: mask for (i, h), mask in edges.items() if i == layer}
        if part != "scores" or not own:
            return None
        new = scores.clone()
        for h, mask in own.items():
            new[:, h - 1] = new[:, h - 1].masked_fill(mask, -torch.inf)
            _refuse_lost((layer, h), new[:, h - 1])
        return new

    return watch


def _refuse_lost(head: Head, scores: Float[Tensor, "B T k"]) -> None:
    lost = scores.isneginf().all(dim=2).any(dim=0).nonzero().flatten().tolist()
    if lost:
        raise EngramError(f"blocked: head {head} has no key left at position t={lost[0]}; leave one, such as t itself")


def without_in_keys(network: Network, writer: Head, readers: Collection[Head]) -> Watch:
    """What one head writes is not seen by the keys of some later heads; everything else sees it as before.

    The norm before these keys is that of the stream without it.
    """
    late = [reader for reader in readers if reader[0] <= writer[0]]
    if late:
        raise EngramError(f"readers: {late[0]} is not behind {writer}; a head reads what earlier layers wrote")
    output, written = network.ov(writer).output, list[Tensor]()

    def watch(part: Part, layer: int, tensor: Tensor) -> Tensor | None:
        if (part, layer) == ("z", writer[0]):
            written[:] = [output(tensor[:, writer[1] - 1])]
        own = [h - 1 for i, h in readers if i == layer]
        if part != "k_in" or not own:
            return None
        H = sum(i == layer for i, _ in network.heads())
        each = tensor[:, None].repeat(1, H, 1, 1)
        each[:, own] -= written[0][:, None]
        return each

    return watch


def alignment(pattern: Float[Tensor, "B H T k"], edges: Bool[Tensor, "B T k"]) -> Float[Tensor, "B H"]:
    """How much of a head's attention is these edges: ⟨A, M⟩ / (‖A‖ ‖M‖), 1 if it is them and nothing else.

    Only rows t that have an edge count; NaN in a sequence without any.
    """
    A = pattern * edges.any(dim=2)[:, None, :, None]
    M = edges[:, None].to(pattern.dtype)
    return (A * M).sum(dim=(2, 3)) / (A.norm(dim=(2, 3)) * M.norm(dim=(2, 3)))


def uniform_alignment(edges: Bool[Tensor, "B T k"]) -> Float[Tensor, " B"]:
    """The alignment of uniform attention with these edges: chance."""
    T = edges.shape[1]
    uniform = torch.ones(T, T, device=edges.device).tril() / torch.arange(1, T + 1, device=edges.device)[:, None]
    return alignment(uniform.expand(len(edges), 1, T, T), edges)[:, 0]


def alignments(
    network: Network, tokens: Tokens, edges: Mapping[str, Bool[Tensor, "B T k"]]
) -> dict[Head, dict[str, Float[Tensor, " B"]]]:
    """The alignment of every head with each set of edges, sequence by sequence; no map is kept."""
    found: dict[Head, dict[str, Tensor]] = {head: {} for head in network.heads()}

    def look(part: Part, layer: int, pattern: Tensor) -> None:
        if part != "pattern":
            return
        for name, which in edges.items():
            for h, value in enumerate(alignment(pattern, which).unbind(1), 1):
                found[layer, h][name] = value

    network.stream(tokens, look, read="none")
    return found
