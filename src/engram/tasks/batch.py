"""What a task gives, and what a task is."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int


@dataclass(frozen=True)
class Batch:
    """Sequences and what to predict at each position.

    tokens      z_1 … z_T
    targets     z_2 … z_{T+1}, aligned with tokens
    groups      named masks over positions; losses and accuracies are reported for each
    """

    tokens: Int[np.ndarray, "B T"]
    targets: Int[np.ndarray, "B T"]
    groups: dict[str, Bool[np.ndarray, "B T"]]


@runtime_checkable
class Task(Protocol):
    """Anything with a vocabulary of N tokens and sequences of length T that samples them.

    `groups` names the masks of its batches. Write your own as a frozen `Value` with these four.
    """

    @property
    def N(self) -> int: ...
    @property
    def T(self) -> int: ...
    @property
    def groups(self) -> tuple[str, ...]: ...

    def sample(self, seed: int, step: int, batch: int) -> Batch: ...
