"""Loss and gradients by autograd through the readable forward pass, on any device: the reference path.

The exact fast path (fast.py: from the memory algebra, on CPU) has the same signature.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from engram.models import Architecture, Weights
from engram.tasks import Batch

# on CPU, T×T maps of 8 sequences stay in cache: 1.7× faster
TOKENS_AT_ONCE = {"cpu": 2048, "cuda": 2**17, "mps": 2**17}


@dataclass(frozen=True)
class Measured:
    """What one batch says: gradients of the trained matrices, loss and accuracy by group, positions read."""

    gradients: Weights
    metrics: dict[str, float]
    positions: int


# The signature of a path: exact loss and gradients of the named matrices on the positions that the loss reads.
Gradients = Callable[[Architecture, Weights, Batch, str, tuple[str, ...]], Measured]
# Of some sequences (B×T), the logits (n×N) at the n positions of a mask (B×T), in their order.
LogitsAt = Callable[[Architecture, Weights, Tensor, Tensor], Tensor]


def gradients(model: Architecture, w: Weights, batch: Batch, loss: str, names: tuple[str, ...]) -> Measured:
    """∇ of the mean cross-entropy over the positions that the loss reads."""
    return measure(_logits_at, model, w, batch, loss, names)


def _logits_at(model: Architecture, w: Weights, tokens: Tensor, read: Tensor) -> Tensor:
    return model.forward(w, tokens).logits[read]


def measure(
    logits_at: LogitsAt, model: Architecture, w: Weights, batch: Batch, loss: str, names: tuple[str, ...]
) -> Measured:
    """Loss, accuracy and gradients by autograd through `logits_at`, a few sequences at a time."""
    device = next(iter(w.values())).device
    read = read_groups(batch, loss)
    tokens, targets = on(device, batch.tokens), on(device, batch.targets)
    groups = {name: on(device, mask) for name, mask in read.items()}
    leaves = {name: w[name].detach().requires_grad_() for name in names}
    positions = sum(int(mask.sum()) for mask in read.values())
    sums = {name: torch.zeros(3, dtype=torch.float64) for name in groups}
    totals = {name: torch.zeros_like(w[name]) for name in names}
    at_once = max(1, getattr(model, "tokens_at_once", TOKENS_AT_ONCE[device.type]) // tokens.shape[1])
    for part in torch.arange(len(tokens)).split(at_once):
        here = {name: mask[part] for name, mask in groups.items()}
        asked = torch.stack(list(here.values())).any(dim=0)
        logits = logits_at(model, w | leaves, tokens[part], asked)
        losses = [_group_loss(logits[m[asked]], targets[part][m], sums[name]) for name, m in here.items()]
        if names:
            parts = torch.autograd.grad(torch.stack(losses).sum() / max(1, positions), list(leaves.values()))
            for name, gradient in zip(names, parts, strict=True):
                totals[name] += gradient
    return Measured(totals, summary({name: total.tolist() for name, total in sums.items()}), positions)


def on(device: torch.device, array: np.ndarray) -> Tensor:
    """A task's array as a tensor: integers of any width as int64; a read-only view is copied."""
    wide = array if array.dtype == bool else array.astype(np.int64, copy=False)
    return torch.from_numpy(np.require(wide, requirements=["C", "W"])).to(device)


def read_groups(batch: Batch, loss: str) -> dict[str, np.ndarray]:
    return batch.groups if loss == "all" else {loss: batch.groups[loss]}


def _group_loss(logits: Tensor, targets: Tensor, sums: Tensor) -> Tensor:
    """Summed cross-entropy; adds (loss, right guesses, positions) to `sums`."""
    loss = cross_entropy(logits, targets, reduction="sum")
    right = (logits.argmax(dim=-1) == targets).sum()
    sums += torch.stack([loss.detach(), right, torch.full_like(right, len(targets))]).cpu().double()
    return loss


def summary(sums: dict[str, list[float]]) -> dict[str, float]:
    """Means by group and over all; NaN for a group without positions in the batch."""
    whole = [sum(column) for column in zip(*sums.values(), strict=True)]
    metrics = {"loss": _ratio(whole[0], whole[2])}
    for name, (loss, right, positions) in sums.items():
        metrics[f"loss.{name}"] = _ratio(loss, positions)
        metrics[f"accuracy.{name}"] = _ratio(right, positions)
    return metrics


def _ratio(total: float, positions: float) -> float:
    return total / positions if positions else float("nan")
