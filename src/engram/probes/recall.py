"""How well each memory of a model recalls."""

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from engram.memory.stored import Stored
from engram.models.trace import Architecture
from engram.probes.probe import Look, Probe
from engram.tasks import Task
from engram.tasks.facts import FactTask


class Recall(Probe, name="probes.recall.Recall"):
    """Of each memory the share of questions that it answers right, or how far it is from the law that is right."""

    columns: ClassVar = ("recall.", "kl.")
    rhythm: ClassVar = "probe_every"

    def missing(self, task: Task, model: Architecture) -> str | None:
        return "a task of tokens; facts have a probe of their own" if isinstance(task, FactTask) else None

    def measure(self, look: Look) -> dict[str, float]:
        return recalls(look.memories())


def recalls(memories: Iterable[Stored]) -> dict[str, float]:
    """recall.NAME of memories with right answers, and of their parts; kl.NAME of those with a right law."""
    found = {}
    for memory in memories:
        if memory.has_answers:
            found[f"recall.{memory.name}"] = memory.recall()
            found |= {f"recall.{memory.name}.{part}": memory.only(at).recall() for part, at in memory.parts.items()}
        elif memory.right is not None:
            found[f"kl.{memory.name}"] = distance(memory)
    return found


def distance(memory: Stored) -> float:
    """Mean over what is asked of KL(right law ‖ softmax of the scores); 0 if the memory alone knows the law."""
    assert memory.right is not None
    right = memory.right.cpu().numpy()
    log_p = memory.scores().cpu().double().log_softmax(dim=1).numpy()
    log_right = np.log(np.where(right > 0, right, 1.0))
    kl, asked = np.sum(right * (log_right - log_p), axis=1), right.sum(axis=1) > 0
    return float(kl[asked].mean()) if asked.any() else float("nan")
