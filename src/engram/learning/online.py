r"""Memories that see every sample of heavy-tailed data once, in small batches.

    matrix       logits u_k · (e_z W)         W is trained
    learned      logits u_k · (e_z W)         E, W and U are trained
    exponential  logits u_k · ReLU(e_z)       E and U are trained

All entries begin as N(0, 1/d). With `layernorm` what u_k reads is divided by √(‖·‖² + 1e-6). "SGD" steps by γ g; "sign"
by γ' g/(|g| + 1e-8) with γ' = γ/d for W and γ/√d for E and U: it is torch's Adam with both betas 0, and no sign where
gradients fall below 1e-8.

`train_plainly` is the reference: torch, sample by sample. `train` gives the same numbers from the kernel
(native/online.cpp), which knows which few directions a batch can change.

Cabannes, Dohmatob and Bietti (2024), section 5, and its published code.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Annotated, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor
from torch.nn.functional import cross_entropy

from engram.embeddings import directions
from engram.errors import EngramError
from engram.native import REAL, call, kernel
from engram.tasks.zipf import Zipf
from engram.values import Value

Kind = Literal["matrix", "learned", "exponential"]
Optimiser = Literal["SGD", "sign"]
KINDS: tuple[Kind, ...] = get_args(Kind)
INSIDE_NORM, INSIDE_SIGN = 1e-6, 1e-8
Tokens = Int[np.ndarray, " n"]
Parameters = dict[str, Tensor]
Scores = Float[np.ndarray, "looks N M"]


class Online(Value, name="learning.online.Online"):
    """One way to learn online: a model of width d, an optimiser, its rate γ and the batch.

    kind         matrix: W is trained; learned: E, W and U; exponential: E and U
    optimiser    SGD steps by γ g, sign by its sign; the module has the formulas
    layernorm    whether what U reads is divided by its norm
    d            width
    lr           learning rate γ
    batch        samples of a step
    """

    kind: Kind = "matrix"
    optimiser: Optimiser = "SGD"
    layernorm: bool = False
    d: Annotated[int, Field(ge=1)] = 100
    lr: Annotated[float, Field(gt=0)] = 1.0
    batch: Annotated[int, Field(ge=1)] = 64

    @property
    def trained(self) -> tuple[str, ...]:
        return {"matrix": ("W",), "learned": ("E", "W", "U"), "exponential": ("E", "U")}[self.kind]

    def rate(self, name: str) -> float:
        """The step size of a matrix."""
        if self.optimiser == "SGD":
            return self.lr
        return self.lr / self.d if name == "W" else self.lr / sqrt(self.d)

    def steps(self, n: int) -> int:
        """Steps of one pass over n samples."""
        if n % self.batch:
            raise EngramError(f"batch: {n} samples are not a whole number of batches of {self.batch}")
        return n // self.batch


def initial(task: Zipf, kind: Kind, d: int, seed: int, dtype: torch.dtype = torch.float32) -> Parameters:
    """E, U and, where there is one, W: all entries N(0, 1/d)."""
    rows = {"E": task.N, "W": d, "U": task.M} if kind != "exponential" else {"E": task.N, "U": task.M}
    return {name: directions("gaussian/d", n, d, seed, f"online.{name}", dtype) for name, n in rows.items()}


def scores_of(how: Online, w: Parameters, tokens: Int[Tensor, " B"]) -> Float[Tensor, "B M"]:
    """The logits of all answers."""
    h = w["E"][tokens].relu() if how.kind == "exponential" else w["E"][tokens] @ w["W"]
    return (h / (h.square().sum(1, keepdim=True) + INSIDE_NORM).sqrt() if how.layernorm else h) @ w["U"].T


def train_plainly(how: Online, task: Zipf, first: Parameters, tokens: Tokens, looks: Sequence[int]) -> Scores:
    """The scores of all tokens after the numbers of samples `looks`, by torch alone."""
    w = {name: part.clone().requires_grad_(name in how.trained) for name, part in first.items()}
    batches = torch.from_numpy(tokens).view(-1, how.batch)
    answers, every, found = torch.from_numpy(task.answers), torch.arange(task.N), dict[int, np.ndarray]()
    for t in range(len(batches) + 1):
        if t * how.batch in looks:
            found[t * how.batch] = scores_of(how, w, every).detach().numpy()
        if t < len(batches):
            loss = cross_entropy(scores_of(how, w, batches[t]), answers[batches[t]])
            gradients = torch.autograd.grad(loss, [w[name] for name in how.trained])
            with torch.no_grad():
                for name, g in zip(how.trained, gradients, strict=True):
                    step = g if how.optimiser == "SGD" else g / (g.abs() + INSIDE_SIGN)
                    w[name] -= how.rate(name) * step
    return np.stack([found[n] for n in looks])


def train(how: Online, task: Zipf, first: Parameters, tokens: Tokens, looks: Sequence[int]) -> Scores:
    """The same numbers, from the kernel where there is one."""
    steps = how.steps(len(tokens))
    after = np.array([how.steps(n) for n in looks], np.int32)
    if kernel() is None:
        return train_plainly(how, task, first, tokens, looks)
    parts = [first[name].numpy().copy() if name in first else None for name in "EWU"]
    scores = np.empty((len(after), task.N, task.M), first["E"].numpy().dtype)
    sizes = [
        KINDS.index(how.kind),
        int(how.optimiser == "sign"),
        int(how.layernorm),
        task.N,
        task.M,
        how.d,
        how.batch,
        steps,
    ]
    rates = np.array([how.rate("W"), how.rate("E")])
    given = (*sizes, rates, _whole(tokens, task.N), task.answers.astype(np.int32), *parts, len(after), after, scores)
    if call(f"online_{REAL[scores.dtype.itemsize]}", given) != 0:
        raise EngramError(f"d: not enough memory for a memory of width {how.d}; choose a smaller one")
    return scores


def _whole(tokens: Tokens, N: int) -> Tokens:
    """What the kernel may read: it would look for a token that is not there."""
    if len(tokens) and (tokens.min() < 0 or tokens.max() >= N):
        raise EngramError(f"tokens: they must lie in 0 … {N - 1}")
    return tokens.astype(np.int32)
