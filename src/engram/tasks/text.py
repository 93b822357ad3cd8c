"""Text as the tokens of a task, and back: by its alphabet, or by the marks with which it writes its tokens."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from engram.errors import EngramError, refuse_other
from engram.tasks.batch import Task, marks_of


def encode(task: Task, text: str, seed: int = 0) -> Int[np.ndarray, " t"]:
    """The ids of a text: as the task spells it, or letter by letter, or of marks between spaces ("2 a b a")."""
    refuse_other(str, text, "text: must be a text")
    own: Any = getattr(task, "spell", None)
    if own is not None:
        return _fitting(task, own(text))
    letters = getattr(task, "alphabet", None)
    signs = list(text) if letters is not None else text.split()
    place = {sign: i for i, sign in enumerate(marks_of(task, seed) if letters is None else letters)}
    unknown = next((sign for sign in signs if sign not in place), None)
    if unknown is not None:
        raise EngramError(f"text: {unknown!r} is not in the vocabulary of this task")
    return _fitting(task, np.array([place[sign] for sign in signs], dtype=np.int64))


def _fitting(task: Task, ids: Int[np.ndarray, " t"]) -> Int[np.ndarray, " t"]:
    if not len(ids):
        raise EngramError("text: type at least one token")
    if len(ids) > task.T:
        raise EngramError(f"text: at most {task.T} tokens fit; got {len(ids)}")
    return ids


def decode(task: Task, tokens: Sequence[int] | np.ndarray, seed: int = 0) -> str:
    """The text of some ids; what `encode` would read again."""
    own: Any = getattr(task, "unspell", None)
    if own is not None:
        return own(tokens)
    letters = getattr(task, "alphabet", None)
    signs, between = (marks_of(task, seed), " ") if letters is None else (letters, "")
    return between.join(signs[_known(z, len(signs))] for z in tokens)


def _known(token: object, N: int) -> int:
    """A token of this vocabulary; negative numbers would count from its end."""
    if not isinstance(token, int | np.integer) or not 0 <= token < N:
        raise EngramError(f"tokens: {token!r:.20} is not in the vocabulary, which has {N}, counted from 0")
    return int(token)
