"""How many facts a model learns: one training for each learning rate, all on the same prompts, until one succeeds."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from engram.errors import Interrupted
from engram.learning import fast_facts, reference
from engram.learning.plan import Adam, FreshBatch
from engram.learning.stores import Stop, given_up
from engram.models.factual import Factual
from engram.models.trace import Weights
from engram.tasks.facts import FactTask

TEST_STEP = 2**40  # prompts that training never sees
TOKENS_AT_ONCE = 2**22  # drawn for some steps together


@dataclass(frozen=True)
class Learned:
    """The best accuracy on the test prompts, the steps it took, the learning rate that had it, and the last weights."""

    accuracy: float
    steps: int
    rate: float
    weights: Weights


@dataclass
class Attempt:
    """One learning rate: weights as one row, and Adam's two running means."""

    adam: Adam
    state: list[Float[Tensor, " n"]]
    best: float = 0.0
    lost: bool = False


def train_on_facts(
    model: Factual, plan: FreshBatch, task: FactTask, seed: int, target: float, stop: Stop, path: str
) -> Learned:
    """Rates take turns, with a check on test prompts every `check_every` steps; the first above the target ends all."""
    w = model.init(task.N, task.T, seed)
    first = fast_facts.flatten(model, w)
    attempts = [
        Attempt(Adam(lr=lr), [first.clone(), torch.zeros_like(first), torch.zeros_like(first)]) for lr in plan.rates
    ]
    take, look = (_fast, _fast_look) if path == "fast" else (_readable, _readable_look)
    done = 0
    while done < plan.steps and not all(attempt.lost for attempt in attempts):
        steps = range(done, min(done + plan.check_every, plan.steps))
        for part in _parts(steps, plan.batch * min(task.T, task.N)):
            if stop():
                raise Interrupted([])
            take(model, w, [a for a in attempts if not a.lost], task, plan.batch, seed, part)
        done = steps.stop
        for attempt in (a for a in attempts if not a.lost):
            attempt.best = max(attempt.best, look(model, w, attempt, task, plan.tests, seed))
            attempt.lost |= given_up(plan, done, attempt.best)
            if attempt.best > target:
                return _ended(attempt, done, model, w)
    return _ended(max(attempts, key=lambda attempt: attempt.best), done, model, w)


def _ended(attempt: Attempt, steps: int, model: Factual, w: Weights) -> Learned:
    return Learned(attempt.best, steps, attempt.adam.lr, w | fast_facts.unflatten(model, w, attempt.state[0]))


def _parts(steps: range, tokens: int) -> Iterator[range]:
    """As many steps at a time as can be drawn together."""
    size = max(1, TOKENS_AT_ONCE // tokens)
    return (steps[i : i + size] for i in range(0, len(steps), size))


def _fast(
    model: Factual, w: Weights, attempts: list[Attempt], task: FactTask, batch: int, seed: int, steps: range
) -> None:
    bags = task.bags(seed, steps, batch)
    for attempt in attempts:
        attempt.lost = fast_facts.take_adam_steps(model, w, attempt.state, attempt.adam, bags, steps).overflow


def _fast_look(model: Factual, w: Weights, attempt: Attempt, task: FactTask, tests: int, seed: int) -> float:
    found, _ = fast_facts.measure(model, w, attempt.state[0], task.bags(seed, [TEST_STEP], tests))
    return 0.0 if found.overflow else found.right / tests


def _readable(
    model: Factual, w: Weights, attempts: list[Attempt], task: FactTask, batch: int, seed: int, steps: range
) -> None:
    """The same by autograd through the readable model, and Adam."""
    for attempt in attempts:
        row, *means = attempt.state
        optimiser = attempt.adam.over({"row": row})
        if steps[0]:
            kept = {"step": torch.tensor(float(steps[0])), "exp_avg": means[0], "exp_avg_sq": means[1]}
            optimiser.state[row] = kept
        for step in steps:
            now = w | fast_facts.unflatten(model, w, row)
            found = reference.gradients(model, now, task.sample(seed, step, batch), "answer", model.trainable)
            row.grad = torch.cat([found.gradients[name].flatten() for name in model.trainable])
            optimiser.step()
            attempt.lost |= not np.isfinite(found.metrics["loss"])
        attempt.state[1:] = [optimiser.state[row][name] for name in ("exp_avg", "exp_avg_sq")]


def _readable_look(model: Factual, w: Weights, attempt: Attempt, task: FactTask, tests: int, seed: int) -> float:
    now = w | fast_facts.unflatten(model, w, attempt.state[0])
    return reference.gradients(model, now, task.sample(seed, TEST_STEP, tests), "answer", ()).metrics["accuracy.answer"]
