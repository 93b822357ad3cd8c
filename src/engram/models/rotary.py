r"""Positions as rotations: pairs of coordinates of a query or key turn by an angle that grows with the position.

    (q_j, q_{j+m}) ↦ (q_j cos a − q_{j+m} sin a,  q_{j+m} cos a + q_j sin a),    a = position · base^{−j/m},   j < m

Only the first 2m coordinates turn. A score depends on positions through their difference alone.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def rotated(
    q: Float[Tensor, "*n T d_h"], position: Int[Tensor, " T"], base: float, turning: int
) -> Float[Tensor, "*n T d_h"]:
    """Queries or keys at these positions; the first `turning` coordinates turn."""
    m = turning // 2
    rates = base ** -(torch.arange(m, dtype=torch.float64, device=q.device) / m)
    a = position[:, None] * rates  # T×m, in float64: far positions need the digits
    cos, sin = a.cos().to(q.dtype), a.sin().to(q.dtype)
    one, other, rest = q.split([m, m, q.shape[-1] - 2 * m], dim=-1)
    return torch.cat([one * cos - other * sin, other * cos + one * sin, rest], dim=-1)
