"""A fact rewritten in one matrix of a trained model, and what else that moves."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from engram.errors import EngramError
from engram.facts.ask import Asked, place
from engram.models.trace import Architecture, Weights
from engram.probes.facts import CROWDS, log_probabilities
from engram.tasks.book import Book

EDIT_STEP, AFTER_STEP = 2**41 + 1, 2**41 + 2  # prompts that nobody else sees
MARGIN = 1.0  # nats by which the new answer wins in every prompt that the edit looks at
MOST = 2.0**20


@runtime_checkable
class Editable(Architecture, Protocol):
    """A model that names its last matrix before the readout, and what this is applied to."""

    def last_store(self, w: Weights, tokens: Int[Tensor, "B T"]) -> tuple[str, Float[Tensor, "B n"]]: ...


@dataclass(frozen=True)
class FactEdit:
    """A fact rewritten by W ← W + δ k̃ᵀ, and what else moved: other facts whose answer changed, by what they share."""

    matrix: str
    learned: float  # share of fresh prompts about the fact that get the new answer
    changed: dict[str, tuple[int, int]]  # same subject, same relation, neither: facts changed, and how many there are
    moved: float  # mean distance (total variation) between predictions of the other facts before and after
    weights: Weights


@torch.no_grad()
def edit(asked: Asked, answer: str) -> FactEdit:
    """k̃ = C⁻¹k/(kᵀC⁻¹k), k the mean of what the matrix reads in prompts about the fact, C its second moment over all.

    δ points from the old answer to the new, as far as makes the new one win by MARGIN in all of these prompts.
    """
    spec, book = asked.record.train, asked.book
    if not isinstance(spec.model, Editable):
        raise EngramError(f"{type(spec.model).__name__} cannot be edited: it does not name its last matrix")
    new, old = place("answer", answer, asked.names["answer"]), int(book.table[asked.s, asked.r])
    if new == old:
        raise EngramError(
            f"({asked.names['subject'][asked.s]}, {asked.names['relation'][asked.r]}) is already {answer}"
        )
    w = {name: value.double() for name, value in asked.record.model().weights.items()}
    about, every = (torch.from_numpy(part) for part in _prompts(asked, EDIT_STEP))
    name, keys = spec.model.last_store(w, about)
    everything = spec.model.last_store(w, every)[1]
    k = keys.mean(0)
    C = everything.T @ everything / len(everything)
    C += 1e-3 * C.diagonal().mean() * torch.eye(len(C), dtype=C.dtype)
    direction = torch.linalg.solve(C, k)
    readout = w["U"] if "U" in w else torch.eye(len(w[name]), dtype=w[name].dtype)
    step = torch.outer(readout[new] - readout[old], direction / (k @ direction))
    after = w | {name: w[name] + _least_size(spec.model, w, name, step, about, new) * step}
    return _compared(asked, name, w, after, new)


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
            raise EngramError("edit: no rank-one change of this matrix makes the new answer win")
    low = 0.0
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if wins(middle) else (middle, high)
    return high


def _compared(asked: Asked, name: str, before: Weights, after: Weights, new: int) -> FactEdit:
    model, book = asked.record.train.model, asked.book
    about, every = _prompts(asked, AFTER_STEP)
    learned = float((log_probabilities(model, after, about).argmax(1) == new).double().mean())
    p, q = (log_probabilities(model, w, every) for w in (before, after))
    differs = (p.argmax(1) != q.argmax(1)).numpy()
    groups = _sharing(book, asked.s, asked.r)
    others = np.any(list(groups.values()), axis=0)
    moved = float((p.exp() - q.exp()).abs().sum(1)[torch.from_numpy(others)].mean() / 2) if others.any() else 0.0
    counts = {kind: (int((differs & mask).sum()), int(mask.sum())) for kind, mask in groups.items()}
    return FactEdit(name, learned, counts, moved, after)


def _sharing(book: Book, s: int, r: int) -> dict[str, Bool[np.ndarray, " n"]]:
    """The other facts, by what they share with this one."""
    subjects, relations, _ = book.known.T
    return {
        "same subject": (subjects == s) & (relations != r),
        "same relation": (subjects != s) & (relations == r),
        "neither": (subjects != s) & (relations != r),
    }
