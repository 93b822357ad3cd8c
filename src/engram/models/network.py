r"""What every tool asks of a transformer, whoever trained it: a model of ours, or one of others that an adapter read.

A forward pass is a stream: each part is shown to a watcher as it comes and is then forgotten, so that memory does not
grow with depth. The watcher may hand back another tensor in its place: to patch, to ablate, to block an edge.

    part       shape        what it is, in layer i from 1
    resid      B×T×d        the residual stream x that enters the layer; that of layer L + 1 is what leaves the last one
    k_in       B×T×d        what the keys are made of: x again, before the norm. What is handed back may be B×H×T×d,
                            for each head its own
    scores     B×H×T×T      before the softmax: [t, s], −∞ where s is after t
    pattern    B×H×T×T      attention
    z          B×H×T×d_h    Σ_s a_ts v_s of every head
    head       B×T×d        what the attention writes: W_O z of all heads together
    mid        B×T×d        the stream between attention and feed-forward; not in parallel blocks, which have no between
    units      B×T×m        what W_F is applied to; like mid and mlp, only where a layer has a feed-forward part
    mlp        B×T×d        what the feed-forward part writes
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, Protocol, get_args, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from engram.models.trace import Head, Tokens
from engram.models.unread import Tensors

Part = Literal["resid", "k_in", "scores", "pattern", "z", "head", "mid", "units", "mlp"]
Watch = Callable[[Part, int, Tensor], Tensor | None]  # (part, layer, tensor); None: go on with what it was shown
Reader = Literal["head", "mlp", "logits"]  # what reads the stream through a norm
Read = Literal["all", "last", "none"]
PARTS: tuple[Part, ...] = get_args(Part)


@dataclass(frozen=True)
class Sizes:
    """Letters as in NOTATION.md. Where the layers differ in their heads, H and d_h are those of the layer with most.

    groups      different keys and values in a layer; H of them unless heads share some
    T           the longest sequence
    parallel    feed-forward parts read what their layer's attention reads, not what it wrote
    """

    L: int
    H: int
    groups: int
    d: int
    d_h: int
    N: int
    T: int
    parallel: bool = False


@dataclass(frozen=True)
class Provenance:
    """Where weights come from: the name of a folder, file or run, the family, the SHA-256 of the file of weights.

    note    what else a figure must say, such as "4-bit-derived" or "W_O2 replaced"
    """

    name: str
    family: str
    sha256: str = ""
    note: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.family}{f', {self.note}' if self.note else ''})"

    def noted(self, more: str) -> "Provenance":
        return replace(self, note=", ".join(filter(None, (self.note, more))))


@dataclass(frozen=True)
class Affine:
    """x ↦ W x + b; rows of x are vectors."""

    W: Float[Tensor, "out in"]
    b: Float[Tensor, " out"] | None = None

    def __call__(self, x: Float[Tensor, "*n in"]) -> Float[Tensor, "*n out"]:
        y = x @ self.W.T
        return y if self.b is None else y + self.b


@dataclass(frozen=True)
class QK:
    """The two factors of a head's score, query(x_t) · key(x_s) / temperature, for x behind the norm.

    With rotary positions both are rotated before they meet (`Network.rotate`).
    """

    query: Affine
    key: Affine
    temperature: float


@dataclass(frozen=True)
class OV:
    """The two factors of what a head writes, output(Σ_s a_ts value(x_s)), for x behind the norm."""

    value: Affine
    output: Affine


@runtime_checkable
class Network(Protocol):
    """A transformer with its weights, as probes see it: heads and layers count from 1.

    `network_of` makes one of a model of ours, `engram.adapters.read_network` one of a folder.
    """

    @property
    def sizes(self) -> Sizes: ...

    @property
    def provenance(self) -> Provenance: ...

    def heads(self) -> Iterator[Head]:
        """All heads as (layer, head)."""
        ...

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
        """Logits, layer by layer; `watch` sees every part on the way and must not change it in place.

        start    the first layer that is computed; x, which enters it, then takes the place of tokens. With L + 1 the
                 stream is only read
        stop     the last layer that is computed; logits are then those of a stream that ends there (a logit lens)
        read     all: logits at all positions; last: at the last one; none: not logits but the stream itself
        """
        ...

    def normed(self, part: Reader, layer: int, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
        """What this part of a layer sees of x: the norm before it, with its gain; "logits": the one before U."""
        ...

    def qk(self, head: Head) -> QK: ...

    def ov(self, head: Head) -> OV: ...

    def rotate(self, q: Float[Tensor, "*n T d_h"], position: Int[Tensor, " T"]) -> Float[Tensor, "*n T d_h"]:
        """Queries or keys at these positions, counted from 0; as they are where positions are embedded instead."""
        ...

    def matrices(self) -> Tensors:
        """Every matrix by its name in NOTATION.md, acting from the left: E, P, U, W_Q1, …"""
        ...

    def replaced(self, **new: Tensor) -> "Network":
        """The same with some tensors replaced; all others are shared."""
        ...
