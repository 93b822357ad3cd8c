"""What the tests of memories share."""

import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

from engram.memory.memory import Name
from engram.memory.stored import Stored
from engram.models.memories import memories_of
from engram.models.trace import Architecture, Weights
from engram.tasks import Task

seeds = st.integers(0, 10_000)
few = settings(max_examples=25, deadline=None)


def close(a: Tensor, b: Tensor, tolerance: float = 1e-10) -> bool:
    return bool(((a - b).abs() <= tolerance).all())


def by_name(model: Architecture, w: Weights, task: Task) -> dict[str, Stored]:
    """The memories of a model under their names."""
    return {memory.name: memory for memory in memories_of(model, w, task)}


def shuffled(n: int, M: int, seed: int) -> dict[Name, Name]:
    """n keys, each with one of M values."""
    values = torch.randint(M, (n,), generator=torch.Generator().manual_seed(seed)).tolist()
    return dict(enumerate(values))
