r"""Each matrix of the induction head read as a memory: scores between what it may be asked and what it may answer.

    memory   asked         answers        score[asked, answer]       right answer
    W_O2     e_k           u_j            u_j · W_O2 W_V2 e_k        j = k
    W_K2     e_k           Φ1 e_j         e_k · W_K2 Φ1 e_j          j = k
    W_K1     p_t, t ≥ 2    p_s, s < T     p_t · W_K1 p_s             s = t − 1

Recall is the share of asked rows whose largest score is at the right answer.
"""

from typing import TypeGuard

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from engram.models import Simplified, Transformer, Weights

EARLY = 64  # "t < 64": the memory restricted to the first 64 positions


def two_layers(model: object) -> TypeGuard[Simplified | Transformer]:
    """Whether the model has the two layers of attention that the memories of an induction head live in."""
    return isinstance(model, Simplified) or (isinstance(model, Transformer) and len(model.layers) >= 2)


def as_simplified(model: Simplified | Transformer, w: Weights) -> Weights:
    """The first two layers of a transformer under the names of `Simplified`, so that the same probes read it.

    Query and key matrices count as one, W_Qᵀ W_K, over all heads; E and P are taken as the layers see them (normed).
    """
    if isinstance(model, Simplified):
        return w
    same = {name: w[name] for name in ("U", "W_V1", "W_O1", "W_V2", "W_O2")}
    keys = {f"W_K{i}": w[f"W_Q{i}"].T @ w[f"W_K{i}"] if f"W_Q{i}" in w else w[f"W_K{i}"] for i in (1, 2)}
    return same | keys | {"E": model.normed(w["E"]), "P": model.normed(w["P"])}


def answers_W_F(model: Simplified | Transformer, w: Weights) -> Float[Tensor, "N N"] | None:
    """Row k: the logits of the last feed-forward layer alone when it is shown e_k alone; None if there is none."""
    if isinstance(model, Simplified):
        return w["E"] @ w["W_F"].T @ w["U"].T if "W_F" in w else None
    last = len(model.layers)
    if f"W_F{last}" not in w:
        return None
    return model.normed(model.feed_forward(w, last, model.normed(w["E"]))) @ w["U"].T


def scores_W_O2(w: Weights) -> Float[Tensor, "N N"]:
    return w["E"] @ w["W_V2"].T @ w["W_O2"].T @ w["U"].T


def scores_W_K2(w: Weights, triggers: Int[Tensor, " K"] | None = None) -> Float[Tensor, "K K"]:
    """With fixed triggers only these ask and answer: they are all that the task ever stores."""
    E = w["E"] if triggers is None else w["E"][triggers]
    return E @ (E @ w["W_V1"].T @ w["W_O1"].T @ w["W_K2"].T).T


def scores_W_K1(w: Weights, positions: int | None = None) -> Float[Tensor, "T1 T1"]:
    """Row t−2 asks with p_t; all earlier and later positions compete."""
    P = w["P"][:positions]
    return P[1:] @ (P[:-1] @ w["W_K1"].T).T


def recall(scores: Float[Tensor, "n n"]) -> float:
    """Share of rows whose largest score lies on the diagonal; no number where nothing competes."""
    if len(scores) < 2:
        return float("nan")
    right = torch.arange(len(scores), device=scores.device)
    return int((scores.argmax(dim=1) == right).sum()) / len(scores)


def kl_W_F(answers: Float[Tensor, "N N"], bigram: Float[np.ndarray, "N N"], asked: Bool[np.ndarray, " N"]) -> float:
    """Mean over the asked tokens k of KL(π_b(·|k) ‖ softmax(answers of W_F to k)); 0 if W_F alone knows the bigram."""
    log_p = answers.cpu().double().log_softmax(dim=1).numpy()
    log_pi_b = np.log(np.where(bigram > 0, bigram, 1.0))
    kl = np.sum(bigram * (log_pi_b - log_p), axis=1)
    return float(kl[asked].mean()) if asked.any() else float("nan")


@torch.no_grad()
def memories(w: Weights, triggers: Int[np.ndarray, " K"] | None = None) -> dict[str, float]:
    """Recall of the three memories of the induction head."""
    q = None if triggers is None else torch.as_tensor(triggers.copy(), device=w["E"].device)
    return {
        "recall.W_O2": recall(scores_W_O2(w)),
        "recall.W_K2": recall(scores_W_K2(w, q)),
        "recall.W_K1": recall(scores_W_K1(w)),
        f"recall.W_K1.t<{EARLY}": recall(scores_W_K1(w, EARLY)),
    }
