"""Tasks: frozen values that sample. Batch t of a run is a pure function of (task, seed, t)."""

from engram.tasks.association import Association
from engram.tasks.batch import Batch, Task
from engram.tasks.bigram import Bigram

__all__ = ["Association", "Batch", "Bigram", "Task"]
