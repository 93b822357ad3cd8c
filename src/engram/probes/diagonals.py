"""How strong each association of a memory is, and what its strength goes with (Fig. 7)."""

from collections.abc import Iterable
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from scipy.stats import spearmanr

from engram.memory.stored import Stored
from engram.models.memories import memories_of
from engram.probes.probe import InductionProbe, Look
from engram.tasks import Bigram

Strengths = Float[np.ndarray, " n"]


class Diagonals(InductionProbe, name="probes.diagonals.Diagonals"):
    """Rank correlations of what was learned with what is seen more often, and how unevenly each memory is filled."""

    columns: ClassVar = ("diagonal.",)
    called: ClassVar = "diagonals"

    def measure(self, look: Look) -> dict[str, float]:
        assert isinstance(look.task, Bigram)
        return diagonals(look.memories(), memories_of(look.model, look.first(), look.task, look.seed), look.task)


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
    return float(spearmanr(strength, other).statistic) if len(strength) > 2 else float("nan")  # type: ignore[attr-defined]
