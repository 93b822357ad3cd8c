r"""Three steps on a planted token: values V, then attention w = W_KQ e_EOS, then V again, on the same n samples.

    logits = U V Σ_t e_{z_t} σ(x_tᵀ w)_t,   x_t = e_{z_t} + 1{t=ℓ} g        entries of E, U and the mark g are N(0, 1/d)

    1   V₁ = −∇_V L       at V = 0, w = 0: attention is uniform, all tokens of a sequence are written to its label
    2   w  = −∇_w L       the mark gains more than the tokens do, if d and n are large enough
    3   V₂ = −∇_V L       attention is hard: only what is attended to is written

Keys carry the mark, values do not: otherwise V₂ g counts how often each label occurs, and with about ln N + 5 samples a
label this bias alone makes half of the answers wrong, at any d.

Rates are those of the theory: the first so small that predictions stay uniform, the others so large that attention is
hard and V₁ is forgotten. So p̂ = 1/N throughout, and only counts of (label, token) matter to V.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from engram.embeddings import directions
from engram.models.stores import OneHead
from engram.tasks.planted import PlantedToken, Sample

TEST_STEP, TEST = 1, 2000  # fresh sequences for the accuracy
AT_ONCE = 2**23  # tokens whose gains are looked up together


@dataclass(frozen=True)
class Directions:
    """Embeddings of the tokens, of the labels, and the mark."""

    E: Float[Tensor, "N d"]
    U: Float[Tensor, "N d"]
    g: Float[Tensor, " d"]

    @classmethod
    def drawn(cls, N: int, d: int, seed: int) -> "Directions":
        E, U = (directions("gaussian/d", N, d, seed, f"planted.{name}", torch.float64) for name in "EU")
        return cls(E, U, directions("gaussian/d", 1, d, seed, "planted.mark", torch.float64)[0])


def _parts(sample: Sample) -> Iterator[Sample]:
    """A few sequences at a time."""
    for rows in np.array_split(np.arange(len(sample.labels)), -(-sample.tokens.size // AT_ONCE)):
        yield Sample(sample.tokens[rows], sample.labels[rows])


def first_step(sample: Sample, at: Directions) -> Float[Tensor, "d d"]:
    """Step 1: each sequence gives 1/T to every token it has."""
    counts = np.zeros((len(at.E), len(at.E)), dtype=np.int64)
    for part in _parts(sample):
        counts += _counts(np.repeat(part.labels, part.tokens.shape[1]), part.tokens.ravel(), at)
    return _written(counts / sample.tokens.size, at)


def second_step(V: Float[Tensor, "d d"], sample: Sample, at: Directions) -> Float[Tensor, " d"]:
    """Step 2: w = E[(1/T) Σ_t (v_t − v̄) x_t], where v_t is what more attention to t would give the label."""
    of_tokens, of_mark = second_step_parts(V, sample, at)
    return of_tokens @ at.E + of_mark * at.g


def second_step_parts(V: Float[Tensor, "d d"], sample: Sample, at: Directions) -> tuple[Float[Tensor, " N"], float]:
    """How much of each e_z, and of g, is in w."""
    gain = at.U @ V @ at.E.T
    gain -= gain.mean(0)  # less what p̂ = 1/N gives to every label
    on_tokens, on_mark = torch.zeros(len(at.E), dtype=gain.dtype), 0.0
    for part in _parts(sample):
        z = torch.from_numpy(part.tokens)
        v = gain[torch.from_numpy(part.labels)[:, None], z]
        v -= v.mean(1, keepdim=True)
        on_tokens.index_add_(0, z.flatten(), v.flatten())
        on_mark += float(v[:, 0].sum())
    return on_tokens / sample.tokens.size, on_mark / sample.tokens.size


def hard_attention(
    w: Float[Tensor, " d"], sample: Sample, at: Directions
) -> tuple[Int[Tensor, " n"], Bool[Tensor, " n"]]:
    """The token that hard attention takes from each sequence, and whether it is the marked one."""
    of_tokens, of_mark, best = at.E @ w, at.g @ w, []
    for part in _parts(sample):
        scores = of_tokens[torch.from_numpy(part.tokens)]
        scores[:, 0] += of_mark
        best.append(scores.argmax(1))
    places = torch.cat(best)
    return torch.from_numpy(sample.tokens)[torch.arange(len(places)), places], places == 0


def third_step(w: Float[Tensor, " d"], sample: Sample, at: Directions) -> Float[Tensor, "d d"]:
    """Step 3: each sequence gives all to the token that it attends to."""
    return _written(_counts(sample.labels, hard_attention(w, sample, at)[0].numpy(), at) / len(sample.labels), at)


def _counts(labels: Int[np.ndarray, " n"], tokens: Int[np.ndarray, " n"], at: Directions) -> Int[np.ndarray, "N N"]:
    N = len(at.E)
    return np.bincount(labels * N + tokens, minlength=N * N).reshape(N, N)


def _written(joint: Float[np.ndarray, "N N"], at: Directions) -> Float[Tensor, "d d"]:
    """Uᵀ M E, where M is the mean of (1{y=k} − 1/N) 1{z=j}: `joint` less what p̂ = 1/N expects."""
    return at.U.T @ torch.from_numpy(joint - joint.sum(0) / len(at.E)) @ at.E


def success_rates(task: PlantedToken, d: int, seed: int) -> dict[str, float]:
    """On fresh sequences, how often the label is right, and how often the mark is attended to."""
    at, sample = Directions.drawn(task.N, d, seed), task.training_sample(seed)
    fresh = task.sample(seed, TEST_STEP, TEST)
    w = second_step(first_step(sample, at), sample, at)
    taken, marked = hard_attention(w, fresh, at)
    answers = (at.U @ third_step(w, sample, at) @ at.E.T).argmax(0)
    right = (answers[taken].numpy() == fresh.labels).mean()
    return {"label": float(right), "mark": float(marked.double().mean())}


def learn_planted_token(task: PlantedToken, d: int, seed: int, model: OneHead) -> dict[str, float]:
    """What a Search asks at each width."""
    return {"accuracy": success_rates(task, d, seed)[model.asked]}
