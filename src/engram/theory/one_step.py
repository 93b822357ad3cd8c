"""One population gradient step from W = 0 stores every pair, and filters what does not predict."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.embeddings import Law, directions
from engram.theory.lemmas import lemma1_gradient, lemma2_gradient
from engram.values import Rows, generator, law

ETA = 1.0


def clean_step(E: Float[Tensor, "N d"], U: Float[Tensor, "M d"], f: Int[Tensor, " N"]) -> Float[Tensor, "d d"]:
    """W1 = −η∇L(0) for z uniform and y = f(z), by Lemma 1 of Birth of a Transformer."""
    N, d = E.shape
    p_joint = torch.nn.functional.one_hot(f, len(U)).to(E.dtype) / N
    return -ETA * lemma1_gradient(E.new_zeros(d, d), E, U, p_joint)


def one_step_scores(f: Int[Tensor, " N"], M: int) -> Float[Tensor, "N M"]:
    """(η/N)(1{f(z)=k} − 1/M), the scores of W1 for orthonormal embeddings."""
    return ETA / len(f) * (torch.nn.functional.one_hot(f, M).to(torch.float64) - 1 / M)


def filtered_step(E: Float[Tensor, "N d"], U: Float[Tensor, "N d"]) -> Float[Tensor, "d d"]:
    """Eq. 12: W1 = (η/N) Σ_k u_k (e_k − ē)ᵀ; positions cancel."""
    return ETA / len(E) * U.T @ (E - E.mean(0))


def noisy_step(
    E: Float[Tensor, "N d"], P: Float[Tensor, "T d"], U: Float[Tensor, "N d"]
) -> tuple[Float[Tensor, "d d"], Float[Tensor, "N T N"]]:
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
    errors = {
        "error.scores": float(exact.abs().max()),
        "error.W1": float((W1 - filtered_step(E, U)).abs().max()),
    }
    for t in range(T):
        yield errors | _position(scores[:, t] * N / ETA)


def _position(scores: Float[Tensor, "N N"]) -> dict[str, float]:
    right = scores.diagonal()
    wrong = scores.masked_fill(torch.eye(len(scores), dtype=torch.bool), -torch.inf)
    accuracy = (scores.argmax(1) == torch.arange(len(scores))).double().mean()
    named = {"accuracy": accuracy, "right.mean": right.mean(), "right.least": right.min(), "wrong.most": wrong.max()}
    return {name: float(value) for name, value in named.items()}
