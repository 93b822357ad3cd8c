r"""One gradient step from W = 0 stores every pair, and filters what does not predict.

On the bigram task it gives an estimate of W_O2 (Fig. 9) from averages of the context:

    R1 = (1/N) Σ_k 1{ k = argmax_k' (W_V2 e_k')ᵀ (μ_k − μ) },      μ_k = E[x | y = k],  μ = E[x]
    x  = (1/t) Σ_{s≤t} W_V2 e_{z_s},   y = z_{t+1},   z_t a trigger after its first visit

x is linear in the relative frequencies of the tokens z_1 … z_t, so their averages are taken once, without embeddings.
"""

from math import exp, sqrt

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.special import ndtri
from torch import Tensor

from engram.embeddings import Law, directions
from engram.tasks import Batch, Bigram
from engram.theory.lemmas import Matrix, Outputs, Positions, lemma1_gradient, lemma2_gradient
from engram.values import Rows, generator, law

ETA = 1.0


def clean_step(E: Outputs, U: Float[Tensor, "M d"], f: Int[Tensor, " N"]) -> Matrix:
    """W1 = −η∇L(0) for z uniform and y = f(z), by Lemma 1 of Birth of a Transformer."""
    N, d = E.shape
    p_joint = torch.nn.functional.one_hot(f, len(U)).to(E.dtype) / N
    return -ETA * lemma1_gradient(E.new_zeros(d, d), E, U, p_joint)


def one_step_scores(f: Int[Tensor, " N"], M: int) -> Float[Tensor, "N M"]:
    """(η/N)(1{f(z)=k} − 1/M), the scores of W1 for orthonormal embeddings."""
    return ETA / len(f) * (torch.nn.functional.one_hot(f, M).to(torch.float64) - 1 / M)


def filtered_step(E: Outputs, U: Outputs) -> Matrix:
    """Eq. 12: W1 = (η/N) Σ_k u_k (e_k − ē)ᵀ; positions cancel."""
    return ETA / len(E) * U.T @ (E - E.mean(0))


def noisy_step(E: Outputs, P: Positions, U: Outputs) -> tuple[Matrix, Float[Tensor, "N T N"]]:
    """W1 = −η∇L(0) by Lemma 2 for x = e_y + p_t, y and t uniform, and its scores u_k · W1 (e_y + p_t) at [y, t, k]."""
    (N, d), T = E.shape, len(P)
    X = (E[:, None] + P).reshape(N * T, d)
    p_joint = torch.eye(N, dtype=E.dtype).repeat_interleave(T, 0) / (N * T)
    W1 = -ETA * lemma2_gradient(E.new_zeros(d, d), X, U, p_joint)
    return W1, (X @ W1.T @ U.T).reshape(N, T, N)


@law("one_step.clean")
def clean(draws: int, seed: int, N: int = 64, d: int = 256) -> Rows:
    """Inputs e_z: largest error of scores for orthonormal embeddings, accuracy for random ones; one row per draw."""
    for i in range(draws):
        f = torch.from_numpy(generator(seed, "one_step.f", i).permutation(N))
        scores = {law: _clean_scores(law, f, d, seed, i) for law in ("orthonormal", "gaussian/d")}
        error = (scores["orthonormal"] - one_step_scores(f, N)).abs().max()
        accuracy = (scores["gaussian/d"].argmax(1) == f).double().mean()
        yield {"error": float(error), "accuracy": float(accuracy)}


def _clean_scores(law: Law, f: Int[Tensor, " N"], d: int, seed: int, i: int) -> Float[Tensor, "N N"]:
    E, U = (directions(law, len(f), d, seed, f"one_step.{name}.{i}", torch.float64) for name in "EU")
    return E @ clean_step(E, U, f).T @ U.T


@law("one_step.noisy")
def noisy(draws: int, seed: int, N: int = 64, T: int = 32, d: int = 512) -> Rows:
    """Inputs e_y + p_t, one row per position t: accuracy, scores in units of η/N, and the errors of two formulas."""
    both, U = (
        directions("orthonormal", n, d, seed, f"noisy.{name}", torch.float64) for name, n in (("EP", N + T), ("U", N))
    )
    exact = noisy_step(both[:N], both[N:], U)[1] - one_step_scores(torch.arange(N), N)[:, None]
    E, P, U = (
        directions("gaussian/d", n, d, seed, f"noisy.random.{name}", torch.float64)
        for name, n in (("E", N), ("P", T), ("U", N))
    )
    W1, scores = noisy_step(E, P, U)
    errors = {"error.scores": float(exact.abs().max()), "error.W1": float((W1 - filtered_step(E, U)).abs().max())}
    for t in range(T):
        yield errors | _position(scores[:, t] * N / ETA)


def overlap_spreads(N: int, d: int) -> tuple[float, float]:
    """Standard deviations of a right and of a wrong score after the noisy step, random embeddings, in units of η/N.

    A right score is ‖u‖²‖e‖² + ‖u‖² e·p + …: 2/d for each norm and 1/d for the overlap with p_t. A wrong one has three
    overlaps of variance 1/d: of the outputs, of the inputs, and with p_t. Both have those with all other pairs, 2N/d².
    """
    others = 2 * N / d**2
    return sqrt(5 / d + others), sqrt(3 / d + others)


def extreme_scores(N: int, d: int) -> tuple[float, float]:
    """Where the least of N right scores and the largest of N(N−1) wrong ones lie, were all independent.

    Wrong scores are taken as normal, right ones as the exponential of a normal number: products of norms are skewed.
    """
    (right, wrong), blom = overlap_spreads(N, d), 0.375  # Blom's rule for the mean of an extreme
    least, most = (float(ndtri((n - blom) / (n + 1 - 2 * blom))) for n in (N, N * (N - 1)))
    return exp(-right * least) - 1 / N, -1 / N + wrong * most


def _position(scores: Float[Tensor, "N N"]) -> dict[str, float]:
    right = scores.diagonal()
    wrong = scores.masked_fill(torch.eye(len(scores), dtype=torch.bool), -torch.inf)
    accuracy = (scores.argmax(1) == torch.arange(len(scores))).double().mean()
    named = {"accuracy": accuracy, "right.mean": right.mean(), "right.least": right.min(), "wrong.most": wrong.max()}
    return {name: float(value) for name, value in named.items()}


def summed_frequencies(batch: Batch, N: int) -> tuple[Float[Tensor, "N N"], Float[Tensor, " N"]]:
    """Row k: relative frequencies of z_1 … z_t, summed over the in-context positions t with y = k; and their number."""
    asked = batch.groups["in_context"]
    visits = np.cumsum(np.eye(N)[batch.tokens], axis=1)[asked]
    t = np.flatnonzero(asked) % asked.shape[1] + 1
    is_y = np.eye(N)[:, batch.targets[asked]]
    return torch.from_numpy(is_y @ (visits / t[:, None])), torch.from_numpy(is_y.sum(axis=1))


def class_scores(V: Outputs, sums: Float[Tensor, "N N"], counts: Float[Tensor, " N"]) -> Float[Tensor, "N N"]:
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
