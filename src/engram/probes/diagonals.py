"""How strong each association of a memory is, and what its strength goes with (Fig. 7)."""

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.stats import spearmanr

from engram.models import Weights
from engram.probes.recall import scores_W_K1, scores_W_K2, scores_W_O2
from engram.tasks import Bigram

Strengths = Float[np.ndarray, " n"]


def strengths(w: Weights, triggers: Int[np.ndarray, " K"] | None = None) -> dict[str, Strengths]:
    """The diagonal of each score matrix: the right answer of every question."""
    asked = None if triggers is None else torch.as_tensor(triggers.copy(), device=w["E"].device)
    scores = {"W_O2": scores_W_O2(w), "W_K2": scores_W_K2(w, asked), "W_K1": scores_W_K1(w)}
    return {name: table.diagonal().cpu().double().numpy() for name, table in scores.items()}


@torch.no_grad()
def diagonals(w: Weights, first: Weights, task: Bigram) -> dict[str, float]:
    """Rank correlations of what was learned with what is seen more often, and how unevenly each memory is filled.

    Learned is the strength now minus that of the first weights, whose noise differs from memory to memory.

    W_K2.frequency    with the frequency of the token, π_u
    W_K1.position     with the position t: negative if late positions are weaker
    W_….variation     standard deviation over mean; no number where the mean is not positive: nothing was learned
    """
    triggers = task.fixed_triggers
    before = strengths(first, triggers)
    learned = {name: now - before[name] for name, now in strengths(w, triggers).items()}
    frequency = task.table.unigram if triggers is None else task.table.unigram[triggers]
    return {f"diagonal.{name}.variation": _variation(values) for name, values in learned.items()} | {
        "diagonal.W_K2.frequency": _rank_correlation(learned["W_K2"], frequency),
        "diagonal.W_O2.frequency": _rank_correlation(learned["W_O2"], task.table.unigram),
        "diagonal.W_K1.position": _rank_correlation(learned["W_K1"], np.arange(len(learned["W_K1"]))),
    }


def _variation(values: Strengths) -> float:
    return float(values.std() / values.mean()) if values.mean() > 0 else float("nan")


def _rank_correlation(strength: Strengths, other: np.ndarray) -> float:
    return float(spearmanr(strength, other).statistic) if len(strength) > 2 else float("nan")  # type: ignore[attr-defined]
