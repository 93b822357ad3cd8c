r"""Three steps on a planted token: values V, then attention w = W_KQ e_EOS, then V again, on the same n samples.

    logits = U V Σ_t e_{z_t} σ(x_tᵀ w)_t,   x_t = e_{z_t} + 1{t=ℓ} g        entries of E, U and the mark g are N(0, 1/d)

    1   V₁ = −∇_V L       at V = 0, w = 0: attention is uniform, all tokens of a sequence are written to its label
    2   w  = −∇_w L       the mark gains more than the tokens do, if d and n are large enough
    3   V₂ = −∇_V L       attention is hard: only what is attended to is written

Keys carry the mark, values do not: otherwise V₂ g counts how often each label came, and with about ln N + 5 samples a
label this bias alone makes half of the answers wrong, at any d.

Rates are those of the theory: the first so small that predictions stay uniform, the others so large that attention is
hard and V₁ is forgotten. So p̂ = 1/N throughout, and all is a table over the vocabulary.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from engram.embeddings import directions
from engram.models.one_head import OneHead
from engram.tasks.planted import PlantedToken, Sample

TEST_STEP, TEST = 1, 2000  # fresh sequences for the accuracy


@dataclass(frozen=True)
class Overlaps:
    """All that random directions have to say: products of tokens, of labels, and of tokens with the mark."""

    tokens: Float[Tensor, "N N"]  # e_i · e_j
    labels: Float[Tensor, "N N"]  # u_k · u_l
    mark: Float[Tensor, " N"]  # e_j · g
    marks: float  # g · g

    @classmethod
    def of(cls, N: int, d: int, seed: int) -> "Overlaps":
        E, U = (directions("gaussian/d", N, d, seed, f"planted.{name}", torch.float64) for name in "EU")
        g = directions("gaussian/d", 1, d, seed, "planted.mark", torch.float64)[0]
        return cls(E @ E.T, U @ U.T, E @ g, float(g @ g))


@dataclass(frozen=True)
class Attention:
    """w = Eᵀ a + b g."""

    a: Float[Tensor, " N"]
    b: float

    def scores(self, o: Overlaps) -> tuple[Float[Tensor, " N"], float]:
        """e_j · w and g · w."""
        return o.tokens @ self.a + self.b * o.mark, float(o.mark @ self.a) + self.b * o.marks


def scores(M: Float[Tensor, "N N"], o: Overlaps) -> Float[Tensor, "N N"]:
    """u_kᵀ V e_j for V = Uᵀ M E."""
    return o.labels @ M @ o.tokens


def first_values(sample: Sample, N: int) -> Float[Tensor, "N N"]:
    """Step 1, as M: each sequence gives 1/T to every token it has."""
    z = _tokens(sample)
    return _written(np.repeat(sample.labels, z.shape[1]), z.ravel(), N)


def attention(M: Float[Tensor, "N N"], sample: Sample, o: Overlaps) -> Attention:
    """Step 2: w = E[(1/T) Σ_t (v_t − v̄) x_t], where v_t is what more attention to t would give the label."""
    gain = scores(M, o)
    gain -= gain.mean(0)  # less what p̂ = 1/N gives to every label
    labels, z = torch.from_numpy(sample.labels), torch.from_numpy(_tokens(sample))
    v = gain[labels[:, None], z]
    v = (v - v.mean(1, keepdim=True)) / v.numel()
    return Attention(torch.zeros_like(o.mark).index_add(0, z.flatten(), v.flatten()), float(v[:, 0].sum()))


def attended(found: Attention, sample: Sample, o: Overlaps) -> tuple[Int[Tensor, " n"], Bool[Tensor, " n"]]:
    """The token that hard attention takes from each sequence, and whether it is the marked one."""
    of_tokens, of_mark = found.scores(o)
    z = torch.from_numpy(_tokens(sample))
    keys = of_tokens[z]
    keys[:, 0] += of_mark
    best = keys.argmax(1)
    return z[torch.arange(len(z)), best], best == 0


def last_values(found: Attention, sample: Sample, o: Overlaps) -> Float[Tensor, "N N"]:
    """Step 3, as M: each sequence gives all to the token that it attends to."""
    return _written(sample.labels, attended(found, sample, o)[0].numpy(), len(o.mark))


def _written(labels: Int[np.ndarray, " n"], tokens: Int[np.ndarray, " n"], N: int) -> Float[Tensor, "N N"]:
    """The mean of (1{y=k} − 1/N) 1{z=j} over pairs of label and token."""
    joint = np.bincount(labels * N + tokens, minlength=N * N).reshape(N, N) / len(labels)
    return torch.from_numpy(joint - joint.sum(0) / N)


def planted(task: PlantedToken, d: int, seed: int, model: OneHead) -> dict[str, float]:
    """Accuracy on fresh sequences: how often the label is right, or how often the mark is attended to."""
    o, sample = Overlaps.of(task.N, d, seed), task.sample(seed, 0, task.samples)
    found = attention(first_values(sample, task.N), sample, o)
    fresh = task.sample(seed, TEST_STEP, TEST)
    taken, marked = attended(found, fresh, o)
    if model.asked == "mark":
        return {"accuracy": float(marked.double().mean())}
    answers = scores(last_values(found, sample, o), o).argmax(0)
    return {"accuracy": float((answers[taken].numpy() == fresh.labels).mean())}


def _tokens(sample: Sample) -> Int[np.ndarray, "n T"]:
    """The marked token first."""
    return np.column_stack([sample.marked, sample.others])
