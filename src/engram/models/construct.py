r"""Weights written by hand.

The induction head of "Birth of a Transformer", Eq. 7–8, the ground truth of every probe:

    W_K1 = β Σ_{t≥2} p_t p_{t−1}ᵀ            attend to the previous position
    W_K2 = β Σ_{k∈Q} e_k (Φ1 e_k)ᵀ           attend to where the current token came just before,  Φ1 = W_O1 W_V1
    W_O2 = Σ_k u_k (W_V2 e_k)ᵀ               write the token that is attended to
    W_F  = Σ_{i,j} log π_b(j|i) u_j e_iᵀ     global knowledge; fixed triggers are left out

`Factual` in the constructions of Theorems 3 and 4 (Nichani, Lee, Bietti). Both filter by heads. Head h owns a set M of
subjects, or of relations, and attends to its member in the prompt, or else to EOS, whose value is zero:

    W_K[h]ᵀ W_Q[h] = β (Σ_{z∈M} e_z + ½ e_EOS) e_EOSᵀ          rank one; W_V[h] ⟂ e_EOS

attention only     W_O[:, h] = (d/d_h) Σ_{z∈M} Σ_{a∈A_z} u_a (W_V[h] e_z)ᵀ, W_V[h] random: the logits count in how many
                   of A_s and A_r an answer lies: 2 for the right one, 1 for many, 0 for most
attention + MLP    heads only copy, x = P e_s + P' e_r with random projections on orthogonal halves, ⌈d/2d_h⌉ heads for
                   each set of members; the MLP stores (s, r) → a by random features of degree (1, 1):
                   W_F = c Σ_facts u_a (W_I P e_s ⊙ W_I P' e_r)ᵀ, W_I Gaussian
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from engram.embeddings import directions
from engram.errors import EngramError
from engram.models.factual import Factual
from engram.models.simplified import Simplified
from engram.models.trace import Weights
from engram.tasks.book import MISSING, Book

SHARPNESS = 400.0  # β: a score of ¼ between member and EOS is e^{−100}
ABOVE_COPY = 100.0  # how far what the MLP adds outweighs x itself


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
    w: Weights, bigram: Float[np.ndarray, "N N"], least: float = 1e-4, left_out: Bool[np.ndarray, " N"] | None = None
) -> Float[Tensor, "d d"]:
    """W_F of Eq. 8. Unseen bigrams have log 0 = −∞: probabilities are raised to `least` first.

    Each row is centred: the softmax does not see it, and random embeddings interfere far less.
    """
    log_pi_b = torch.from_numpy(np.log(np.maximum(bigram, least))).to(w["E"].dtype)
    log_pi_b -= log_pi_b.mean(dim=1, keepdim=True)
    if left_out is not None:
        log_pi_b[torch.from_numpy(left_out)] = 0.0
    return w["U"].T @ log_pi_b.T @ w["E"]


@dataclass(frozen=True)
class Construction:
    """A model with its weights, and the tokens that each head owns."""

    model: Factual
    weights: Weights
    sets: Sequence[Sequence[int]]


def construct_attention_only(book: Book, d: int, d_h: int, members: int, seed: int) -> Construction:
    """The construction of Theorem 3: heads of width d_h, each with `members` tokens."""
    sets = [*_sets(range(book.S), members), *_sets(range(book.S, book.S + book.R), members)]
    model = Factual(d=d, heads=len(sets), d_h=d_h, m=0, answers=book.answers, embeddings="sphere")
    w = _filtered(model, book, sets, seed)
    answers = _answer_sets(book)
    for h, owned in enumerate(sets):
        rows = slice(h * d_h, (h + 1) * d_h)
        stored = answers[owned] @ w["U"]  # Σ_{a∈A_z} u_a for each member
        w["W_O"][:, rows] = (d / d_h) * stored.T @ (w["E"][owned] @ w["W_V"][rows].T)
    return Construction(model, w, sets)


def construct_with_mlp(book: Book, d: int, d_h: int, members: int, m: int, seed: int) -> Construction:
    """The construction of Theorem 4: for each set of members as many heads as carry d/2 directions."""
    half = d // 2
    copies = ceil(half / d_h)
    kinds = [_sets(range(book.S), members), _sets(range(book.S, book.S + book.R), members)]
    sets = [owned for kind in kinds for owned in kind for _ in range(copies)]
    model = Factual(d=d, heads=len(sets), d_h=d_h, m=m, answers=book.answers, embeddings="sphere")
    w = _filtered(model, book, sets, seed)
    P = [_orthogonal_to(w["E"][book.EOS], half, seed, f"construct.P{kind}") * sqrt(d / half) for kind in (0, 1)]
    for h in range(len(sets)):
        _copy(w, model, h, P, kind=int(h >= len(kinds[0]) * copies), first=h % copies * d_h)
    s, r, a = (torch.from_numpy(part) for part in book.known.T)
    W_I = directions("gaussian", m, d, seed, "construct.W_I", torch.float64)
    features = (w["E"][s] @ P[0].T @ W_I[:, :half].T) * (w["E"][book.S + r] @ P[1].T @ W_I[:, half : 2 * half].T)
    w |= {"W_I": W_I, "b": torch.zeros(m, dtype=torch.float64)}
    w["W_F"] = ABOVE_COPY / m * w["U"][a].T @ features
    return Construction(model, w, sets)


def _copy(w: Weights, model: Factual, h: int, P: Sequence[Float[Tensor, "half d"]], kind: int, first: int) -> None:
    """Head h hands on d_h directions of the projection of its kind, from `first` on, to that kind's half of x."""
    part, start = P[kind][first : first + model.d_h], h * model.d_h
    w["W_V"][start : start + model.d_h] = 0
    w["W_V"][start : start + len(part)] = part
    at = torch.arange(len(part))
    w["W_O"][kind * len(P[0]) + first + at, start + at] = 1


def _filtered(model: Factual, book: Book, sets: Sequence[list[int]], seed: int) -> Weights:
    """E, U, and heads that attend to their member; W_V random and orthogonal to EOS, W_O zero."""
    if model.d_h > model.d - 1:
        raise EngramError(f"d_h: at most d − 1 = {model.d - 1} directions are orthogonal to EOS; got {model.d_h}")
    w = {name: value.double() for name, value in model.init(book.N, book.T, seed).items()}
    e_eos = w["E"][book.EOS]
    for name in ("W_Q", "W_K", "W_O"):
        w[name].zero_()
    for h, owned in enumerate(sets):
        first = h * model.d_h
        w["W_Q"][first] = SHARPNESS * sqrt(model.d_h) * e_eos
        w["W_K"][first] = w["E"][owned].sum(0) + e_eos / 2
        w["W_V"][first : first + model.d_h] = _orthogonal_to(e_eos, model.d_h, seed, f"construct.V{h}")
    return w


def _orthogonal_to(e: Float[Tensor, " d"], n: int, seed: int, name: str) -> Float[Tensor, "n d"]:
    """n orthonormal rows, random among those orthogonal to e."""
    rows = directions("gaussian", n, len(e), seed, name, torch.float64)
    return torch.linalg.qr((rows - torch.outer(rows @ e, e) / (e @ e)).T).Q.T


def _sets(tokens: range, members: int) -> list[list[int]]:
    return [list(tokens[i : i + members]) for i in range(0, len(tokens), members)]


def _answer_sets(book: Book) -> Float[Tensor, "tokens A"]:
    """1{a ∈ A_z} for all subjects and relations z."""
    found = torch.zeros(book.S + book.R, book.answers, dtype=torch.float64)
    for s, r in np.argwhere(book.table != MISSING):
        found[[s, book.S + r], book.table[s, r]] = 1
    return found
