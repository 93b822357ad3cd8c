"""What can be stored, and how: linear, low-rank, MLP, Hopfield and dense memories with one small interface."""

from engram.memory.linear import Linear
from engram.memory.memory import Memory

__all__ = ["Linear", "Memory"]
