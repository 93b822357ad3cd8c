"""Where attention goes: does each layer look where an induction head must look?"""

from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from engram.models import Trace
from engram.models.memories import two_layers
from engram.models.trace import Architecture
from engram.probes.attribution import share
from engram.probes.probe import Look, Probe
from engram.tasks import Batch, Task

SEQUENCES = 16


class Attention(Probe, name="probes.attention.Attention"):
    """Whether each layer looks where an induction head must look, on a few unseen sequences."""

    columns: ClassVar = ("attention.",)
    rhythm: ClassVar = "attention_every"

    def missing(self, task: Task, model: Architecture) -> str | None:
        asked = {"in_context", "first"}
        return None if two_layers(model) and asked <= set(task.groups) else "two layers of attention, and visits"

    def measure(self, look: Look) -> dict[str, float]:
        batch = look.unseen(SEQUENCES)
        return attention(look.forward(batch), batch)


def attention(trace: Trace, batch: Batch) -> dict[str, float]:
    """Shares of positions at which the largest attention is where the circuit needs it.

    previous     layer 1, at successors of triggers: attends to the position before
    induction    layer 2, in context: attends to a successor of an earlier visit of the current token
    chain        layer 1 attends to the position before, at the positions that layer 2 attends to in context
    """
    top1, top2 = _top(trace.attention1), _top(trace.attention2)
    T = batch.tokens.shape[1]
    looks_back = top1 == np.arange(T) - 1
    in_context = batch.groups["in_context"]
    after_trigger = np.roll(in_context | batch.groups["first"], 1, axis=1)
    after_trigger[:, 0] = False
    before = np.take_along_axis(batch.tokens, np.maximum(top2 - 1, 0), axis=1)
    follows_same = (before == batch.tokens) & (top2 >= 1)
    return {
        "attention.previous": share(looks_back, after_trigger),
        "attention.induction": share(follows_same, in_context),
        "attention.chain": share(np.take_along_axis(looks_back, top2, axis=1), in_context),
    }


def _top(pattern: Tensor) -> Int[np.ndarray, "B T"]:
    return torch.argmax(pattern, dim=-1).cpu().numpy()
