"""What a task samples, and what a task is."""

from dataclasses import dataclass
from string import ascii_lowercase
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int

from engram.errors import EngramError

UNSEEN = 2**40  # a step beyond any run: sequences that training never sees


@dataclass(frozen=True)
class Batch:
    """B sequences, and what to predict at each position.

    tokens     z_1 … z_T
    targets    z_2 … z_{T+1}, aligned with tokens
    groups     named masks over positions; losses and accuracies are reported for each
    """

    tokens: Int[np.ndarray, "B T"]
    targets: Int[np.ndarray, "B T"]
    groups: dict[str, Bool[np.ndarray, "B T"]]

    def check(self, task: "Task", batch: int, loss: str) -> None:
        """Refuse what a user's own task may get wrong, and say what was expected."""
        shape = (batch, self.tokens.shape[-1])
        wrong = [name for name in ("tokens", "targets") if not np.issubdtype(getattr(self, name).dtype, np.integer)]
        wrong += [name for name in task.groups if name not in self.groups or self.groups[name].dtype != bool]
        arrays = {"tokens": self.tokens, "targets": self.targets, **self.groups}
        wrong += [name for name, array in arrays.items() if array.shape != shape or shape[1] > task.T]
        if wrong:
            raise EngramError(
                f"{type(task).__name__}.sample: {', '.join(dict.fromkeys(wrong))}: expected integer tokens and targets "
                f"and boolean masks {', '.join(task.groups)}, all of shape (batch={batch}, T={task.T})"
            )
        if loss == "all" and not (np.sum(list(self.groups.values()), axis=0) == 1).all():
            raise EngramError(f"{type(task).__name__}.sample: with loss='all' every position needs exactly one group")
        outputs = getattr(task, "answers", task.N)  # the answers of a task need not be tokens
        known = self.tokens.max() < task.N and self.targets.max() < outputs
        if not known or min(self.tokens.min(), self.targets.min()) < 0:
            raise EngramError(
                f"{type(task).__name__}.sample: tokens must lie in 0 … N−1 = {task.N - 1}, "
                f"targets must lie in 0 … {outputs - 1}"
            )


def marks_of(task: "Task", seed: int = 0) -> tuple[str, ...]:
    """A visible mark for every token: from the task's marks(seed) if it has one, otherwise its number."""
    own = getattr(task, "marks", None)
    return tuple(own(seed)) if own else tuple(map(str, range(task.N)))


def letter_marks(n: int) -> list[str]:
    """a, b, …, z, a1, b1, …: marks for n tokens that have no names of their own."""
    return [ascii_lowercase[i % 26] + (str(i // 26) if i >= 26 else "") for i in range(n)]


def as_text(task: "Task", batch: Batch, row: int = 0, seed: int = 0) -> str:
    """One sequence for a person to read: its tokens, and under each of them what is to be predicted there."""
    marks = marks_of(task, seed)
    lines = [[marks[z] for z in sequence[row]] for sequence in (batch.tokens, batch.targets)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = (" ".join(mark.ljust(width) for mark, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(line.rstrip() for line in aligned)


@runtime_checkable
class Task(Protocol):
    """Anything that samples sequences of length T over N tokens; `groups` names the masks of its batches.

    Write your own as a frozen `Value` with these four members, `sample` a pure function of its arguments. Optional:
    marks(seed), how each token is written, and `alphabet`, the letters that a person can type.
    """

    @property
    def N(self) -> int: ...
    @property
    def T(self) -> int: ...
    @property
    def groups(self) -> tuple[str, ...]: ...

    def sample(self, seed: int, step: int, batch: int) -> Batch: ...
