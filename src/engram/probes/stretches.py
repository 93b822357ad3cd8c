r"""What a longer context is worth, on the same tokens for every seed and for both contexts.

1024 stretches of T/8 tokens of the text that is held out, drawn once. The model reads each of them twice:

    near    behind T/8 tokens of the text before it
    far     behind 7T/8 of them

    in-context score = worth.far − worth.near, their losses

`context.score` compares different tokens, late ones of some windows with early ones; on 128 windows of one's own that
differs by ±0.1 from seed to seed. Here which tokens are hard is no part of the score.
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Int

from engram.models import Architecture
from engram.probes.probe import Look, Probe
from engram.tasks import Batch, Task
from engram.tasks.windows import Windows
from engram.values import generator

STRETCHES = 1024
AT_ONCE = 128
CONTEXTS = {"near": 1, "far": 7}  # eighths of T


class Stretches(Probe, name="probes.stretches.Stretches"):
    """Losses of the same unseen tokens behind a short context and behind a long one."""

    columns: ClassVar = ("worth.",)
    called: ClassVar = "stretches"

    def missing(self, task: Task, model: Architecture) -> str | None:
        return None if isinstance(task, Windows) else "windows of text"

    def measure(self, look: Look) -> dict[str, float]:
        assert isinstance(look.task, Windows)
        starts = places(look.task)
        near, far = (_loss(look, behind(look.task, starts, eighths)) for eighths in CONTEXTS.values())
        return {"worth.near": near, "worth.far": far}


def places(task: Windows) -> Int[np.ndarray, " n"]:
    """Where the stretches begin in the text that is held out: the same for every seed."""
    return generator(0, "stretches").integers(task.T, len(task.text.held_out) - task.T // 8, STRETCHES)


def behind(task: Windows, starts: Int[np.ndarray, " n"], eighths: int) -> Batch:
    """Windows that end with the stretches, behind so many eighths of T."""
    eighth = task.T // 8
    context = eighths * eighth
    z = task.text.held_out[(starts - context - 1)[:, None] + np.arange(context + eighth + 1)]
    there = np.broadcast_to(np.arange(context + eighth) >= context, z[:, 1:].shape)
    return Batch(z[:, :-1], z[:, 1:], {"stretch": there, "rest": ~there})


def _loss(look: Look, batch: Batch) -> float:
    """Mean over the stretches; every part has as many tokens."""
    parts = [slice(first, first + AT_ONCE) for first in range(0, STRETCHES, AT_ONCE)]
    return float(np.mean([_loss_of_part(look, batch, part) for part in parts]))


def _loss_of_part(look: Look, batch: Batch, part: slice) -> float:
    groups = {name: mask[part] for name, mask in batch.groups.items()}
    some = Batch(batch.tokens[part], batch.targets[part], groups)
    return look.gradients(look.model, look.w, some, "all", ()).metrics["loss.stretch"]
