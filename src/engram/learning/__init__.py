"""Learning: a Plan, the loop that follows it, and the gradients it follows on one of two paths."""

from engram.learning.loop import Diverged, Moment, train
from engram.learning.paths import PATHS, choose_path
from engram.learning.plan import SGD, Adam, FreshBatch, FullBatch, Muon, Plan, Stage

__all__ = [
    "PATHS",
    "SGD",
    "Adam",
    "Diverged",
    "FreshBatch",
    "FullBatch",
    "Moment",
    "Muon",
    "Plan",
    "Stage",
    "choose_path",
    "train",
]
