"""Text as the tokens of a task, and back: by its alphabet, or by the marks with which it writes its tokens."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from engram.errors import EngramError
from engram.tasks.batch import Task, marks_of


def encode(task: Task, text: str, seed: int = 0) -> Int[np.ndarray, " t"]:
    """The ids of a text: letter by letter where the task has an alphabet, else of marks between spaces ("2 a b a")."""
    letters = getattr(task, "alphabet", None)
    signs = list(text) if letters is not None else text.split()
    place = {sign: i for i, sign in enumerate(marks_of(task, seed) if letters is None else letters)}
    unknown = next((sign for sign in signs if sign not in place), None)
    if unknown is not None:
        raise EngramError(f"text: {unknown!r} is not in the vocabulary of this task")
    if not signs:
        raise EngramError("text: type at least one token")
    if len(signs) > task.T:
        raise EngramError(f"text: at most {task.T} tokens fit; got {len(signs)}")
    return np.array([place[sign] for sign in signs])


def decode(task: Task, tokens: Sequence[int] | np.ndarray, seed: int = 0) -> str:
    """The text of some ids; what `encode` would read again."""
    letters = getattr(task, "alphabet", None)
    signs, between = (marks_of(task, seed), " ") if letters is None else (letters, "")
    return between.join(signs[int(z)] for z in tokens)
