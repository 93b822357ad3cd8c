r"""Positions as rotations: pairs of coordinates of a query or key turn by an angle that grows with the position.

    (q_j, q_{j+m}) ↦ (q_j cos a − q_{j+m} sin a,  q_{j+m} cos a + q_j sin a),    a = position · base^{−j/m},   j < m

Only the first 2m coordinates turn. A score depends on positions through their difference alone.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

BASE = 10000.0


def angles(position: Int[Tensor, "*n T"], m: int, base: float = BASE) -> Float[Tensor, "*n T m"]:
    """In float64: far positions need the digits."""
    rates = base ** -(torch.arange(m, dtype=torch.float64, device=position.device) / m)
    return position[..., None] * rates


def rotated(
    q: Float[Tensor, "*n T d_h"], position: Int[Tensor, " T"], base: float, turning: int
) -> Float[Tensor, "*n T d_h"]:
    """Queries or keys of a model of others at these positions; the first `turning` coordinates turn."""
    a = angles(position, turning // 2, base)
    return _turned(q, a.cos().to(q.dtype), a.sin().to(q.dtype))


def turned_by_position(q: Float[Tensor, "*n T d_h"], position: Int[Tensor, "*m T"]) -> Float[Tensor, "*n T d_h"]:
    """Queries or keys of a model of ours, all coordinates; angles are rounded first, as in training.

    position    counted from 0; broadcasts against q
    """
    a = angles(position, q.shape[-1] // 2).to(q.dtype)
    return _turned(q, a.cos(), a.sin())


def _turned(q: Float[Tensor, "*n T d_h"], cos: Tensor, sin: Tensor) -> Float[Tensor, "*n T d_h"]:
    m = cos.shape[-1]
    one, other, rest = q.split([m, m, q.shape[-1] - 2 * m], dim=-1)
    return torch.cat([one * cos - other * sin, other * cos + one * sin, rest], dim=-1)
