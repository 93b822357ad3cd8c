"""How well a trained model knows its facts: its best accuracy, and the bits that it stores for each bit it uses."""

from collections.abc import Callable
from math import log2

import torch
from torch import Tensor

from engram.errors import EngramError
from engram.learning.fact_search import TEST_STEP, Learned, train_on_facts
from engram.learning.paths import choose_fact_path
from engram.learning.plan import FreshBatch
from engram.memory.rules import rounded
from engram.models.factual import Factual
from engram.models.trace import Weights
from engram.tasks.facts import Facts, FactTask
from engram.theory.precision import KEPT
from engram.values import Rows, law


@law("learning.fact_search.best_accuracy")
def best_accuracy(
    draws: int, seed: int, S: int, R: int, D: int, T: int, d: int, heads: int, d_h: int, m: int, steps: int
) -> Rows:
    """The best accuracy of one training (learning rate 0.01) per draw; it ends when every test prompt is answered."""
    task, plan = Facts(S=S, R=R, D=D, T=T), FreshBatch(rates=(0.01,), steps=steps, check_every=min(128, steps))
    model = Factual(d=d, heads=heads, d_h=d_h, m=m, answers=task.answers)
    for draw in range(draws):
        found = _best(model, plan, task, seed + (draw << 32))
        yield {"accuracy": found.accuracy, "steps": found.steps}


def _best(model: Factual, plan: FreshBatch, task: FactTask, seed: int) -> Learned:
    """One training, which ends when every test prompt is answered."""
    path = choose_fact_path("auto", model)
    return train_on_facts(model, plan, task, seed, 1 - 1 / (2 * plan.tests), lambda: False, path)


LEVELS = tuple(range(2, 257, 2))


@law("learning.fact_search.bits")
def fact_efficiency(
    draws: int, seed: int, S: int, R: int, D: int, T: int, d: int, heads: int, d_h: int, m: int, steps: int
) -> Rows:
    """Bits stored for each bit used: a trained model, every matrix rounded to the fewest levels that keep 99 %.

    Stored are the SR log2 D bits of the book, less what 1 % of wrong answers may hide (Fano).
    """
    task, plan = Facts(S=S, R=R, D=D, T=T), FreshBatch(rates=(0.003, 0.01), steps=steps, check_every=min(128, steps))
    model = Factual(d=d, heads=heads, d_h=d_h, m=m, answers=task.answers)
    for own in (seed + (draw << 32) for draw in range(draws)):
        found, tokens = _best(model, plan, task, own), torch.from_numpy(task.book(own).every(own, TEST_STEP + 1))
        answers = torch.from_numpy(task.book(own).known[:, 2])

        def recalled(w: Weights, tokens: Tensor = tokens, answers: Tensor = answers) -> float:
            return float((model.forward(w, tokens).logits[:, -1].argmax(1) == answers).double().mean())

        levels, right = _fewest_levels(model, found.weights, recalled)
        yield _efficiency(model, S * R, D, levels, right) | {"accuracy": recalled(found.weights)}


def _fewest_levels(model: Factual, w: Weights, recalled: Callable[[Weights], float]) -> tuple[int, float]:
    for levels in LEVELS:
        right = recalled(w | {name: _rounded(w[name], levels) for name in model.trainable})
        if right >= KEPT:
            return levels, right
    raise EngramError(f"{LEVELS[-1]} levels do not keep {KEPT:.0%} of the facts; train longer, or use fewer facts")


def _rounded(W: Tensor, levels: int) -> Tensor:
    return rounded(torch.atleast_2d(W), levels).view(W.shape) if W.abs().max() > 0 else W


def _efficiency(model: Factual, facts: int, D: int, levels: int, right: float) -> dict[str, float]:
    stored, used = stored_bits(facts, D, 1 - right), (model.parameters + model.m) * log2(levels)
    return {"levels": levels, "recall": right, "stored": stored, "used": used, "ratio": stored / used}


def stored_bits(facts: int, D: int, wrong: float) -> float:
    """The fewest bits known about independent uniform answers out of D if a share `wrong` of them is wrong (Fano)."""
    entropy = -sum(p * log2(p) for p in (wrong, 1 - wrong) if p > 0)
    return facts * max(0.0, log2(D) - entropy - wrong * log2(max(1, D - 1)))
