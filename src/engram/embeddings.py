"""Random directions: the rows of E, U and P, and the entries of untrained matrices."""

from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from engram.values import generator

Law = Literal["gaussian", "gaussian/d", "uniform/d"]


def directions(law: Law, n: int, d: int, seed: int, name: str) -> Float[Tensor, "n d"]:
    """n rows in R^d, a pure function of (law, n, d, seed, name).

    gaussian     entries N(0, 1)            row norm ≈ √d
    gaussian/d   entries N(0, 1/d)          row norm ≈ 1
    uniform/d    entries U(−1/√d, 1/√d)     row norm ≈ 1/√3  (torch's default for a linear layer)
    """
    rng = generator(seed, f"init.{name}")
    if law == "uniform/d":
        entries = (2 * rng.random((n, d), dtype=np.float32) - 1) / np.float32(d) ** 0.5
    else:
        entries = rng.standard_normal((n, d), dtype=np.float32)
    if law == "gaussian/d":
        entries /= np.float32(d) ** 0.5
    return torch.from_numpy(entries)
