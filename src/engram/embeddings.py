"""Random directions: the rows of E, U and P, and the entries of untrained matrices."""

from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from engram.errors import EngramError, did_you_mean
from engram.values import generator

Law = Literal["gaussian", "gaussian/d", "uniform/d", "sphere", "orthonormal", "signs"]
LAWS: tuple[Law, ...] = get_args(Law)


def directions(
    law: Law, n: int, d: int, seed: int, name: str, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "n d"]:
    """n rows in R^d, a pure function of (law, n, d, seed, name, dtype); the first rows do not depend on n.

    gaussian     entries N(0, 1)            row norm ≈ √d
    gaussian/d   entries N(0, 1/d)          row norm ≈ 1
    uniform/d    entries U(−1/√d, 1/√d)     row norm ≈ 1/√3  (torch's default for a linear layer)
    sphere       uniform on the unit sphere
    orthonormal  a random orthonormal system, n ≤ d
    signs        entries ±1
    """
    if law not in LAWS:
        raise EngramError(f"embeddings: unknown law {law!r}; {did_you_mean(law, LAWS)}allowed: {', '.join(LAWS)}")
    rng = generator(seed, f"init.{name}")
    real = np.float64 if dtype == torch.float64 else np.float32
    if law == "uniform/d":
        return torch.from_numpy((2 * rng.random((n, d), dtype=real) - 1) / real(d) ** 0.5)
    if law == "signs":
        return torch.from_numpy(np.where(rng.random((n, d), dtype=real) < 0.5, real(-1), real(1)))
    entries = rng.standard_normal((n, d), dtype=real)
    if law == "gaussian/d":
        entries /= real(d) ** 0.5
    if law == "sphere":
        entries /= np.linalg.norm(entries, axis=1, keepdims=True)
    return torch.from_numpy(_orthonormal(entries) if law == "orthonormal" else entries)


def _orthonormal(rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """Gram–Schmidt from the first row on, with the sign that makes each row point along its Gaussian."""
    n, d = rows.shape
    if n > d:
        raise EngramError(f"embeddings: {n} orthonormal rows do not fit into d={d}; use law='sphere', or a larger d")
    Q, R = np.linalg.qr(rows.T)
    return np.ascontiguousarray((Q * np.sign(np.diag(R))).T)
