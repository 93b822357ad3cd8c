r"""Steps in every order, in the architecture of Appendix B.3.3: from zero only one order finds anything to learn.

    logits = U W_O2 W_V2 Σ_t e_{z_t} σ(z_tᵀ W_K2 e_{z_T})_t,    z_t = Σ_{s≤t} Φ1 e_{z_s} σ(p_{1:t}ᵀ W_K1 p_t)_s

A step writes W = −c ∇_W L on n sequences, c such that the best answer of a row stands 1 above the mean of the row.
Before its step a matrix is zero, or random with entries N(0, 1/d). Keys stand on the left, as in the appendix.
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
from engram.tasks.second_visit import Law, SecondVisit
from engram.values import Rows, law

MEMORIES = ("W_O2", "W_K2", "W_K1")
ORDERS = tuple(permutations(MEMORIES))  # the first is that of Theorem 3


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
