r"""The one-step estimate of W_O2 on the bigram task (Fig. 9): what averages of the context say about the next token.

    R1 = (1/N) Σ_k 1{ k = argmax_k' (W_V2 e_k')ᵀ (μ_k − μ) },      μ_k = E[x | y = k],  μ = E[x]
    x  = (1/t) Σ_{s≤t} W_V2 e_{z_s},   y = z_{t+1},   z_t a trigger after its first visit

x is linear in the relative frequencies of the tokens z_1 … z_t, so their averages are taken once, without embeddings.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from engram.embeddings import directions
from engram.tasks import Batch, Bigram
from engram.values import Rows, law


def summed_frequencies(batch: Batch, N: int) -> tuple[Float[Tensor, "N N"], Float[Tensor, " N"]]:
    """Row k: relative frequencies of z_1 … z_t, summed over the in-context positions t with y = k; and their number."""
    asked = batch.groups["in_context"]
    visits = np.cumsum(np.eye(N)[batch.tokens], axis=1)[asked]
    t = np.flatnonzero(asked) % asked.shape[1] + 1
    is_y = np.eye(N)[:, batch.targets[asked]]
    return torch.from_numpy(is_y @ (visits / t[:, None])), torch.from_numpy(is_y.sum(axis=1))


def class_scores(
    V: Float[Tensor, "N d"], sums: Float[Tensor, "N N"], counts: Float[Tensor, " N"]
) -> Float[Tensor, "N N"]:
    """Row k: V_k' · (μ_k − μ) for every k', V_k' = W_V2 e_k'; NaN where y = k was never seen."""
    means = sums / counts[:, None] - sums.sum(0) / counts.sum()
    return means @ V @ V.T


def one_step_recall(scores: Float[Tensor, "N N"]) -> float:
    """R1, the share of tokens k whose own score is the largest; a token that was never seen counts as wrong."""
    right = scores.nan_to_num(-torch.inf).argmax(1) == torch.arange(len(scores))
    return float((right & ~scores.isnan().any(1)).double().mean())


@law("one_step_bigram.recalls")
def one_step_recalls(draws: int, seed: int, d: int = 128, K: int = 5, T: int = 256, sequences: int = 32) -> Rows:
    """R1 from the first 1, 2, 4, … of `draws` batches. The batches depend on the seed only, so all widths see the same.

    E and W_V2 are those of `Simplified` at standard scale with this seed.
    """
    task = Bigram(K=K, T=T)
    E, W_V2 = directions("gaussian", task.N, d, seed, "E"), directions("uniform/d", d, d, seed, "W_V2")
    V = (E @ W_V2.T).double()
    sums, counts = V.new_zeros(task.N, task.N), V.new_zeros(task.N)
    for step in range(draws):
        more, seen = summed_frequencies(task.sample(seed, step, sequences), task.N)
        sums, counts, batches = sums + more, counts + seen, step + 1
        if batches.bit_count() == 1:
            recall, unseen = one_step_recall(class_scores(V, sums, counts)), int((counts == 0).sum())
            yield {"batches": batches, "tokens": batches * sequences * T, "recall": recall, "unseen": unseen}
