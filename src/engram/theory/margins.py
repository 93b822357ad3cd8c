"""Overlaps of random vectors (Birth of a Transformer, Appendix A), and how they spread the margin of a Hebbian memory.

Scores are γ_{z,y} = u_y · W e_z, f is injective (f(z) = z), embeddings lie on the unit sphere.
"""

from collections.abc import Callable, Iterable, Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from engram.embeddings import Law, directions
from engram.memory.rules import hebb, low_rank
from engram.values import Rows, law

Scores = Float[Tensor, "problems N N"]
ENTRIES_AT_ONCE = 2**22

# mean and variance of each overlap, for entries N(0, 1/d); `sphere` is for two points of the unit sphere
OVERLAPS: dict[str, tuple[float, Callable[[int], float]]] = {
    "‖u‖²": (1, lambda d: 2 / d),
    "u·v": (0, lambda d: 1 / d),
    "u·v, sphere": (0, lambda d: 1 / d),
    "‖Wx‖²/‖x‖²": (1, lambda d: 2 / d),
    "x·Wx": (0, lambda d: (d + 2) / d**2),
}


def printed_variance(d: int) -> float:
    """d⁻³(3d + d(d−1)/2), Var x·Wx as printed in Appendix A, which counts only half of the d(d−1) pairs i ≠ j."""
    return (3 * d + d * (d - 1) / 2) / d**3


def problems(law: Law, count: int, n: int, d: int, seed: int, name: str) -> Float[Tensor, "count n d"]:
    """n rows in R^d for each of `count` independent problems."""
    return directions(law, count * n, d, seed, name, torch.float64).reshape(count, n, d)


def chunks(draws: int, entries: int) -> Iterator[int]:
    """`draws` in portions of at most ENTRIES_AT_ONCE numbers, when one draw needs `entries`."""
    most = max(1, ENTRIES_AT_ONCE // entries)
    for begun in range(0, draws, most):
        yield min(most, draws - begun)


def doublings(least: int, most: int) -> Iterator[int]:
    """least, 2·least, 4·least, … up to `most`."""
    return (least << i for i in range((most // least).bit_length()))


def overlaps(n: int, d: int, seed: int, name: str) -> dict[str, Float[Tensor, " n"]]:
    """n draws of each quantity of OVERLAPS."""
    u, v, x = problems("gaussian/d", 3, n, d, seed, f"{name}.u")
    a, b = problems("sphere", 2, n, d, seed, f"{name}.a")
    W = problems("gaussian/d", n, d, d, seed, f"{name}.W")
    Wx = torch.einsum("nij,nj->ni", W, x)
    norm = (x * x).sum(1)
    found = ((u * u).sum(1), (u * v).sum(1), (a * b).sum(1), (Wx * Wx).sum(1) / norm, (x * Wx).sum(1))
    return dict(zip(OVERLAPS, found, strict=True))


@law("overlaps.variances")
def variances(draws: int, seed: int, d: int = 64) -> Rows:
    """Mean and variance of each overlap over `draws` independent vectors and matrices."""
    parts = [overlaps(n, d, seed, f"overlaps.{i}") for i, n in enumerate(chunks(draws, d * d))]
    row = {}
    for name in OVERLAPS:
        values = torch.cat([part[name] for part in parts])
        row |= {f"mean {name}": float(values.mean()), f"variance {name}": float(values.var())}
    yield row


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
