"""A fact rewritten in one matrix of a trained model, and what else that moves."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from engram.errors import EngramError, did_you_mean
from engram.facts.ask import Asked
from engram.models.trace import Architecture, Weights
from engram.probes.facts import CROWDS, log_probabilities
from engram.specs.rewrite import Rewrite
from engram.tasks.book import MISSING, Book

EDIT_STEP, AFTER_STEP = 2**41 + 1, 2**41 + 2  # prompts that nobody else sees
MARGIN = 1.0  # nats by which the new answer wins in every prompt that the edit looks at
MOST = 2.0**20


@runtime_checkable
class Editable(Architecture, Protocol):
    """A model that names its last matrix before the readout, and what this is applied to."""

    def last_store(self, w: Weights, tokens: Int[Tensor, "B T"]) -> tuple[str, Float[Tensor, "B n"]]: ...


@dataclass(frozen=True)
class FactEdit:
    """A fact rewritten by W ← W + u k̃ᵀ, and what else moved: other facts whose answer changed, by what they share."""

    matrix: str
    was: str  # what the model answered before
    change: Rewrite  # the same as an intervention at the last step
    learned: float  # share of fresh prompts about the fact that get the new answer
    changed: dict[str, tuple[int, int]]  # same subject, same relation, neither: facts changed, and how many there are
    moved: float  # mean distance (total variation) between predictions of the other facts before and after
    weights: Weights
    others: tuple["Moved", ...]  # the other facts whose answer changed, each


@dataclass(frozen=True)
class Moved:
    """Another fact whose likeliest answer an edit changed; it broke if the answer before was right."""

    s: int
    r: int
    was: int
    now: int
    broke: bool


@torch.no_grad()
def edit(asked: Asked, answer: str, step: int | None = None) -> FactEdit:
    """k̃ = C⁻¹k/(kᵀC⁻¹k), k the mean of what the matrix reads in prompts about the fact, C its second moment over all.

    u points from the answer that the model gives to the new one, so far that this wins by MARGIN in all these prompts.
    The weights are those of a step, the last stored ones unless said.
    """
    spec = asked.record.train
    if not isinstance(spec.model, Editable):
        raise EngramError(f"{type(spec.model).__name__} cannot be edited: it does not name its last matrix")
    new = _answer(asked, answer)
    w = {name: value.double() for name, value in asked.record.model(step).weights.items()}
    about, every = (torch.from_numpy(part) for part in _prompts(asked, EDIT_STEP))
    old = int(spec.model.forward(w, about).logits[:, -1].softmax(1).mean(0).argmax())
    if new == old:
        raise EngramError(f"{asked.question} is already {answer}")
    name, k = _key(spec.model, w, about, every)
    readout = w["U"] if "U" in w else torch.eye(len(w[name]), dtype=w[name].dtype)
    u = readout[new] - readout[old]
    u = u * _least_size(spec.model, w, name, torch.outer(u, k), about, new)
    was = asked.names["answer"][old]
    fact = f"{asked.question}: {was} → {answer}"
    at = spec.steps if step is None else step
    change = Rewrite(step=at, matrix=name, fact=fact, u=tuple(u.tolist()), k=tuple(k.tolist()))
    return _compared(asked, was, change, w, w | {name: w[name] + torch.outer(u, k)}, new)


def _answer(asked: Asked, answer: str) -> int:
    """Its place; of an unknown one, what can be done about it."""
    names = asked.names["answer"]
    if answer in names:
        return names.index(answer)
    of_relation = [names[a] for a in np.unique(asked.book.table[:, asked.r]) if a != MISSING]
    shown = ", ".join(of_relation[:8]) + (", …" if len(of_relation) > 8 else "")
    raise EngramError(
        f"answer: unknown {answer!r}; {did_you_mean(answer, names)}the model can only choose among the answers of its "
        f"table, of {asked.names['relation'][asked.r]}: {shown}; to have another one, write it into the table, "
        "in a row of its own, and run `engram fact learn` on that"
    )


def _key(model: Editable, w: Weights, about: Tensor, every: Tensor) -> tuple[str, Float[Tensor, " n"]]:
    """The matrix, and k̃."""
    name, keys = model.last_store(w, about)
    everything = model.last_store(w, every)[1]
    k = keys.mean(0)
    C = everything.T @ everything / len(everything)
    C += 1e-3 * C.diagonal().mean() * torch.eye(len(C), dtype=C.dtype)
    direction = torch.linalg.solve(C, k)
    return name, direction / (k @ direction)


def _prompts(asked: Asked, step: int) -> tuple[Int[np.ndarray, "B T"], Int[np.ndarray, "n T"]]:
    """About the fact, and about all."""
    seed = asked.record.train.seed
    return asked.book.about(asked.s, asked.r, seed, step, CROWDS), asked.book.every(seed, step)


def _least_size(model: Architecture, w: Weights, name: str, step: Tensor, tokens: Tensor, new: int) -> float:
    """The smallest sufficient step, by bisection to a hundredth; 0 may suffice."""

    def wins(size: float) -> bool:
        logits = model.forward(w | {name: w[name] + size * step}, tokens).logits[:, -1]
        others = logits.clone()
        others[:, new] = -torch.inf
        return bool((logits[:, new] - others.amax(1) > MARGIN).all())

    if wins(0.0):
        return 0.0
    high = 1.0
    while not wins(high):
        high *= 2
        if high > MOST:
            raise EngramError(
                f"edit: no rank-one change of {name} makes the new answer win in all prompts; learn the table again, "
                "with more --steps or a larger --width (engram fact learn)"
            )
    low = 0.0
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if wins(middle) else (middle, high)
    return high


def _compared(asked: Asked, was: str, change: Rewrite, before: Weights, after: Weights, new: int) -> FactEdit:
    model, book = asked.record.train.model, asked.book
    about, every = _prompts(asked, AFTER_STEP)
    learned = float((log_probabilities(model, after, about).argmax(1) == new).double().mean())
    p, q = (log_probabilities(model, w, every) for w in (before, after))
    differs = (p.argmax(1) != q.argmax(1)).numpy()
    groups = _sharing(book, asked.s, asked.r)
    others = np.any(list(groups.values()), axis=0)
    moved = float((p.exp() - q.exp()).abs().sum(1)[torch.from_numpy(others)].mean() / 2) if others.any() else 0.0
    counts = {kind: (int((differs & mask).sum()), int(mask.sum())) for kind, mask in groups.items()}
    changed = _moved(book, p.argmax(1).numpy(), q.argmax(1).numpy(), differs & others)
    return FactEdit(change.matrix, was, change, learned, counts, moved, after, changed)


def _moved(
    book: Book, before: Int[np.ndarray, " n"], after: Int[np.ndarray, " n"], differs: Bool[np.ndarray, " n"]
) -> tuple[Moved, ...]:
    rows = zip(book.known[differs].tolist(), before[differs].tolist(), after[differs].tolist(), strict=True)
    return tuple(Moved(s, r, was, now, was == a) for (s, r, a), was, now in rows)


def _sharing(book: Book, s: int, r: int) -> dict[str, Bool[np.ndarray, " n"]]:
    """The other facts, by what they share with this one."""
    subjects, relations, _ = book.known.T
    return {
        "same subject": (subjects == s) & (relations != r),
        "same relation": (subjects != s) & (relations == r),
        "neither": (subjects != s) & (relations != r),
    }
