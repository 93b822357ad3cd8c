r"""Rotary positions: queries and keys are turned by their position, so that scores see only how far apart they are.

R_t turns the coordinates j and j + d_h/2 by the angle t ω_j,   ω_j = 10000^(−2j/d_h),   j = 0 … d_h/2 − 1
(R_t q) · (R_s k) = q · R_{s−t} k
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

BASE = 10000.0


def angles(position: Int[Tensor, "*n T"], d_h: int, dtype: torch.dtype) -> Float[Tensor, "*n T half"]:
    """t ω_j for every position and pair of coordinates."""
    half = torch.arange(d_h // 2, dtype=torch.float64, device=position.device)
    return (position[..., None].double() * BASE ** (-2 * half / d_h)).to(dtype)


def rotated(x: Float[Tensor, "*n T d_h"], position: Int[Tensor, "*m T"]) -> Float[Tensor, "*n T d_h"]:
    """R_t x_t: queries or keys at these positions, counted from 0; `position` broadcasts against x."""
    turn = angles(position, x.shape[-1], x.dtype)
    cos, sin, (a, b) = turn.cos(), turn.sin(), x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)
