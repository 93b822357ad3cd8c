"""The training loop: a generator that shows every step before it is taken, and can begin at any stored one."""

from collections.abc import Generator
from dataclasses import dataclass
from math import isfinite

from engram.errors import EngramError
from engram.learning.optimisers import Optimiser
from engram.learning.plan import Plan
from engram.learning.reference import Gradients
from engram.models import Architecture, Weights
from engram.tasks import Task


class Diverged(EngramError):
    """The loss is no longer finite."""

    def __init__(self, step: int):
        super().__init__(
            f"the loss is not finite at step {step}; the record up to there is kept; "
            "lower plan.optimiser.lr (engram run … --set plan.optimiser.lr=…)"
        )
        self.step = step


@dataclass(frozen=True)
class Moment:
    """A step about to be taken: loss and accuracy on its fresh batch, and the state before its update."""

    step: int
    metrics: dict[str, float]
    weights: Weights
    averages: Weights  # the optimiser's running averages, named kind/matrix

    @property
    def state(self) -> Weights:
        """Weights and averages under the names of a stored state."""
        return {f"weights/{name}": w for name, w in self.weights.items()} | self.averages


def train(
    task: Task,
    model: Architecture,
    plan: Plan,
    seed: int,
    w: Weights,
    gradients: Gradients,
    start: int = 0,
    averages: Weights | None = None,
    until: int | None = None,
) -> Generator[Moment, None, Weights]:
    """Yield a Moment for each of the steps start … plan.steps; the last one only measures.

    `w` is changed in place between yields. With `until`, training ends before that step is measured. Returns the
    optimiser's averages. Batch t depends only on (task, seed, t), so starting at `start` with the state stored there
    gives the same numbers as never having stopped. Of a curriculum this is one stage: its task, and its part of the
    plan (Plan.at).
    """
    optimiser = plan.optimiser.over({name: w[name] for name in plan.trained})
    _restore(optimiser, plan, w, averages or {})
    for step in range(start, plan.steps + 1 if until is None else until):
        batch = task.sample(seed, step, plan.batch)
        batch.check(task, plan.batch, plan.loss)
        names = plan.trained_at(step) if step < plan.steps else ()
        measured = gradients(model, w, batch, plan.loss, names)
        if measured.positions and not isfinite(measured.metrics["loss"]):
            raise Diverged(step)
        yield Moment(step, measured.metrics, {name: w[name] for name in plan.trained}, _averages(optimiser, plan, w))
        for name in plan.trained:
            w[name].grad = measured.gradients.get(name)
        if step < plan.steps:
            optimiser.lr = plan.lr_at(step)
            optimiser.step()
    return _averages(optimiser, plan, w)


def _averages(optimiser: Optimiser, plan: Plan, w: Weights) -> Weights:
    return {
        f"{kind}/{name}": value for name in plan.trained for kind, value in optimiser.state.get(w[name], {}).items()
    }


def _restore(optimiser: Optimiser, plan: Plan, w: Weights, averages: Weights) -> None:
    for key, value in averages.items():
        kind, name = key.split("/")
        optimiser.state[w[name]][kind] = value.clone()
