"""How well a memory stores one size: written by its formula, or trained on all pairs at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch.nn.functional import cross_entropy

from engram.errors import Interrupted
from engram.learning.plan import FreshBatch, FullBatch
from engram.memory.rules import targets
from engram.models.stores import Learner, Written
from engram.models.trace import Weights
from engram.tasks.association import Problem

SCORES_AT_ONCE = 2**25  # numbers held at once: 128 MB
Stop = Callable[[], bool]


@dataclass(frozen=True)
class StoreOutcome:
    """The best accuracy seen, the steps taken, and the weights at the end."""

    accuracy: float
    steps: int = 0
    weights: Weights = field(default_factory=dict)


def write_store(model: Written, problem: Problem, seed: int) -> StoreOutcome:
    """Mean accuracy over the draws; scores are formed for as many rows at a time as fit."""
    answers = model.answers(problem.X, targets(problem.U, problem.f), seed)
    rows = max(1, SCORES_AT_ONCE // problem.U.shape[1])
    right = 0
    for y, U, f in zip(answers, problem.U, problem.f, strict=True):
        for first in range(0, len(f), rows):
            part = slice(first, first + rows)
            right += int(((y[part] @ U.T).argmax(1) == f[part]).sum())
    return StoreOutcome(right / problem.f.numel())


def train_stores(
    model: Learner, plan: FullBatch, problem: Problem, seeds: Sequence[int], target: float, stop: Stop
) -> list[StoreOutcome]:
    """Train on every problem with its own seed, all in one batched product; each ends at its first success."""
    w = _stacked([model.init(seed) for seed in seeds], problem.X.dtype)
    optimiser = plan.optimiser.over(w)
    best, ended = torch.zeros(len(seeds), dtype=torch.float64), torch.full((len(seeds),), -1)
    for step in range(plan.steps + 1):
        if step % 256 == 0 and stop():
            raise Interrupted([])
        logits = model.forward(w, problem.X) @ problem.U.mT
        open_ = ended < 0
        if step % plan.check_every == 0 or step == plan.steps:
            right = (logits.argmax(2) == problem.f).double().mean(1)
            best = torch.where(open_ & logits.isfinite().all((1, 2)), torch.maximum(best, right), best)
        lost = torch.tensor([given_up(plan, step, float(b)) for b in best])
        ended[open_ & ((best > target) | lost | (step == plan.steps))] = step
        if (ended >= 0).all():
            break
        optimiser.zero_grad()
        (cross_entropy(logits.transpose(1, 2), problem.f) * len(seeds)).backward()
        optimiser.step()
    last = [{name: part[i].detach() for name, part in w.items()} for i in range(len(seeds))]
    return [StoreOutcome(float(a), int(s), v) for a, s, v in zip(best, ended, last, strict=True)]


def given_up(plan: FullBatch | FreshBatch, step: int, best: float) -> bool:
    """Whether the plan gives up a training with this best accuracy at this step."""
    return any(step >= at and best < least for at, least in plan.hopeless)


def _stacked(weights: Sequence[Weights], dtype: torch.dtype) -> Weights:
    return {name: torch.stack([w[name] for w in weights]).to(dtype).requires_grad_() for name in weights[0]}
