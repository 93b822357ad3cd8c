r"""Which memories the matrices of a model are.

An induction head has three, and a feed-forward layer behind it holds the bigram (Birth of a Transformer, Eq. 7–8):

    memory   asked         answers        score[asked, answer]       right answer
    W_O2     e_k           u_j            u_j · W_O2 W_V2 e_k        j = k
    W_K2     e_k           Φ1 e_j         e_k · W_K2 Φ1 e_j          j = k
    W_K1     p_t, t ≥ 2    p_s, s < T     p_t · W_K1 p_s             s = t − 1
    W_F      e_k           u_j            u_j · W_F e_k              the law π_b(j | k)

With fixed triggers only these count for the recall of W_K2: they are all that the task ever stores there.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from engram.memory.stored import Labels, Stored
from engram.models.trace import Architecture, Head, Weights
from engram.tasks.batch import Task, marks_of

EARLY = 64  # "t < 64": the position memory restricted to the first 64 positions


def memories_of(model: Architecture, w: Weights, task: Task, seed: int = 0) -> list[Stored]:
    """The memories that a model says it has; none if it says nothing."""
    own = getattr(model, "memories", None)
    return list(own(w, task, seed)) if own else []


def heads_of(model: Architecture) -> tuple[Head, ...]:
    """The heads that a model says it has, as (layer, head) from 1; none if it says nothing."""
    own: Any = getattr(model, "heads", None)
    return tuple(own()) if callable(own) else ()  # type: ignore[arg-type]


def two_layers(model: Architecture) -> bool:
    """Whether the model has the two layers of attention that an induction head lives in."""
    return len({layer for layer, _ in heads_of(model)}) >= 2


def induction_memories(w: Weights, task: Task, seed: int) -> list[Stored]:
    """W_O2, W_K2 and W_K1 of weights under the names of `Simplified`."""
    E, P, places = w["E"], w["P"], torch.arange(len(w["P"]) - 1, device=w["P"].device)
    tokens, positions = torch.arange(len(E), device=E.device), [str(t) for t in range(1, len(P) + 1)]
    marks, triggers = marks_of(task, seed), getattr(task, "fixed_triggers", None)
    of_tokens = {
        "W_O2": Labels("Output memory W_O2", "token attended to", "token written", marks, marks),
        "W_K2": Labels("Key memory W_K2", "current token", "token before the key", marks, marks),
    }
    at = Labels("Position memory W_K1", "position", "position attended to", tuple(positions[1:]), tuple(positions[:-1]))
    among = None if triggers is None else torch.as_tensor(np.array(triggers), device=E.device)
    remapped = E @ w["W_V1"].T @ w["W_O1"].T  # row j: Φ1 e_j
    return [
        Stored("W_O2", E @ w["W_V2"].T, w["W_O2"], w["U"], tokens, of_tokens["W_O2"]),
        Stored("W_K2", remapped, w["W_K2"], E, tokens, of_tokens["W_K2"], asking="values", among=among),
        Stored(
            "W_K1", P[:-1], w["W_K1"], P[1:], places, at, asking="values", parts={f"t<{EARLY}": places[: EARLY - 1]}
        ),
    ]


def bigram_memory(
    keys: Tensor, W: Tensor, U: Tensor, task: Task, seed: int, read: Callable[[Tensor], Tensor] | None = None
) -> Stored:
    """What a feed-forward layer alone says comes next, shown a token alone."""
    marks = marks_of(task, seed)
    labels = Labels("Bigram memory W_F", "current token", "token written", marks, marks)
    return Stored("W_F", keys, W, U, bigram_law(task, U), labels, read=read)


def bigram_law(task: Any, like: Tensor) -> Float[Tensor, "N N"] | None:
    """π_b of a task that has one; rows of fixed triggers are zero, since nothing is asked there."""
    table = getattr(task, "table", None)
    if table is None:
        return None
    law = np.array(table.bigram)
    law[[] if task.fixed_triggers is None else task.fixed_triggers] = 0.0
    return torch.from_numpy(law).to(like.device)
