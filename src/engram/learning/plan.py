"""How a model is trained."""

from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, InstanceOf, model_validator

from engram.errors import did_you_mean
from engram.learning.optimisers import Moments, Momentum, Optimiser, Orthogonal
from engram.models import Weights
from engram.tasks import Task
from engram.values import Value

Rate = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
Steps = Annotated[int, Field(ge=0)]


class SGD(Value, name="learning.plan.SGD"):
    """m ← μ m + (∇L + λ W);  W ← W − η m,  with η = lr, μ = momentum, λ = weight_decay (torch.optim.SGD).

    lr              learning rate η
    momentum        μ, the share of the last update that is kept
    weight_decay    λ, added to the gradient as λ W
    """

    lr: Rate
    momentum: Share = 0.0
    weight_decay: Annotated[float, Field(ge=0)] = 0.0

    def over(self, parameters: Weights) -> Optimiser:
        """The optimiser for these parameters."""
        return Momentum([*parameters.values()], self.lr, self.momentum, self.weight_decay)


class Adam(Value, name="learning.plan.Adam"):
    """m ← β₁ m + (1−β₁) ∇L;  v ← β₂ v + (1−β₂) ∇L²;  W ← (1 − ηλ) W − η m̂/(√v̂ + ε)  (torch.optim.AdamW).

    Without λ = weight_decay this is torch.optim.Adam.

    lr              learning rate η
    betas           β₁ and β₂, how slowly the averages of gradients and of their squares forget
    eps             ε, added to the root in the denominator
    weight_decay    λ: weights shrink by the factor 1 − ηλ in each step
    """

    lr: Rate
    betas: tuple[Share, Share] = (0.9, 0.999)
    eps: Annotated[float, Field(gt=0)] = 1e-8
    weight_decay: Annotated[float, Field(ge=0)] = 0.0

    def over(self, parameters: Weights) -> Optimiser:
        """The optimiser for these parameters."""
        return Moments([*parameters.values()], self.lr, self.betas, self.eps, self.weight_decay)


class Muon(Value, name="learning.plan.Muon"):
    """m ← μ m + (1−μ) ∇L;  W ← W − η √max(1, rows/columns) O(μ m + (1−μ) ∇L)  for the matrices W_… of layers.

    O makes all singular values about 1 (five steps of Newton and Schulz; torch.optim.Muon without decay). Embeddings,
    U and biases are moved by another optimiser.

    lr          learning rate η of the matrices of layers
    momentum    μ, how slowly the average of gradients forgets
    rest        what moves all other parameters; Plan.rate is a factor of both learning rates
    """

    lr: Rate
    momentum: Share = 0.95
    rest: Adam

    def over(self, parameters: Weights) -> Optimiser:
        """The optimiser for these parameters."""
        layers = [W for name, W in parameters.items() if name.startswith("W_")]
        others = {name: W for name, W in parameters.items() if not name.startswith("W_")}
        return Orthogonal(layers, self.lr, self.momentum, self.rest.over(others))


class Stage(Value, name="learning.plan.Stage"):
    """A part of a curriculum: what is trained, and on which task, from a step on until the next stage begins.

    step       the first step of the stage
    task       the task of its batches; None: the task of the Spec
    trained    the matrices that move, some of those in the plan; None: all of them
    """

    step: Steps
    task: InstanceOf[Task] | None = None
    trained: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _trains_something(self) -> "Stage":
        if self.trained is not None:
            _refuse_names("trained", self.trained)
        return self

    @property
    def sentence(self) -> str:
        """What happens from its first step on."""
        only = "" if self.trained is None else f", only {', '.join(self.trained)}"
        return f"train on {'the task itself' if self.task is None else _described(self.task)}{only}"


class Plan(Value, name="learning.plan.Plan"):
    """Which matrices are trained, on which positions, by what, and for how long.

    optimiser          SGD, Adam or Muon, with their own fields
    rate               (step, factor), …: what lr is multiplied by; linear in between, constant before and after
    stages             a curriculum: from its first step on, each stage has its own task and trains some matrices only
    steps              number of updates; the last row measures the model after them
    batch              sequences in each fresh batch
    trained            names of matrices; all others keep their initial values
    frozen_until       name → first step at which that matrix moves
    loss               a group of the task, or "all"; rows report the groups that the loss reads
    probe_every        steps between recall probes
    attention_every    steps between attention probes, and between tests on other tasks
    groups_every       steps between losses and accuracies of single groups; the loss itself stands in every row
    at_end             names of probes that measure the trained model once, in the last row
    probes             your own probes (engram.probes.probe.Probe)
    snapshot_every     steps between stored weights; steps 0, 1, 2, 4, 8, … and the last one are always stored
    dtype              precision of weights and gradients
    """

    optimiser: SGD | Adam | Muon
    steps: Annotated[int, Field(ge=1)]
    batch: Annotated[int, Field(ge=1)]
    trained: tuple[str, ...] = ("W_K1", "W_K2", "W_O2")
    frozen_until: dict[str, Steps] = {}
    loss: str = "in_context"
    probe_every: Annotated[int, Field(ge=1)] = 5
    attention_every: Annotated[int, Field(ge=1)] = 25
    at_end: tuple[str, ...] = ()
    probes: tuple[InstanceOf[Value], ...] = ()
    snapshot_every: Annotated[int, Field(ge=1)] | None = None
    dtype: Literal["float32", "float64"] = "float32"
    rate: tuple[tuple[Steps, Annotated[float, Field(ge=0)]], ...] = ()
    stages: tuple[Stage, ...] = ()
    groups_every: Annotated[int, Field(ge=1)] = 1

    @model_validator(mode="after")
    def _names_agree(self) -> "Plan":
        _refuse_names("trained", self.trained)
        if len(set(self.at_end)) < len(self.at_end):
            raise ValueError("at_end: a probe is named twice; name each once")
        for name in self.frozen_until:
            if name not in self.trained:
                raise ValueError(f"frozen_until: {name!r} is not trained; allowed: {', '.join(self.trained)}")
        return self

    @model_validator(mode="after")
    def _steps_agree(self) -> "Plan":
        _refuse_disorder("rate", [step for step, _ in self.rate])
        _refuse_disorder("stages", [stage.step for stage in self.stages])
        for i, stage in enumerate(self.stages):
            if stage.step > self.steps:
                raise ValueError(f"stages.{i}: step {stage.step} is beyond the end, {self.steps}")
            for name in stage.trained or ():
                if name not in self.trained:
                    hint = did_you_mean(name, self.trained)
                    raise ValueError(f"stages.{i}: {name!r} is not trained; {hint}allowed: {', '.join(self.trained)}")
        return self

    def lr_at(self, step: int) -> float:
        """The learning rate at this step."""
        if not self.rate:
            return self.optimiser.lr
        steps, factors = zip(*self.rate, strict=True)
        return self.optimiser.lr * float(np.interp(step, steps, factors))

    def stage_at(self, step: int) -> Stage:
        """The stage of this step; before the first one, a stage that is the whole plan."""
        begun = [stage for stage in self.stages if stage.step <= step]
        return begun[-1] if begun else Stage(step=0)

    def at(self, step: int) -> "Plan":
        """The plan of this step's stage, without stages: a matrix that the stage leaves out rests until the end.

        It keeps its values, and the optimiser its averages of it: a stage that trains it again goes on with them.
        """
        if not self.stages:
            return self
        moving = self.stage_at(step).trained or self.trained
        resting = {name: self.steps + 1 for name in self.trained if name not in moving}
        return self.model_copy(update={"stages": (), "frozen_until": self.frozen_until | resting})

    def kept(self, step: int, metrics: dict[str, float]) -> dict[str, float]:
        """What of a batch's metrics the row of this step keeps: at the end and when groups are due, all."""
        due = step % self.groups_every == 0 or step == self.steps
        return metrics if due else {name: value for name, value in metrics.items() if name == "loss"}

    def trained_at(self, step: int) -> tuple[str, ...]:
        """The matrices that move at this step."""
        until = self.at(step).frozen_until
        return tuple(name for name in self.trained if step >= until.get(name, 0))


def _refuse_names(field: str, names: tuple[str, ...]) -> None:
    if not names:
        raise ValueError(f"{field}: nothing to train; name at least one matrix")
    if len(set(names)) < len(names):
        raise ValueError(f"{field}: a matrix is named twice; name each once")


def _refuse_disorder(field: str, steps: list[int]) -> None:
    if any(a >= b for a, b in pairwise(steps)):
        raise ValueError(f"{field}: they come in the order of their steps; got steps {', '.join(map(str, steps))}")


def _described(task: Any) -> str:
    """The name of a task with those of its settings that are plain and not as always."""
    fields = type(task).model_fields if isinstance(task, Value) else {}
    given = {name: getattr(task, name) for name, field in fields.items() if getattr(task, name) != field.default}
    plain = [f"{name}={value}" for name, value in given.items() if isinstance(value, bool | int | float | str | tuple)]
    return f"{type(task).__name__} ({', '.join(plain)})" if plain else type(task).__name__


class FullBatch(Value, name="learning.plan.FullBatch"):
    """Training on all pairs at once until they are recalled: the protocol of Nichani, Lee and Bietti (2025), Fig. 1.

    optimiser      Adam, without decay
    steps          most updates
    check_every    steps between checks of the accuracy; the best one counts, and one above the target ends the training
    hopeless       (step, accuracy): a training whose best accuracy up to that step is lower is given up
    """

    optimiser: Adam
    steps: Annotated[int, Field(ge=1, lt=2**31)]
    check_every: Annotated[int, Field(ge=1)]
    hopeless: tuple[tuple[Annotated[int, Field(ge=1)], Annotated[float, Field(gt=0, lt=1)]], ...] = ()

    @model_validator(mode="after")
    def _nothing_decays(self) -> "FullBatch":
        if self.optimiser.weight_decay:
            raise ValueError(f"optimiser.weight_decay: this protocol has none; got {self.optimiser.weight_decay}")
        return self


class FreshBatch(Value, name="learning.plan.FreshBatch"):
    """Training on fresh prompts by Adam with each of `rates` until one passes: Nichani, Lee and Bietti (2025), Fig. 4.

    rates          learning rates of Adam, each tried by itself
    steps          most updates
    batch          prompts in each fresh batch
    check_every    steps between checks of the accuracy; the best one counts, and one above the target ends the training
    tests          prompts, none of them trained on, that measure the accuracy
    hopeless       (step, accuracy): a training whose best accuracy up to that step is lower is given up
    """

    rates: Annotated[tuple[Rate, ...], Field(min_length=1)] = (1e-3, 3e-3, 1e-2)
    steps: Annotated[int, Field(ge=1, lt=2**31)] = 16384
    batch: Annotated[int, Field(ge=1)] = 1024
    check_every: Annotated[int, Field(ge=1)] = 128
    tests: Annotated[int, Field(ge=1)] = 1024
    hopeless: tuple[tuple[Annotated[int, Field(ge=1)], Annotated[float, Field(gt=0, lt=1)]], ...] = ()
