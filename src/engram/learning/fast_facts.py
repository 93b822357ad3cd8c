"""Loss, gradients and steps of `Factual` on CPU by the compiled kernel (native/facts.cpp): exact, on bags of tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from engram.errors import EngramError
from engram.learning.plan import Adam
from engram.learning.reference import Measured, summary
from engram.models.factual import Factual
from engram.models.trace import Architecture, Weights
from engram.native import REAL, call, kernel
from engram.tasks import Batch
from engram.tasks.book import Bags

Row = Float[Tensor, " n"]  # all trained matrices one after the other


def applies(model: object, trained: tuple[str, ...], device: str, loss: str = "answer") -> bool:
    """Whether this path can train these matrices of this model here: not E and U, on CPU, the loss read at EOS."""
    fits = isinstance(model, Factual) and set(trained) <= set(model.trainable) and loss == "answer"
    return fits and device == "cpu" and kernel() is not None


def gradients(model: Architecture, w: Weights, batch: Batch, loss: str, names: tuple[str, ...]) -> Measured:
    """The same as `reference.gradients`."""
    assert isinstance(model, Factual)
    assert loss == "answer"
    bags = _bags(batch, len(w["E"]))
    found, gradient = measure(model, w, flatten(model, w), bags, bool(names))
    metrics = summary({"answer": [found.loss, found.right, len(bags.answers)]})
    if found.overflow:
        metrics["loss"] = float("nan")  # the kernel's fast arithmetic need not carry a NaN through
    parts = unflatten(model, w, gradient) if gradient is not None else {}
    return Measured({name: parts[name] for name in names}, metrics, len(bags.answers))


def _bags(batch: Batch, V: int) -> Bags:
    """Tokens of prompts that are shorter than the vocabulary, counts of longer ones."""
    B, T = batch.tokens.shape
    if T <= V:
        return Bags(batch.tokens, None, batch.targets[:, -1])
    cells = (np.arange(B)[:, None] * V + batch.tokens).ravel()
    return Bags(None, np.bincount(cells, minlength=B * V).reshape(B, V).astype(float), batch.targets[:, -1])


@dataclass(frozen=True)
class Found:
    """Summed loss and right answers of a batch (in a training: of the last one), and steps taken."""

    loss: float
    right: int
    overflow: bool
    steps: int = 0


def flatten(model: Factual, w: Weights) -> Row:
    """All trained matrices in one row, in the order of the kernel."""
    return torch.cat([w[name].flatten() for name in model.trainable])


def unflatten(model: Factual, w: Weights, row: Row) -> Weights:
    """The matrices in such a row, by name."""
    parts = row.split([w[name].numel() for name in model.trainable])
    return {name: part.view(w[name].shape) for name, part in zip(model.trainable, parts, strict=True)}


def measure(model: Factual, w: Weights, row: Row, bags: Bags, learn: bool = False) -> tuple[Found, Row | None]:
    """Loss and right answers on these prompts, and the gradient if wanted."""
    frozen, prompts = _frozen(w, bags), _prompts(bags, len(w["E"]), row.dtype)
    gradient = np.zeros_like(row.numpy()) if learn else None
    found = np.zeros(4)
    _call("measure", row.dtype, [_sizes(model, w, bags, 1), *frozen, row.numpy(), *prompts, gradient, found])
    return _found(found), None if gradient is None else torch.from_numpy(gradient)


def take_adam_steps(model: Factual, w: Weights, state: Sequence[Row], adam: Adam, bags: Bags, steps: range) -> Found:
    """These steps of Adam: the prompts are those of all steps, one after the other.

    `state` is the row of weights and Adam's two rows of means; all three are changed.
    """
    frozen, prompts = _frozen(w, bags), _prompts(bags, len(w["E"]), state[0].dtype)
    plan, found = np.array([adam.lr, *adam.betas, adam.eps]), np.zeros(4)
    rows = [part.numpy() for part in state]
    sizes = _sizes(model, w, bags, len(steps))
    arrays = [sizes, steps.start, len(steps), plan, *frozen, *prompts, *rows, found]
    _call("train", state[0].dtype, arrays)
    return _found(found)


def _found(found: Float[np.ndarray, " 4"]) -> Found:
    return Found(float(found[0]), int(found[1]), bool(found[2]), int(found[3]))


def _frozen(w: Weights, bags: Bags) -> list[np.ndarray]:
    if bags.answers.min() < 0 or bags.answers.max() >= len(w["U"]):  # the kernel would read what is not there
        raise EngramError(f"answers must lie in 0 … {len(w['U']) - 1}; model.answers must be that of the task")
    if bags.tokens is not None and (bags.tokens.min() < 0 or bags.tokens.max() >= len(w["E"])):
        raise EngramError(f"tokens must lie in 0 … {len(w['E']) - 1}")
    return [w["E"].numpy(), w["U"].numpy()]


def _prompts(bags: Bags, V: int, dtype: torch.dtype) -> list[np.ndarray | None]:
    real = np.float32 if dtype == torch.float32 else np.float64
    tokens = None if bags.tokens is None else bags.tokens.astype(np.int32, copy=False)
    counts = None if bags.counts is None else bags.counts.astype(real, copy=False)
    assert counts is None or counts.shape[1] == V
    return [tokens, counts, bags.answers.astype(np.int32, copy=False)]


def _sizes(model: Factual, w: Weights, bags: Bags, steps: int) -> np.ndarray:
    length = (bags.tokens if bags.tokens is not None else bags.counts).shape[1]  # type: ignore[union-attr]
    batch = len(bags.answers) // steps
    sizes = [len(w["E"]), len(w["U"]), model.d, model.heads, model.d_h, model.m, batch, length]
    return np.array([*sizes, min(torch.get_num_threads(), batch)], dtype=np.int32)


def _call(name: str, dtype: torch.dtype, arguments: Sequence[np.ndarray | int | None]) -> None:
    if call(f"facts_{name}_{REAL[dtype.itemsize]}", arguments) != 0:
        raise EngramError("facts: out of memory; use a smaller batch, or fewer answers")
