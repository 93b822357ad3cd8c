"""Weights that store pairs, found by gradient descent."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from engram.memory.check import check_finite, check_whole_number


@torch.enable_grad()
def fit(
    start: Sequence[Tensor],
    scores: Callable[..., Float[Tensor, "N M"]],
    f: Int[Tensor, " N"],
    lr: float,
    steps: int,
) -> list[Tensor]:
    """Adam on −mean_z log softmax(scores)_{f(z)} over all pairs, until all are recalled or `steps` are over.

    `scores` maps the weights to N×M scores. Returns the weights that recalled most pairs, the earliest of them.
    """
    weights = [w.clone().requires_grad_() for w in start]
    adam = torch.optim.Adam(weights, lr, foreach=False)
    best, kept = -1, list(start)
    for step in range(steps + 1):
        logits = scores(*weights)
        right = int((logits.argmax(1) == f).sum())
        if right > best:
            best, kept = right, [w.detach().clone() for w in weights]
        if right == len(f) or step == steps:
            break
        adam.zero_grad()
        cross_entropy(logits, f).backward()
        adam.step()
    return kept


def check_plan(lr: float, steps: int) -> None:
    check_finite("lr", lr, above=0)
    check_whole_number("steps", steps, 1)
