"""How a model is trained."""

from typing import Annotated, Literal

import torch
from pydantic import Field, InstanceOf, model_validator

from engram.values import Value

Rate = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
Steps = Annotated[int, Field(ge=0)]


class SGD(Value, name="learning.plan.SGD"):
    """m ← μ m + (∇L + λ W);  W ← W − η m   (η lr, μ momentum, λ weight_decay: torch's semantics)."""

    lr: Rate
    momentum: Share = 0.0
    weight_decay: Annotated[float, Field(ge=0)] = 0.0

    def over(self, parameters: list[torch.Tensor]) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, self.lr, self.momentum, weight_decay=self.weight_decay, foreach=False)


class Adam(Value, name="learning.plan.Adam"):
    """torch.optim.Adam without weight decay."""

    lr: Rate
    betas: tuple[Share, Share] = (0.9, 0.999)
    eps: Annotated[float, Field(gt=0)] = 1e-8

    def over(self, parameters: list[torch.Tensor]) -> torch.optim.Optimizer:
        return torch.optim.Adam(parameters, self.lr, self.betas, self.eps, foreach=False)


class Plan(Value, name="learning.plan.Plan"):
    """Which matrices are trained, on which positions, by what, for how long.

    trained         names of matrices; all others stay at their first values
    frozen_until    name → first step at which that matrix moves
    loss            a group of the task, or "all"; rows report the groups that the loss reads
    probe_every     steps between recall probes
    attention_every steps between attention probes, and between tests on other tasks
    at_end          probes of the trained model, measured once in the last row (engram.runner.probing names them)
    snapshot_every  steps between kept weights; None: at steps 0, 1, 2, 4, 8, … and at the end, which are kept always
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
        return tuple(name for name in self.trained if step >= self.frozen_until.get(name, 0))


class FullBatch(Value, name="learning.plan.FullBatch"):
    """Training on all pairs at once until they are known: the protocol of the published capacity sweeps.

    check_every    steps between looks at the accuracy; the best look counts, and one above the target ends the training
    hopeless       (step, accuracy): a training whose best look up to that step is below that accuracy is given up
    """

    optimiser: Adam
    steps: Annotated[int, Field(ge=1, lt=2**31)]
    check_every: Annotated[int, Field(ge=1)]
    hopeless: tuple[tuple[Annotated[int, Field(ge=1)], Annotated[float, Field(gt=0, lt=1)]], ...] = ()


class FreshBatch(Value, name="learning.plan.FreshBatch"):
    """Training on fresh prompts, once for each learning rate, until one of them is good: how facts are counted.

    check_every, hopeless    as in FullBatch; a look is at `tests` prompts that are not trained on
    """

    rates: Annotated[tuple[Rate, ...], Field(min_length=1)] = (1e-3, 3e-3, 1e-2)
    steps: Annotated[int, Field(ge=1, lt=2**31)] = 16384
    batch: Annotated[int, Field(ge=1)] = 1024
    check_every: Annotated[int, Field(ge=1)] = 128
    tests: Annotated[int, Field(ge=1)] = 1024
    hopeless: tuple[tuple[Annotated[int, Field(ge=1)], Annotated[float, Field(gt=0, lt=1)]], ...] = ()
