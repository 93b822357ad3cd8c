"""The spread of the margin of a Hebbian memory: scores γ_{z,y} = u_y · W e_z, injective f (f(z) = z), unit sphere."""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor

from engram.memory.rules import hebb, low_rank
from engram.theory.overlaps import chunks, problems
from engram.values import Rows, law

Scores = Float[Tensor, "problems N N"]


def slides_bound(N: float, d: int) -> float:
    """1/d + (N − 1)/d², the slides' bound #{f(z')=y}/d + #{f(z')≠y}/d² on Var γ; a wrong score has 2/d + (N − 2)/d²."""
    return 1 / d + (N - 1) / d**2


@law("margins.hebb_margins")
def hebb_margins(draws: int, seed: int, d: int = 32, N: int = 100) -> Rows:
    """Mean and variance of the margin over all z and y ≠ f(z) of `draws` memories, and the variance of wrong scores."""
    yield _spread(_hebb_scores(n, N, d, seed, f"margins.{i}") for i, n in enumerate(chunks(draws, N * max(N, d))))


@law("margins.low_rank_margins")
def low_rank_margins(draws: int, seed: int, d: int = 32, N: int = 100, m: int = 8) -> Rows:
    """The same for W = A Bᵀ of rank m, B frozen."""
    sizes = enumerate(chunks(draws, max(N, d) ** 2))
    yield _spread(_low_rank_scores(n, N, d, m, seed, f"margins.{i}") for i, n in sizes)


def _hebb_scores(count: int, N: int, d: int, seed: int, name: str) -> Scores:
    E, U = (problems("sphere", count, N, d, seed, f"{name}.{letter}") for letter in "EU")
    return E @ hebb(E, U).mT @ U.mT


def _low_rank_scores(count: int, N: int, d: int, m: int, seed: int, name: str) -> Scores:
    E, U = (problems("sphere", count, N, d, seed, f"{name}.{letter}") for letter in "EU")
    B = problems("gaussian", count, d, m, seed, f"{name}.B")
    return E @ B @ low_rank(E, U, B).mT @ U.mT


def _spread(portions: Iterable[Scores]) -> dict[str, float]:
    """Moments pooled over portions; every portion may have another number of problems."""
    moments = sum(_moments(scores) for scores in portions)
    assert isinstance(moments, Tensor)
    count, margin, margin2, wrong, wrong2 = moments.tolist()
    return {
        "mean": margin / count,
        "variance": margin2 / count - (margin / count) ** 2,
        "variance.wrong": wrong2 / count - (wrong / count) ** 2,
    }


def _moments(scores: Scores) -> Float[Tensor, " 5"]:
    others = ~torch.eye(scores.shape[-1], dtype=torch.bool)
    wrong = scores[:, others]
    margin = (scores.diagonal(dim1=1, dim2=2)[:, :, None] - scores)[:, others]
    return torch.stack(
        [torch.tensor(wrong.numel()).double(), margin.sum(), (margin**2).sum(), wrong.sum(), (wrong**2).sum()]
    )
