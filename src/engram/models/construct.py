r"""Weights written by hand: the induction head of Eq. 7–8, the ground truth of every probe.

W_K1 = β Σ_{t≥2} p_t p_{t−1}ᵀ            attend to the previous position
W_K2 = β Σ_{k∈Q} e_k (Φ1 e_k)ᵀ           attend to where the current token came just before,  Φ1 = W_O1 W_V1
W_O2 = Σ_k u_k (W_V2 e_k)ᵀ               write the token that is attended to
W_F  = Σ_{i,j} log π_b(j|i) u_j e_iᵀ     global knowledge; fixed triggers are left out
"""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from engram.models.simplified import Simplified
from engram.models.trace import Weights


def plant(model: Simplified, N: int, T: int, seed: int, sharpness: float) -> Weights:
    """Random embeddings and remappings of the model, with W_K1, W_K2 and W_O2 of Eq. 7 planted; β = sharpness.

    All N tokens are taken as possible triggers. W_F, if the model has one, is zero: see `plant_bigram`.
    """
    w = model.init(N, T, seed)
    E, P, U = w["E"], w["P"], w["U"]
    remapped = E @ w["W_V1"].T @ w["W_O1"].T  # row k: Φ1 e_k
    w["W_K1"] = sharpness * P[1:].T @ P[:-1]
    w["W_K2"] = sharpness * E.T @ remapped
    w["W_O2"] = U.T @ (E @ w["W_V2"].T)
    if "W_F" in w:
        w["W_F"] = torch.zeros_like(w["W_F"])
    return w


def plant_bigram(
    w: Weights,
    bigram: Float[np.ndarray, "N N"],
    least: float = 1e-4,
    left_out: Bool[np.ndarray, " N"] | None = None,
) -> Float[Tensor, "d d"]:
    """W_F of Eq. 8. Unseen bigrams have log 0 = −∞: probabilities are raised to `least` first.

    Each row is centred: the softmax does not see it, and random embeddings interfere far less.
    """
    log_pi_b = torch.from_numpy(np.log(np.maximum(bigram, least))).to(w["E"].dtype)
    log_pi_b -= log_pi_b.mean(dim=1, keepdim=True)
    if left_out is not None:
        log_pi_b[torch.from_numpy(left_out)] = 0.0
    return w["U"].T @ log_pi_b.T @ w["E"]
