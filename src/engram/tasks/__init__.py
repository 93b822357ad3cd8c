"""Tasks: frozen values that sample. Batch t of a run is a pure function of (task, seed, t)."""

from engram.tasks.association import Association
from engram.tasks.batch import Batch, Task
from engram.tasks.bigram import Bigram
from engram.tasks.composition import Composition
from engram.tasks.hops import Hops
from engram.tasks.noisy import NoisyRecall

__all__ = ["Association", "Batch", "Bigram", "Composition", "Hops", "NoisyRecall", "Task"]
