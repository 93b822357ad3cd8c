r"""Three steps on the real bigram task: one gradient step on each memory of `Simplified`, without Theorem 3's ideals.

Real bigrams, K triggers, every in-context position, the whole residual stream in queries, keys, values and logits,
random embeddings (unit scale) and n sequences. A step writes W = −c ∇_W L, and c is chosen by what comes out: the best
key (or output) of a token stands `sharpness` above the mean one. While the steps are taken this is 1, as in the
appendix, where predictions stay near uniform and the second softmax near linear; for the accuracy the key matrices are
sharpened.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from engram.laws.orders import MEMORIES, ORDERS
from engram.laws.steps import spread, table_recalls
from engram.learning.fast import applies
from engram.learning.paths import PATHS
from engram.models import Simplified, Weights
from engram.tasks import Bigram, Task
from engram.values import Rows, law

AT_ONCE, TEST = 256, 256  # sequences
SHARPNESS = (3, 10, 30, 100)


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
    for step, start in enumerate(range(0, n, AT_ONCE)):
        batch = task.sample(seed, step, min(AT_ONCE, n - start))
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
