r"""The general transformer: any number of layers and heads, with or without feed-forward layers and layer norms.

    x = e_{z_t} + p_t;   for every layer i:   x ← x + attention_i(n(x)),   x ← x + feed_forward_i(n(x))
    logits = U n(x)

    attention      Σ_h W_O[:, h] Σ_{s≤t} a_ts W_V[h] x_s,    a_t· = softmax_s( W_Q[h] x_t · W_K[h] x_s / √d_h )
    feed_forward   W_F x  (linear)   or   W_F ReLU(W_I x)  (mlp)

With rotary positions there is no p_t: queries and keys are turned by their position instead (engram.models.rotary).

n is the layer norm (x − mean)/σ or nothing. It has no gain and no shift of its own: a gain is a factor of the matrices
that read n(x). [h] takes the d_h = d/H rows (or columns) of head h. Blocks are sequential: the feed-forward layer reads
what attention wrote. Where the model has biases, W x stands for W x + b.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import sqrt
from typing import Annotated, Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor
from torch.nn.functional import layer_norm

from engram.errors import EngramError
from engram.memory.stored import Stored
from engram.models.memories import bigram_memory, induction_memories
from engram.models.rotary import turned_by_position
from engram.models.trace import Head, Trace, Weights, draw_weights
from engram.models.unread import Tensors
from engram.tasks import Task
from engram.values import Value

Blocked = Mapping[Head, Tensor]  # edges [t, s] that a head may not use: boolean, B×T×T, checked by forward


class Layer(Value, name="models.transformer.Layer"):
    """x ← x + attention(n(x)) with H heads, then x ← x + feed_forward(n(x)) unless that is "none".

    heads           number of heads H, which divides d
    queries         matrix: W_Q is a matrix; identity: W_Q = I, as in `Simplified` (one head only)
    feed_forward    linear: W_F x; mlp: W_F ReLU(W_I x)
    """

    heads: Annotated[int, Field(ge=1)] = 1
    queries: Literal["matrix", "identity"] = "matrix"
    feed_forward: Literal["none", "linear", "mlp"] = "none"

    @model_validator(mode="after")
    def _identity_is_one_head(self) -> "Layer":
        if self.queries == "identity" and self.heads > 1:
            raise ValueError("queries: 'identity' needs heads=1; several heads have query matrices of their own")
        return self


class Transformer(Value, name="models.transformer.Transformer"):
    """logits = U n(x) after all layers; the module has the formulas. Matrices of layer i end in its number, from 1.

    d          width, divisible by the number of heads of every layer
    layers     one Layer for each, the first first
    hidden     units of every mlp
    norm       n: none, or pre, a layer norm before each part and before U
    positions  embedded: p_t is added to e_z; rotary: no P, queries and keys are turned by their position
    biases     the letters of the matrices that have one, such as Q, K and V: b_Q1, …, at first zero
    scale      one of three conventions (NOTATION.md):

    scale        E, P          U, layers                      scores
    standard     N(0, 1)       uniform on ±1/√(columns)       divided by √d_h
    small        N(0, 0.02²)   uniform on ±1/√(columns)       divided by √d_h
    unit         N(0, 1/d)     N(0, 1/columns)                as they are

    The plan says which matrices are trained: with P among them positions are learned, otherwise they are random.
    """

    d: Annotated[int, Field(ge=1, le=16384)] = 128
    layers: Annotated[tuple[Layer, ...], Field(min_length=1)] = (Layer(feed_forward="mlp"), Layer(feed_forward="mlp"))
    hidden: Annotated[int, Field(ge=1, le=2**20)] = 512
    norm: Literal["none", "pre"] = "none"
    scale: Literal["standard", "small", "unit"] = "standard"
    positions: Literal["embedded", "rotary"] = "embedded"
    biases: tuple[Literal["Q", "K", "V", "O", "I", "F"], ...] = ()

    @model_validator(mode="after")
    def _heads_divide(self) -> "Transformer":
        for layer in self.layers:
            if self.d % layer.heads:
                raise ValueError(f"layers: {layer.heads} heads do not divide d={self.d}; change one of the two")
            if self.positions == "rotary" and self.d // layer.heads % 2:
                width = f"{layer.heads} heads of d={self.d} have {self.d // layer.heads} coordinates"
                raise ValueError(f"positions: 'rotary' turns pairs of coordinates, and {width}; make it an even number")
        if tuple(sorted(set(self.biases), key="QKVOIF".index)) != self.biases:
            raise ValueError(f"biases: each letter once, in the order Q, K, V, O, I, F; got {', '.join(self.biases)}")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        return (*self._shapes(1, 1), *self._vectors())

    def _vectors(self) -> dict[str, int]:
        """The biases, with their lengths: one of each letter in every layer that has its matrix."""
        rows = {name: shape[0] for name, shape in self._shapes(1, 1).items()}
        of = ((f"b_{letter}{i}", f"W_{letter}{i}") for i in range(1, len(self.layers) + 1) for letter in self.biases)
        return {name: rows[matrix] for name, matrix in of if matrix in rows}

    def _shapes(self, N: int, T: int) -> dict[str, tuple[int, int]]:
        d, shapes = self.d, {"E": (N, self.d), "P": (T, self.d), "U": (N, self.d)}
        if self.positions == "rotary":
            del shapes["P"]
        for i, layer in enumerate(self.layers, 1):
            letters = "KVO" if layer.queries == "identity" else "QKVO"
            shapes |= {f"W_{letter}{i}": (d, d) for letter in letters}
            if layer.feed_forward == "linear":
                shapes[f"W_F{i}"] = (d, d)
            elif layer.feed_forward == "mlp":
                shapes |= {f"W_I{i}": (self.hidden, d), f"W_F{i}": (d, self.hidden)}
        return shapes

    def init(self, N: int, T: int, seed: int) -> Weights:
        """Initial weights for N tokens and T positions; each matrix has its own random stream, as in `Simplified`."""
        zeros = {name: torch.zeros(length) for name, length in self._vectors().items()}
        return draw_weights(self.scale, self._shapes(N, T), seed) | zeros

    def forward(self, w: Weights, tokens: Int[Tensor, "B T"], blocked: Blocked | None = None) -> Trace:
        """The forward pass; `blocked` maps (layer, head) to a B×T×T mask of edges t → s that this head may not use."""
        for head, edges in (blocked or {}).items():
            self._known("blocked", head)
            _leaves_a_key(head, edges, tokens)
        x = self.embed(w, tokens)
        written, scores, attention = {"embedding": x}, [], []
        for i, layer in enumerate(self.layers, 1):
            s, a, written[f"head{i}"] = self._attend(w, i, self.normed(x), blocked or {})
            scores, attention = [*scores, s], [*attention, a]
            x = x + written[f"head{i}"]
            if layer.feed_forward != "none":
                written[f"W_F{i}"] = self.feed_forward(w, i, self.normed(x))
                x = x + written[f"W_F{i}"]
        return Trace(written, tuple(scores), tuple(attention), x, self.normed(x) @ w["U"].T)

    def embed(self, w: Tensors, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T d"]:
        """e_{z_t} + p_t, or e_{z_t} alone."""
        return w["E"][tokens] + w["P"][: tokens.shape[1]] if self.positions == "embedded" else w["E"][tokens]

    def normed(self, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
        """n(x): the layer norm, or x itself."""
        return layer_norm(x, (self.d,)) if self.norm == "pre" else x

    def feed_forward(self, w: Weights, i: int, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
        """W_F x or W_F ReLU(W_I x) of layer i."""
        return self.biased(w, "F", i, self.units(w, i, x) @ w[f"W_F{i}"].T)

    def units(self, w: Tensors, i: int, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n m"]:
        """What W_F of layer i is applied to: hidden units, or x itself if the layer is linear."""
        if self.layers[i - 1].feed_forward != "mlp":
            return x
        return self.biased(w, "I", i, x @ w[f"W_I{i}"].T).relu()

    def biased(self, w: Tensors, letter: str, i: int, y: Float[Tensor, "*n m"]) -> Float[Tensor, "*n m"]:
        """What a matrix of layer i made, with its bias where it has one."""
        return y + w[f"b_{letter}{i}"] if f"b_{letter}{i}" in w else y

    def _attend(
        self, w: Weights, i: int, x: Float[Tensor, "B T d"], blocked: Blocked
    ) -> tuple[Float[Tensor, "B H T k"], Float[Tensor, "B H T k"], Float[Tensor, "B T d"]]:
        """Scores and attention of every head of layer i, and what they write together."""
        q, k, v = (self.split(self.shown(w, letter, i, x), i) for letter in "QKV")
        scores = self.scores(q, k)
        for (layer, head), edges in blocked.items():
            if layer == i:
                scores = _block(scores, head, edges)
        attention = scores.softmax(dim=-1)
        return scores, attention, self.biased(w, "O", i, self.mixed(attention, v) @ w[f"W_O{i}"].T)

    def shown(self, w: Weights, letter: str, i: int, x: Float[Tensor, "B T d"]) -> Float[Tensor, "B T d"]:
        """What the heads of layer i are shown of x: its queries W_Q x, keys W_K x or values W_V x."""
        is_identity = letter == "Q" and self.layers[i - 1].queries == "identity"
        return x if is_identity else self.biased(w, letter, i, x @ w[f"W_{letter}{i}"].T)

    def split(self, y: Float[Tensor, "B T d"], i: int) -> Float[Tensor, "B H T dh"]:
        """Queries, keys or values of layer i by head."""
        return y.unflatten(-1, (self.layers[i - 1].heads, -1)).transpose(1, 2)

    def scores(
        self, q: Float[Tensor, "B H q dh"], k: Float[Tensor, "B H k dh"], at: Int[Tensor, "B q"] | None = None
    ) -> Float[Tensor, "B H q k"]:
        """q_t · k_s, −∞ where s is after t; queries stand at all positions, or at those that `at` says."""
        T, temperature = k.shape[2], 1.0 if self.scale == "unit" else sqrt(q.shape[-1])
        if self.positions == "rotary":
            place = torch.arange(T, device=q.device)
            q, k = turned_by_position(q, place if at is None else at[:, None]), turned_by_position(k, place)
        future = torch.full((T, T), -torch.inf, dtype=q.dtype, device=q.device).triu(1)
        return q @ k.mT / temperature + (future if at is None else future[at][:, None])

    def mixed(self, attention: Float[Tensor, "B H q k"], v: Float[Tensor, "B H k dh"]) -> Float[Tensor, "B q d"]:
        """What W_O is applied to: Σ_s a_ts v_s of every head, one beside the other."""
        return (attention @ v).transpose(1, 2).flatten(2)

    def memories(self, w: Weights, task: Task, seed: int = 0) -> list[Stored]:
        """The memories of an induction head in the first two layers, and that of the last feed-forward layer.

        Query and key matrices count as one, W_Qᵀ W_K, over all heads; E and P are normed, as the layers see them.
        Rotary positions have no vectors that a matrix could store: of such a model only the last is known.
        """
        two = len(self.layers) > 1 and self.positions == "embedded"
        found = induction_memories(self.as_simplified(w), task, seed) if two else []
        last = len(self.layers)
        if f"W_F{last}" not in w:
            return found
        shown = self.units(w, last, self.normed(w["E"]))
        return [*found, bigram_memory(shown, w[f"W_F{last}"], w["U"], task, seed, read=self.normed)]

    def as_simplified(self, w: Weights) -> Weights:
        """The first two layers under the names of `Simplified`."""
        same = {name: w[name] for name in ("U", "W_V1", "W_O1", "W_V2", "W_O2")}
        keys = {f"W_K{i}": w[f"W_Q{i}"].T @ w[f"W_K{i}"] if f"W_Q{i}" in w else w[f"W_K{i}"] for i in (1, 2)}
        return same | keys | {"E": self.normed(w["E"]), "P": self.normed(w["P"])}

    def heads(self) -> Iterator[Head]:
        """All heads as (layer, head), both from 1."""
        return ((i, h) for i, layer in enumerate(self.layers, 1) for h in range(1, layer.heads + 1))

    def _known(self, what: str, head: Head) -> None:
        if head not in self.heads():
            raise EngramError(f"{what}: no head {head}; allowed: {', '.join(map(str, self.heads()))}")

    def without(self, w: Weights, head: Head) -> Weights:
        """Weights, or gradients, in which one head writes nothing: its columns of W_O are zero."""
        self._known("head", head)
        (i, h), d_h = head, self.d // self.layers[head[0] - 1].heads
        if f"W_O{i}" not in w:
            return w
        W_O = w[f"W_O{i}"].clone()
        W_O[:, (h - 1) * d_h : h * d_h] = 0
        return w | {f"W_O{i}": W_O}


def silenced(model: Any, w: Weights, heads: Iterable[Head]) -> Weights:
    """Weights, or gradients, in which these heads write nothing; `model` has a method without(w, head)."""
    for head in heads:
        w = model.without(w, head)
    return w


def _block(scores: Float[Tensor, "B H T k"], head: int, edges: Bool[Tensor, "B T k"]) -> Float[Tensor, "B H T k"]:
    """−∞ at the blocked edges of one head."""
    which = torch.arange(1, scores.shape[1] + 1, device=scores.device) == head
    return scores.masked_fill(edges[:, None] & which[:, None, None], -torch.inf)


def _leaves_a_key(head: Head, edges: Tensor, tokens: Int[Tensor, "B T"]) -> None:
    """Blocked edges fit the tokens, and every query has a key left: without one its attention is undefined."""
    B, T = tokens.shape
    if edges.dtype != torch.bool or edges.shape != (B, T, T):
        given = f"{str(edges.dtype).removeprefix('torch.')} {tuple(edges.shape)}"
        raise EngramError(f"blocked: edges of head {head} must be bool {(B, T, T)}, from t to s; got {given}")
    future = torch.ones(T, T, dtype=torch.bool, device=edges.device).triu(1)
    lost = (edges | future).all(dim=2).any(dim=0).nonzero().flatten().tolist()
    if lost:
        raise EngramError(f"blocked: head {head} has no key left at position t={lost[0]}; leave one, such as t itself")
