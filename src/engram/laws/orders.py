r"""Steps in every order, in the architecture of Appendix B.3.3: from zero only one order finds anything to learn.

    logits = U W_O2 W_V2 Σ_t e_{z_t} σ(z_tᵀ W_K2 e_{z_T})_t,    z_t = Σ_{s≤t} Φ1 e_{z_s} σ(p_{1:t}ᵀ W_K1 p_t)_s

A step writes W = −c ∇_W L on n sequences, c such that the best answer of a row stands 1 above the mean of the row.
Before its step a matrix is zero, or random with entries N(0, 1/d). Keys stand on the left, as in the appendix.

The same on the real bigram task: one gradient step on each memory of `Simplified`, without Theorem 3's ideals. Real
bigrams, K triggers, every in-context position, the whole residual stream in queries, keys, values and logits, random
embeddings (unit scale) and n sequences. Here too c is chosen by what comes out: the best key (or output) of a token
stands `sharpness` above the mean one. While the steps are taken this is 1, as in the appendix, where predictions stay
near uniform and the second softmax near linear; for the accuracy the key matrices are sharpened.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from engram.embeddings import directions
from engram.errors import EngramError
from engram.laws.steps import AT_ONCE, Embedded, Matrix, Steps, logits, sampled, scores, spread, table_recalls
from engram.learning.fast import applies
from engram.learning.paths import PATHS
from engram.models import Simplified, Weights
from engram.tasks import Bigram, Task
from engram.tasks.second_visit import Law, SecondVisit
from engram.values import Rows, law

MEMORIES = ("W_O2", "W_K2", "W_K1")
ORDERS = tuple(permutations(MEMORIES))  # the first is that of Theorem 3
SEQUENCES, TEST = 256, 256  # at a time; for the accuracy
SHARPNESS = (3, 10, 30, 100)


def expected_loss(embedded: Embedded, w: Steps, law: Law) -> Float[Tensor, ""]:
    found, labels = logits(embedded, w, law.tokens), torch.from_numpy(law.labels)
    each = torch.nn.functional.cross_entropy(found, labels, reduction="none")
    return torch.from_numpy(law.p) @ each


def gradient(embedded: Embedded, w: Steps, law: Law, name: str) -> Matrix:
    leaf, total = getattr(w, name).detach().requires_grad_(), torch.zeros_like(getattr(w, name))
    for rows in np.array_split(np.arange(len(law.p)), -(-law.tokens.size * embedded.E.shape[1] // AT_ONCE)):
        part = Law(law.tokens[rows], law.labels[rows], law.p[rows])
        total += torch.autograd.grad(expected_loss(embedded, replace(w, **{name: leaf}), part), leaf)[0]
    return total


def take_steps(embedded: Embedded, law: Law, order: Sequence[str], first: Steps) -> Steps:
    """Take one step on each matrix of `order`; a zero gradient leaves a matrix zero."""
    w = first
    for name in order:
        w = replace(w, **{name: -gradient(embedded, w, law, name)})
        above = spread(scores(embedded, w)[name])
        w = replace(w, **{name: getattr(w, name) * (1 / above if above else 0.0)})
    return w


def initial_matrices(d: int, seed: int, first: str) -> Steps:
    """All zero, or all random with entries N(0, 1/d)."""
    if first not in ("zero", "random"):
        raise EngramError(f"first: unknown {first!r}; allowed: zero, random")
    if first == "zero":
        return Steps(*(torch.zeros(d, d, dtype=torch.float64) for _ in MEMORIES))
    return Steps(*(directions("gaussian/d", d, d, seed, f"first.{name}", torch.float64) for name in MEMORIES))


@law("learning.orders.in_order")
def in_order(draws: int, seed: int, N: int, T: int, d: int, n: int, order: str, first: str) -> Rows:
    """Recall of each memory after the steps in this order ("W_O2 W_K2 W_K1" is that of Theorem 3).

    Each row has its own embeddings and data.
    """
    names = tuple(order.split())
    if names not in ORDERS:
        raise EngramError(f"order: must name each of {', '.join(MEMORIES)} once; got {order!r}")
    for own in (seed + (draw << 32) for draw in range(draws)):
        embedded, law = Embedded.random(N, T, d, own), sampled(SecondVisit(N=N, T=T), own, 0, n)
        w = take_steps(embedded, law, names, initial_matrices(d, own, first))
        written = {f"written.{name}": float(getattr(w, name).any()) for name in MEMORIES}
        yield {f"recall.{name}": value for name, value in table_recalls(scores(embedded, w)).items()} | written


def tables(w: Weights) -> dict[str, Float[Tensor, "n m"]]:
    """Row by row what competes: u_k for each e_j, Φ1 e_i for each query e_j, p_s for each query p_t."""
    E, P, U = w["E"], w["P"], w["U"]
    return {
        "W_O2": E @ w["W_V2"].T @ w["W_O2"].T @ U.T,
        "W_K2": E @ w["W_K2"] @ (E @ w["W_V1"].T @ w["W_O1"].T).T,
        "W_K1": P @ w["W_K1"] @ P.T,
    }


def sharpen(w: Weights, name: str, sharpness: float) -> Tensor:
    """W scaled so that the best entry of a row is `sharpness` above its mean, averaged over rows; zero stays zero."""
    above = spread(tables(w)[name])
    return w[name] * (sharpness / above if above > 0 else 0.0)


def take_real_steps(task: Task, model: Simplified, seed: int, n: int, order: Sequence[str], first: Weights) -> Weights:
    """Take one step on each matrix of `order`, each on the same n sequences, from the given initial values."""
    w = model.init(task.N, task.T, seed) | first
    for name in order:
        w[name] = -mean_gradient(task, model, w, seed, n, name)
        w[name] = sharpen(w, name, 1.0)
    return w


def mean_gradient(task: Task, model: Simplified, w: Weights, seed: int, n: int, name: str) -> Float[Tensor, "d d"]:
    """∇ of the mean loss over the in-context positions of n sequences."""
    path = PATHS["fast" if applies(model, (name,), "cpu") else "reference"]
    total, positions = torch.zeros_like(w[name]), 0
    for step, start in enumerate(range(0, n, SEQUENCES)):
        batch = task.sample(seed, step, min(SEQUENCES, n - start))
        measured = path(model, w, batch, "in_context", (name,))
        total += measured.positions * measured.gradients[name]
        positions += measured.positions
    return total / max(1, positions)


def in_context_accuracy(task: Task, model: Simplified, w: Weights, seed: int, sharpness: float) -> float:
    """In-context accuracy on fresh sequences, with both key matrices sharpened."""
    path = PATHS["fast" if applies(model, (), "cpu") else "reference"]
    sharp = w | {name: sharpen(w, name, sharpness) for name in ("W_K1", "W_K2")}
    batch = task.sample(seed, 2**20, TEST)
    return path(model, sharp, batch, "in_context", ()).metrics["accuracy.in_context"]


@law("learning.real_steps.three_steps")
def three_steps(draws: int, seed: int, d: int, n: int, K: int = 5, T: int = 128) -> Rows:
    """One row: recall of each memory after the steps of Theorem 3 on the bigram task, and accuracy by sharpness."""
    task, model = Bigram(K=K, T=T), Simplified(d=d, scale="unit")
    w = take_real_steps(task, model, seed, n, ORDERS[0], zeros(d))
    row = {f"recall.{name}": value for name, value in table_recalls(tables(w)).items()}
    yield row | {f"accuracy.{sharp}": in_context_accuracy(task, model, w, seed, sharp) for sharp in SHARPNESS}


def zeros(d: int) -> Weights:
    return {name: torch.zeros(d, d) for name in MEMORIES}
