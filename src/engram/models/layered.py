r"""The forward pass that all families of transformers share, as a stream. A family says only what is its own.

    x = embed(z);   for every layer i:   x ← x + attention_i(n(x)),   x ← x + feed_forward_i(n(x))
    logits = U n(x), or n(x) itself where there is no U

    attention      b_O + Σ_h W_O[:, h] Σ_{s≤t} a_ts v_s,    a_t· = softmax_s( q_t · k_s / temperature )
    feed_forward   b_F + W_F units(n(x))

Tensors have the names of NOTATION.md: W_Q1, b_Q1, …; a bias that is missing is zero, a layer without W_F has no
feed-forward part. Parallel blocks add both parts to the same x.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.errors import EngramError, did_you_mean
from engram.models.network import OV, QK, Affine, Part, Provenance, Read, Reader, Sizes, Watch
from engram.models.trace import Head, Tokens, token_ids
from engram.models.unread import Tensors, joined, renamed, shape_of


@dataclass(frozen=True)
class Layered(ABC):
    """A Network of layers, each with attention and perhaps a feed-forward part.

    A family defines embed, normed and units, and where it differs: rotate, temperature, heads_in, affine.
    Heads that share keys and values are neighbours: with H/groups = 3, heads 1 to 3 have those of group 1.
    """

    weights: Tensors = field(repr=False)
    sizes: Sizes
    provenance: Provenance

    @abstractmethod
    def embed(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T d"]:
        """What enters layer 1."""

    @abstractmethod
    def normed(self, part: Reader, layer: int, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]: ...

    @abstractmethod
    def units(self, layer: int, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n m"]:
        """What W_F is applied to, for x behind the norm."""

    def rotate(self, q: Float[Tensor, "*n T d_h"], position: Int[Tensor, " T"]) -> Float[Tensor, "*n T d_h"]:
        return q

    def temperature(self, layer: int) -> float:
        """What scores are divided by."""
        return sqrt(self.sizes.d_h)

    def heads_in(self, layer: int) -> int:
        return self.sizes.H

    def blocks(self, letter: str, layer: int) -> int:
        """How many heads the rows of W_Q, W_K or W_V belong to, each perhaps shared by neighbours."""
        H = self.heads_in(layer)
        return H if letter == "Q" else H * self.sizes.groups // self.sizes.H

    def affine(self, letter: str, layer: int) -> Affine:
        """W_Q, W_K, W_V, W_O, W_I or W_F of a layer, with its bias."""
        return Affine(self.weights[f"W_{letter}{layer}"], self.weights.get(f"b_{letter}{layer}"))

    def heads(self) -> Iterator[Head]:
        return ((i, h) for i in range(1, self.sizes.L + 1) for h in range(1, self.heads_in(i) + 1))

    def qk(self, head: Head) -> QK:
        query, key = (self._rows(letter, head) for letter in "QK")
        return QK(query, key, self.temperature(head[0]))

    def ov(self, head: Head) -> OV:
        """b_O belongs to no head."""
        value = self._rows("V", head)
        d_h, W_O = len(value.W), self.affine("O", head[0]).W
        return OV(value, Affine(W_O[:, (head[1] - 1) * d_h : head[1] * d_h]))

    def _rows(self, letter: str, head: Head) -> Affine:
        """What belongs to a head, perhaps shared with its neighbours: rows of a matrix, and of the bias."""
        if head not in self.heads():
            raise EngramError(f"head: no head {head}; allowed: (layer, head) from (1, 1) to {max(self.heads())}")
        whole, blocks = self.affine(letter, head[0]), self.blocks(letter, head[0])
        d_h, block = len(whole.W) // blocks, (head[1] - 1) * blocks // self.heads_in(head[0])
        own = slice(block * d_h, (block + 1) * d_h)
        return Affine(whole.W[own], None if whole.b is None else whole.b[own])

    def matrices(self) -> Tensors:
        return renamed(self.weights, {name: name for name in self.weights if len(shape_of(self.weights, name)) == 2})

    def replaced(self, **new: Tensor) -> "Layered":
        for name, tensor in new.items():
            if name not in self.weights:
                hint = did_you_mean(name, self.weights)
                raise EngramError(f"replaced: this network has no tensor {name!r}; {hint}see matrices()")
            if tensor.shape != (shape := shape_of(self.weights, name)):
                sizes = f"{shape}; got {tuple(tensor.shape)}"
                raise EngramError(f"replaced: {name} has the shape {sizes}")
        note = f"{', '.join(new)} replaced" if new else ""
        return replace(self, weights=joined(self.weights, new), provenance=self.provenance.noted(note))

    def stream(
        self,
        tokens: Tokens | None = None,
        watch: Watch | None = None,
        *,
        start: int = 1,
        x: Float[Tensor, "B T d"] | None = None,
        stop: int | None = None,
        read: Read = "all",
    ) -> Float[Tensor, "B t n"]:
        """Logits, layer by layer: see `Network`."""
        last = self.sizes.L if stop is None else stop
        self._refuse(start, last, read)
        see, x = Seen(watch), self._entering(tokens, start, x)
        for i in range(start, last + 1):
            x = self._layer(i, see("resid", i, x), see)
        x = see("resid", last + 1, x)
        if read == "none":
            return x
        logits = self.normed("logits", self.sizes.L, x if read == "all" else x[:, -1:])
        return logits @ self.weights["U"].T if "U" in self.weights else logits

    def _refuse(self, start: int, last: int, read: str) -> None:
        L = self.sizes.L
        if not 1 <= start <= L + 1 or not start - 1 <= last <= L:
            raise EngramError(
                f"start, stop: layers count from 1 to {L}, and start from 1 to {L + 1}; got {start}, {last}"
            )
        if read not in get_args(Read):
            raise EngramError(f"read: unknown {read!r}; allowed: {', '.join(get_args(Read))}")

    def _entering(self, tokens: Tokens | None, start: int, x: Tensor | None) -> Float[Tensor, "B T d"]:
        """The stream that enters the first layer that is computed."""
        if (tokens is None) == (x is None) or (start > 1 and x is None):
            raise EngramError("stream: give tokens, or x that enters layer `start`; not both")
        if x is not None:
            return x
        ids = token_ids(tokens, self.sizes.N, self.sizes.T)  # type: ignore[arg-type]  # one of the two is not None
        return self.embed(ids.to(self.weights["E"].device))

    def _layer(self, i: int, x: Float[Tensor, "B T d"], see: "Seen") -> Float[Tensor, "B T d"]:
        mid = x + see("head", i, self._attend(i, x, see))
        if f"W_F{i}" not in self.weights:
            return mid
        if self.sizes.parallel:
            return mid + self._feed(i, x, see)
        mid = see("mid", i, mid)
        return mid + self._feed(i, mid, see)

    def _feed(self, i: int, x: Float[Tensor, "B T d"], see: "Seen") -> Float[Tensor, "B T d"]:
        units = see("units", i, self.units(i, self.normed("mlp", i, x)))
        return see("mlp", i, self.affine("F", i)(units))

    def _attend(self, i: int, x: Float[Tensor, "B T d"], see: "Seen") -> Float[Tensor, "B T d"]:
        shown, position = self.normed("head", i, x), torch.arange(x.shape[1], device=x.device)
        q, v = (self._by_head(letter, i, shown) for letter in "QV")
        k_in = see("k_in", i, x, heads=q.shape[1])
        k = self._keys(i, shown if k_in is x else self.normed("head", i, k_in))
        scores = self.rotate(q, position) @ self.rotate(k, position).mT / self.temperature(i)
        future = torch.full_like(scores[0, 0], -torch.inf).triu(1)
        pattern = see("pattern", i, see("scores", i, scores + future).softmax(dim=-1))
        z = see("z", i, pattern @ v)
        return self.affine("O", i)(z.transpose(1, 2).flatten(2))

    def _keys(self, i: int, shown: Tensor) -> Float[Tensor, "B H T d_h"]:
        """Keys of every head, all shown the same (B×T×d) or each its own (B×H×T×d)."""
        if shown.ndim == 3:
            return self._by_head("K", i, shown)
        return torch.stack([self.qk((i, h)).key(own) for h, own in enumerate(shown.unbind(1), 1)], dim=1)

    def _by_head(self, letter: str, i: int, shown: Float[Tensor, "B T d"]) -> Float[Tensor, "B H T d_h"]:
        """Queries, keys or values of every head; what heads share is repeated."""
        blocks = self.blocks(letter, i)
        y = self.affine(letter, i)(shown).unflatten(-1, (blocks, -1)).transpose(1, 2)
        return y if blocks == self.heads_in(i) else y.repeat_interleave(self.heads_in(i) // blocks, dim=1)


@dataclass(frozen=True)
class Seen:
    """Shows a part to a watcher, and returns what the pass goes on with: the part, or what it was replaced by."""

    watch: Watch | None

    def __call__(self, part: Part, layer: int, tensor: Tensor, heads: int = 0) -> Tensor:
        """With `heads` the replacement may have a head axis behind that of the batch."""
        new = self.watch(part, layer, tensor) if self.watch else None
        if new is None:
            return tensor
        shapes = [tensor.shape, (tensor.shape[0], heads, *tensor.shape[1:])][: 2 if heads else 1]
        if new.shape not in shapes:
            allowed = " or ".join(str(tuple(shape)) for shape in shapes)
            raise EngramError(f"watch: {part} of layer {layer} has the shape {allowed}; got {tuple(new.shape)}")
        return new
