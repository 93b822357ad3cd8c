"""Overlaps of random vectors: norms, inner products, remappings (Birth of a Transformer, Appendix A)."""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from engram.embeddings import Law, directions
from engram.values import Rows, law

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
