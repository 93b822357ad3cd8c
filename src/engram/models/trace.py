"""What a forward pass returns, and a model together with its weights."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.display import Displayed
from engram.embeddings import Law, directions
from engram.errors import EngramError, did_you_mean
from engram.memory.stored import Stored
from engram.tasks.batch import Task, marks_of
from engram.tasks.text import encode

Weights = dict[str, Tensor]
Head = tuple[int, int]  # layer and head, both counted from 1
Tokens = Tensor | np.ndarray | Sequence[object]  # of one sequence (T), or of a batch (B×T)
SMALL = 0.02  # of embeddings at the scale "small"
WHOLE = {getattr(torch, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)}


@dataclass(frozen=True, repr=False)
class Trace(Displayed):
    """Every named intermediate of a forward pass.

    B sequences, T positions, width d, N tokens, H heads (each layer has its own number); axis `k` runs over keys, the
    positions attended to. `written` holds in order what each part adds to the residual stream: "embedding" is
    e_{z_t} + p_t, "head1" what the attention of layer 1 adds, "W_F…" what a feed-forward layer adds.
    """

    written: dict[str, Float[Tensor, "B T d"]]
    scores: tuple[Float[Tensor, "B _H T k"], ...]  # of each layer, before softmax; −∞ above the diagonal
    attention: tuple[Float[Tensor, "B _H T k"], ...]  # of each layer
    x: Float[Tensor, "B T d"]  # the final residual stream: the sum of everything in `written`
    logits: Float[Tensor, "B T N"]
    tokens: Int[Tensor, "B T"] | None = None  # those that were read, where a Model was called
    task: Task | None = None  # how they are written
    seed: int = 0

    def top(self, k: int = 5, position: int = -1, sequence: int = 0) -> list[tuple[str, float]]:
        """The k likeliest tokens after a position (the last one), each as it is written, with its probability."""
        if not isinstance(k, int) or k < 1:
            raise EngramError(f"k: must be a whole number of at least 1; got {k!r:.60}")
        found = self.logits[sequence, position].softmax(dim=-1).topk(min(k, self.logits.shape[-1]))
        return [(self.mark(z), p) for z, p in zip(found.indices.tolist(), found.values.tolist(), strict=True)]

    def mark(self, token: int) -> str:
        """A token as its task writes it, or its number."""
        marks = () if self.task is None else marks_of(self.task, self.seed)
        return marks[token] if token < len(marks) else str(token)

    def __repr__(self) -> str:
        B, T, N = self.logits.shape
        return f"<Trace of {B}×{T} tokens among {N}: {', '.join(self.written)[:60]}; {len(self.attention)} layers>"

    @property
    def attention1(self) -> Float[Tensor, "B T k"]:
        """Attention of layer 1, the mean over its heads."""
        return self.attention[0].mean(dim=1)

    @property
    def attention2(self) -> Float[Tensor, "B T k"]:
        """Attention of layer 2, the mean over its heads."""
        if len(self.attention) < 2:
            raise EngramError("attention2: this model has one layer of attention; use attention1")
        return self.attention[1].mean(dim=1)


@runtime_checkable
class Architecture(Protocol):
    """A frozen description of a network: the names of its matrices, their initial values, and the forward pass.

    Two optional additions: with memories(w, task, seed) → [Stored] its matrices are probed, drawn and edited as
    memories; with heads() → (layer, head), … and without(w, head) its attention is drawn and its heads can be ablated.
    """

    @property
    def names(self) -> tuple[str, ...]: ...

    def init(self, N: int, T: int, seed: int) -> Weights: ...

    def forward(self, w: Weights, tokens: Int[Tensor, "B T"]) -> Any: ...  # learning reads its .logits


def draw_weights(scale: str, shapes: dict[str, tuple[int, int]], seed: int) -> Weights:
    """Initial weights: E and P by the law of inputs, all others by that of layers; each has its own random stream."""
    inputs: Law = "gaussian/d" if scale == "unit" else "gaussian"
    layers: Law = "gaussian/d" if scale == "unit" else "uniform/d"
    laws: dict[str, Law] = {name: inputs if name in ("E", "P") else layers for name in shapes}
    drawn = {name: directions(laws[name], *shape, seed, name) for name, shape in shapes.items()}
    return drawn | {name: SMALL * drawn[name] for name in drawn if scale == "small" and name in ("E", "P")}


@dataclass(frozen=True, repr=False)
class Model(Displayed):
    """An architecture with weights: call it on a sequence (T) or a batch (B×T) of token ids to get a Trace.

    A model of a record knows its task, and reads text too: model("hello"). Further arguments of the forward pass are
    given by name: model(tokens, blocked={(1, 1): edges}) of a Transformer.
    """

    architecture: Architecture
    weights: Weights
    task: Task | None = None
    seed: int = 0
    lacking: tuple[str, ...] = ()  # matrices and heads that were taken out
    origin: str = ""  # the run and the step that it is of

    def __repr__(self) -> str:
        size = sum(tensor.numel() for tensor in self.weights.values())
        lacking = f"; without {', '.join(self.lacking)}" if self.lacking else ""
        return f"<{type(self.architecture).__name__} with {', '.join(self.weights)[:60]}: {size:,} numbers{lacking}>"

    @torch.no_grad()
    def __call__(self, tokens: Tokens | str, **more: Any) -> Any:  # what forward returns
        ids = self.encode(tokens) if isinstance(tokens, str) else tokens
        z, forward = token_ids(ids, *self._limits()), self.architecture.forward
        taken = list(signature(forward).parameters)[2:]
        for name in more:
            if name not in taken:
                known = f"allowed: {', '.join(taken)}" if taken else "it takes only tokens"
                raise EngramError(f"{name}: unknown to {type(self.architecture).__name__}; {known}")
        found = forward(self.weights, z, **more)
        return replace(found, tokens=z, task=self.task, seed=self.seed) if isinstance(found, Trace) else found

    def encode(self, text: str) -> Int[np.ndarray, " t"]:
        """A text as token ids."""
        if self.task is None:
            raise EngramError("text: this model has no task that could read it; give token ids")
        return encode(self.task, text, self.seed)

    def without(self, name: str) -> "Model":
        """The same model with one matrix set to zero."""
        if name not in self.weights:
            raise EngramError(_unknown(name, "matrix", self.weights))
        weights = self.weights | {name: torch.zeros_like(self.weights[name])}
        return replace(self, weights=weights, lacking=(*self.lacking, name))

    def ablate(self, layer: int, head: int) -> "Model":
        """The same model with a head that writes nothing; layers and heads count from 1."""
        own: Any = self.architecture
        known = tuple(own.heads()) if callable(getattr(own, "heads", None)) else ()
        if (layer, head) not in known:
            there = f"this model has {', '.join(map(str, known))}" if known else "this model has no heads to ablate"
            raise EngramError(f"layer {layer}, head {head}: no such head; {there}")
        weights = own.without(self.weights, (layer, head))
        return replace(self, weights=weights, lacking=(*self.lacking, f"head {head} of layer {layer}"))

    @property
    def memories(self) -> dict[str, Stored]:
        """The memories that its matrices are, by name; none where the model does not know its task."""
        own: Any = getattr(self.architecture, "memories", None)
        found = own(self.weights, self.task, self.seed) if own and self.task is not None else ()
        return Memories({stored.name: replace(stored, origin=self.origin) for stored in found})

    def _limits(self) -> tuple[int, int | None]:
        """Number of tokens, and largest length if there are positions; a model without E has its own `limits`."""
        own, w = getattr(self.architecture, "limits", None), self.weights
        return own(w) if own else (len(w["E"]), len(w["P"]) if "P" in w else None)


class Memories(dict[str, Stored]):
    """Those of a model by name; one that it does not have is named, with the nearest that it has."""

    def __missing__(self, name: str) -> Stored:
        raise EngramError(_unknown(name, "memory", self))


def _unknown(name: str, what: str, known: Iterable[str]) -> str:
    return f"{name}: no such {what}; {did_you_mean(name, known)}allowed: {', '.join(known) or 'none'}"


def token_ids(tokens: Tokens, N: int, T: int | None) -> Int[Tensor, "B T"]:
    """Token ids below N as a batch of int64, at most T (unless None) in a sequence; a single one is a batch of one."""
    try:
        z = torch.atleast_2d(torch.as_tensor(np.array(tokens) if isinstance(tokens, np.ndarray) else tokens))
    except (TypeError, ValueError, RuntimeError):  # words, lists of unequal length, numbers beyond 64 bits
        z = torch.full((1, 1), torch.nan)
    if z.numel() == 0:
        raise EngramError("tokens: an empty sequence has no prediction; give at least one token id")
    if z.ndim > 2 or z.dtype not in WHOLE:
        hint = "; a letter's id is its place in task.table.alphabet" if isinstance(tokens, str) else ""
        got = " ".join(repr(tokens).split())[:60]
        raise EngramError(f"tokens: a sequence or a batch of whole numbers is needed; got {got}{hint}")
    ids = z.long()
    if (T is not None and ids.shape[1] > T) or not 0 <= int(ids.min()) <= int(ids.max()) < N:
        most = "" if T is None else f"at most {T} "
        raise EngramError(f"tokens: a sequence of this model has {most}tokens, each in 0 … {N - 1}")
    return ids
