"""What the tests of memories share."""

import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

from engram.memory.memory import Name

seeds = st.integers(0, 10_000)
few = settings(max_examples=25, deadline=None)


def close(a: Tensor, b: Tensor, tolerance: float = 1e-10) -> bool:
    return bool(((a - b).abs() <= tolerance).all())


def shuffled(n: int, M: int, seed: int) -> dict[Name, Name]:
    """n keys, each with one of M values."""
    values = torch.randint(M, (n,), generator=torch.Generator().manual_seed(seed)).tolist()
    return dict(enumerate(values))
