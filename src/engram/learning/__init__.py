"""Learning: a Plan, the loop that follows it, and the gradients it follows."""

from engram.learning.loop import Diverged, Moment, train
from engram.learning.plan import SGD, Adam, Plan

__all__ = ["SGD", "Adam", "Diverged", "Moment", "Plan", "train"]
