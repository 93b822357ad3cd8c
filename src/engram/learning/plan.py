"""How a model is trained."""

from typing import Annotated, Literal

import torch
from pydantic import Field, InstanceOf, model_validator

from engram.learning.optimisers import Moments, Momentum, Optimiser
from engram.values import Value

Rate = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
Steps = Annotated[int, Field(ge=0)]


class SGD(Value, name="learning.plan.SGD"):
    """m ← μ m + (∇L + λ W);  W ← W − η m,  with η = lr, μ = momentum, λ = weight_decay (torch.optim.SGD)."""

    lr: Rate
    momentum: Share = 0.0
    weight_decay: Annotated[float, Field(ge=0)] = 0.0

    def over(self, parameters: list[torch.Tensor]) -> Optimiser:
        """The optimiser for these parameters."""
        return Momentum(parameters, self.lr, self.momentum, self.weight_decay)


class Adam(Value, name="learning.plan.Adam"):
    """m ← β₁ m + (1−β₁) ∇L;  v ← β₂ v + (1−β₂) ∇L²;  W ← W − η m̂/(√v̂ + ε)  (torch.optim.Adam, no weight decay)."""

    lr: Rate
    betas: tuple[Share, Share] = (0.9, 0.999)
    eps: Annotated[float, Field(gt=0)] = 1e-8

    def over(self, parameters: list[torch.Tensor]) -> Optimiser:
        """The optimiser for these parameters."""
        return Moments(parameters, self.lr, self.betas, self.eps)


class Plan(Value, name="learning.plan.Plan"):
    """Which matrices are trained, on which positions, by what, and for how long.

    steps           number of updates; the last row measures the model after them
    batch           sequences in each fresh batch
    trained         names of matrices; all others keep their initial values
    frozen_until    name → first step at which that matrix moves
    loss            a group of the task, or "all"; rows report the groups that the loss reads
    probe_every     steps between recall probes
    attention_every steps between attention probes, and between tests on other tasks
    at_end          names of probes that measure the trained model once, in the last row
    probes          your own probes (engram.probes.probe.Probe)
    snapshot_every  steps between stored weights; steps 0, 1, 2, 4, 8, … and the last one are always stored
    """

    optimiser: SGD | Adam
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

    @model_validator(mode="after")
    def _names_agree(self) -> "Plan":
        if not self.trained:
            raise ValueError("trained: nothing to train; name at least one matrix")
        if len(set(self.trained)) < len(self.trained):
            raise ValueError("trained: a matrix is named twice; name each once")
        if len(set(self.at_end)) < len(self.at_end):
            raise ValueError("at_end: a probe is named twice; name each once")
        for name in self.frozen_until:
            if name not in self.trained:
                raise ValueError(f"frozen_until: {name!r} is not trained; allowed: {', '.join(self.trained)}")
        return self

    def trained_at(self, step: int) -> tuple[str, ...]:
        """The matrices that move at this step."""
        return tuple(name for name in self.trained if step >= self.frozen_until.get(name, 0))


class FullBatch(Value, name="learning.plan.FullBatch"):
    """Training on all pairs at once until they are recalled: the protocol of Nichani, Lee and Bietti (2025), Fig. 1.

    check_every    steps between checks of the accuracy; the best one counts, and one above the target ends the training
    hopeless       (step, accuracy): a training whose best accuracy up to that step is lower is given up
    """

    optimiser: Adam
    steps: Annotated[int, Field(ge=1, lt=2**31)]
    check_every: Annotated[int, Field(ge=1)]
    hopeless: tuple[tuple[Annotated[int, Field(ge=1)], Annotated[float, Field(gt=0, lt=1)]], ...] = ()


class FreshBatch(Value, name="learning.plan.FreshBatch"):
    """Training on fresh prompts by Adam with each of `rates` until one passes: Nichani, Lee and Bietti (2025), Fig. 4.

    check_every, hopeless    as in FullBatch; accuracy is measured on `tests` prompts that are not trained on
    """

    rates: Annotated[tuple[Rate, ...], Field(min_length=1)] = (1e-3, 3e-3, 1e-2)
    steps: Annotated[int, Field(ge=1, lt=2**31)] = 16384
    batch: Annotated[int, Field(ge=1)] = 1024
    check_every: Annotated[int, Field(ge=1)] = 128
    tests: Annotated[int, Field(ge=1)] = 1024
    hopeless: tuple[tuple[Annotated[int, Field(ge=1)], Annotated[float, Field(gt=0, lt=1)]], ...] = ()
