"""How well each memory of a model recalls, how strong its associations are, and what their strength goes with."""

from collections.abc import Iterable
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float

from engram.memory.stored import Stored
from engram.models.memories import memories_of
from engram.models.trace import Architecture
from engram.probes.probe import InductionProbe, Look, Probe
from engram.tasks import Bigram, Task
from engram.tasks.facts import FactTask

Strengths = Float[np.ndarray, " n"]


class Recall(Probe, name="probes.recall.Recall"):
    """Of each memory the share of questions that it answers right, or how far it is from the law that is right."""

    columns: ClassVar = ("recall.", "kl.")
    rhythm: ClassVar = "probe_every"

    def missing(self, task: Task, model: Architecture) -> str | None:
        return "a task of tokens; facts have a probe of their own" if isinstance(task, FactTask) else None

    def measure(self, look: Look) -> dict[str, float]:
        return recalls(look.memories())


class Diagonals(InductionProbe, name="probes.diagonals.Diagonals"):
    """Rank correlations of what was learned with what is seen more often, and how unevenly each memory is filled.

    Birth of a Transformer, Fig. 7.
    """

    columns: ClassVar = ("diagonal.",)
    called: ClassVar = "diagonals"

    def measure(self, look: Look) -> dict[str, float]:
        assert isinstance(look.task, Bigram)
        return diagonals(look.memories(), memories_of(look.model, look.first(), look.task, look.seed), look.task)


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


def strengths(memories: Iterable[Stored]) -> dict[str, Strengths]:
    """Of each memory with right answers their scores: the diagonal of its score matrix."""
    return {m.name: m.strengths().cpu().double().numpy() for m in memories if m.has_answers}


@torch.no_grad()
def diagonals(memories: Iterable[Stored], first: Iterable[Stored], task: Bigram) -> dict[str, float]:
    """What was learned is the strength now minus that of the first weights, whose noise differs between memories.

    W_K2.frequency    rank correlation with the frequency of the token, π_u
    W_K1.position     with the position t: negative if late positions are weaker
    W_….variation     standard deviation over mean; NaN where the mean is not positive: nothing was learned
    """
    before = strengths(first)
    learned = {name: now - before[name] for name, now in strengths(memories).items()}
    triggers, unigram = task.fixed_triggers, task.table.unigram
    frequency = unigram if triggers is None else unigram[triggers]
    return {f"diagonal.{name}.variation": _variation(values) for name, values in learned.items()} | {
        "diagonal.W_K2.frequency": _rank_correlation(learned["W_K2"], frequency),
        "diagonal.W_O2.frequency": _rank_correlation(learned["W_O2"], unigram),
        "diagonal.W_K1.position": _rank_correlation(learned["W_K1"], np.arange(len(learned["W_K1"]))),
    }


def _variation(values: Strengths) -> float:
    return float(values.std() / values.mean()) if values.mean() > 0 else float("nan")


def _rank_correlation(strength: Strengths, other: np.ndarray) -> float:
    from scipy.stats import spearmanr  # slow to import, and needed only here

    return float(spearmanr(strength, other).statistic) if len(strength) > 2 else float("nan")  # type: ignore[attr-defined]
