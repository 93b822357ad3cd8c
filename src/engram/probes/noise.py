r"""What noise does to recall, and where the noise token is known: in feed-forward layers or through attention.

    on clean text, in context    mean of p(ν), of p(right), of 1{argmax = right}, of −log p(right)
    margin of a layer F          u_ν · n(F(e_q)) − max_{j≠ν} u_j · n(F(e_q)),      F(x) = W_F ReLU(W_I n(x)) or W_F n(x)
    attention                    of layer 1 on t − 1; of layer 2, in context, on successors of q: noise, and clean

q is the trigger and ν the noise token. Margins ask feed-forward layers alone, shown the embedding of the trigger
without position or attention; F2F1 is F2(F1(e_q)), without the residual stream. All functions take the weights, so that
truncated ones can be given.
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor

from engram.models import Architecture, Trace, Transformer, Weights
from engram.probes.answers import recall_in_context
from engram.probes.edges import Edges, mass_at, previous_edges, successor_edges
from engram.probes.probe import END_SEQUENCES, Look, Probe, tensor_of
from engram.tasks import Batch, NoisyRecall, Task

EARLY = 100  # "t < 100": the first hundred positions
AT_ONCE = 32  # sequences of a forward pass, which bounds memory


class Noise(Probe, name="probes.noise.Noise"):
    """Recall on clean text, margins of the noise token in feed-forward layers, and attention on noisy text.

    sequences    unseen ones, as many clean as noisy

    Chen, Bruna and Bietti (2025), "Distributional associations vs in-context reasoning".
    """

    columns: ClassVar = ("noise.",)
    called: ClassVar = "noise"
    sequences: Annotated[int, Field(ge=1)] = END_SEQUENCES

    def missing(self, task: Task, model: Architecture) -> str | None:
        suits = isinstance(task, NoisyRecall) and isinstance(model, Transformer) and len(model.layers) >= 2
        return None if suits else "the task NoisyRecall and a Transformer with two layers"

    def measure(self, look: Look) -> dict[str, float]:
        task, model = look.task, look.model
        assert isinstance(task, NoisyRecall)
        assert isinstance(model, Transformer)
        clean, noisy = look.unseen(self.sequences, task.clean), look.unseen(self.sequences)
        found = recall_in_context(*in_context_logits(model, look.w, clean), task.noise_token)
        tokens = task.trigger, task.noise_token
        found |= {f"margin.{name}": value for name, value in margins(model, look.w, *tokens).items()}
        found |= {f"mass.{name}": value for name, value in looks(model, look.w, noisy, *tokens).items()}
        return {f"noise.{name}": value for name, value in found.items()}


@torch.no_grad()
def in_context_logits(model: Architecture, w: Weights, batch: Batch) -> tuple[Float[Tensor, "n N"], Int[Tensor, " n"]]:
    """The logits and the target of every position in context."""
    logits = [trace.logits[_asked(part, w)] for part, trace in _traces(model, w, batch)]
    return torch.cat(logits), tensor_of(batch.targets, w)[_asked(batch, w)]


def _asked(batch: Batch, w: Weights) -> Bool[Tensor, "B T"]:
    return tensor_of(batch.groups["in_context"].astype(np.int64), w).bool()


@torch.no_grad()
def margins(model: Transformer, w: Weights, trigger: int, noise_token: int) -> dict[str, float]:
    """By how much the noise token leads, or trails, all others: of each feed-forward layer, and of all in a row."""
    layers = [i for i, layer in enumerate(model.layers, 1) if layer.feed_forward != "none"]
    paths = [[i] for i in layers] + ([layers] if len(layers) > 1 else [])
    found = {}
    for path in paths:
        x = w["E"][trigger]
        for i in path:
            x = model.feed_forward(w, i, model.normed(x))
        name = "".join(f"F{i}" for i in reversed(path))  # as functions are written: the first stands last
        found[name] = _lead(w["U"] @ model.normed(x), noise_token)
    return found


def _lead(logits: Float[Tensor, " N"], token: int) -> float:
    others = torch.arange(len(logits), device=logits.device) != token
    return float(logits[token] - logits[others].max())


@torch.no_grad()
def looks(model: Architecture, w: Weights, batch: Batch, trigger: int, noise_token: int) -> dict[str, float]:
    """Attention (mean over heads) on the edges of the circuit, and that of uniform attention: chance.

    previous, previous.t<100              layer 1 on t − 1, at all positions, and at the first hundred
    successors.noise, successors.clean    layer 2 in context, on earlier successors of the trigger: ν, and others
    """
    parts = [_edges(part, trace, w, trigger, noise_token) for part, trace in _traces(model, w, batch)]
    found = {}
    for name in parts[0]:
        mass, chance = (torch.cat(side) for side in zip(*(mass_at(*part[name]) for part in parts), strict=True))
        found |= {name: float(mass.mean()), f"{name}.chance": float(chance.mean())}
    return found


def _edges(
    batch: Batch, trace: Trace, w: Weights, trigger: int, noise_token: int
) -> dict[str, tuple[Float[Tensor, "B T k"], Edges, Bool[Tensor, "B T"]]]:
    """By name: an attention pattern, the edges that count, and the positions that are asked."""
    tokens, asked = tensor_of(batch.tokens, w), _asked(batch, w)
    back, after = previous_edges(tokens), successor_edges(tokens) & (tokens == trigger)[:, :, None]
    is_noise = (tokens == noise_token)[:, None, :]  # [·, s]: what stands at the key
    early = torch.arange(tokens.shape[1], device=tokens.device) < EARLY
    return {
        "previous": (trace.attention1, back, back.any(dim=2)),
        f"previous.t<{EARLY}": (trace.attention1, back, back.any(dim=2) & early),
        "successors.noise": (trace.attention2, after & is_noise, asked),
        "successors.clean": (trace.attention2, after & ~is_noise, asked),
    }


def _traces(model: Architecture, w: Weights, batch: Batch) -> Iterator[tuple[Batch, Trace]]:
    """A few sequences at a time, with their forward pass."""
    for first in range(0, len(batch.tokens), AT_ONCE):
        rows = slice(first, first + AT_ONCE)
        part = Batch(batch.tokens[rows], batch.targets[rows], {name: mask[rows] for name, mask in batch.groups.items()})
        yield part, model.forward(w, tensor_of(part.tokens, w))
