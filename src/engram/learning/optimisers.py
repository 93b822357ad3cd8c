"""SGD and Adam, bit by bit those of torch.optim, and Muon.

They are our own because torch.optim loads torch's compiler first: a second in every process.
"""

from abc import ABC, abstractmethod
from collections import defaultdict

import torch
from torch import Tensor


class Optimiser(ABC):
    """Moves parameters along their gradients. `state` has its running averages, by parameter, under torch's names."""

    def __init__(self, parameters: list[Tensor], lr: float):
        self.parameters, self.lr = parameters, lr
        self.state: defaultdict[Tensor, dict[str, Tensor]] = defaultdict(dict)

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    def step(self) -> None:
        """A parameter without gradient is left alone: neither momentum nor decay."""
        with torch.no_grad():
            for parameter in self.parameters:
                if parameter.grad is not None:
                    self._move(parameter, parameter.grad)

    @abstractmethod
    def _move(self, W: Tensor, gradient: Tensor) -> None: ...


class Momentum(Optimiser):
    """m ← μ m + (∇L + λ W);  W ← W − η m; the first m is ∇L + λ W."""

    def __init__(self, parameters: list[Tensor], lr: float, momentum: float, weight_decay: float):
        super().__init__(parameters, lr)
        self.momentum, self.weight_decay = momentum, weight_decay

    def _move(self, W: Tensor, gradient: Tensor) -> None:
        if self.weight_decay:
            gradient = gradient.add(W, alpha=self.weight_decay)
        W.add_(self._averaged(W, gradient) if self.momentum else gradient, alpha=-self.lr)

    def _averaged(self, W: Tensor, gradient: Tensor) -> Tensor:
        state = self.state[W]
        if "momentum_buffer" in state:
            state["momentum_buffer"].mul_(self.momentum).add_(gradient)
        else:
            state["momentum_buffer"] = gradient.detach().clone()
        return state["momentum_buffer"]


class Moments(Optimiser):
    """m ← β₁ m + (1−β₁) ∇L;  v ← β₂ v + (1−β₂) ∇L²;  W ← (1 − ηλ) W − η m̂/(√v̂ + ε)."""

    def __init__(
        self, parameters: list[Tensor], lr: float, betas: tuple[float, float], eps: float, weight_decay: float
    ):
        super().__init__(parameters, lr)
        self.betas, self.eps, self.weight_decay = betas, eps, weight_decay

    def _move(self, W: Tensor, gradient: Tensor) -> None:
        (a, b), state = self.betas, self.state[W]
        if not state:
            state |= {"step": torch.tensor(0.0), "exp_avg": torch.zeros_like(W), "exp_avg_sq": torch.zeros_like(W)}
        if self.weight_decay:
            W.mul_(1 - self.lr * self.weight_decay)
        m, v = state["exp_avg"].lerp_(gradient, 1 - a), state["exp_avg_sq"]
        v.mul_(b).addcmul_(gradient, gradient, value=1 - b)
        state["step"] += 1
        t = state["step"].item()
        spread = (v.sqrt() / (1 - b**t) ** 0.5).add_(self.eps)
        W.addcdiv_(m, spread, value=-self.lr / (1 - a**t))


class Orthogonal(Optimiser):
    """m ← μ m + (1−μ) ∇L;  W ← W − η √max(1, rows/columns) O(μ m + (1−μ) ∇L); `rest` moves its own parameters."""

    def __init__(self, matrices: list[Tensor], lr: float, momentum: float, rest: Optimiser):
        self.rest, self._share = rest, rest.lr / lr
        super().__init__([*matrices, *rest.parameters], lr)
        self.momentum, rest.state = momentum, self.state
        self._moved_by_rest = frozenset(map(id, rest.parameters))

    def step(self) -> None:
        self.rest.lr = self.lr * self._share
        super().step()

    def _move(self, W: Tensor, gradient: Tensor) -> None:
        if id(W) in self._moved_by_rest:
            self.rest._move(W, gradient)
            return
        state = self.state[W]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(W)
        m = state["momentum_buffer"].lerp_(gradient, 1 - self.momentum)
        size = max(1.0, W.shape[0] / W.shape[1]) ** 0.5
        W.add_(orthogonalised(gradient.lerp(m, self.momentum)), alpha=-self.lr * size)


QUINTIC = (3.4445, -4.7750, 2.0315)  # steep at 0: after five steps singular values lie between 0.7 and 1.2


def orthogonalised(M: Tensor, steps: int = 5) -> Tensor:
    """M with singular values of about 1: X ← a X + (b X Xᵀ + c (X Xᵀ)²) X, from X = M/‖M‖."""
    a, b, c = QUINTIC
    X = M.mT if M.shape[0] > M.shape[1] else M
    X = X / X.norm().clamp(min=1e-7)
    for _ in range(steps):
        A = X @ X.mT
        X = a * X + torch.addmm(A, A, A, beta=b, alpha=c) @ X
    return X.mT if M.shape[0] > M.shape[1] else X
