r"""The first step of W_O2 as theory has it, beside the one that was taken.

    exact      −∇L = U'ᵀ Σ (1{y=k} − p̂(k)) x ᵀ      Lemma 1 on the batch: x what the head reads, p̂ the model's own
    uniform    the same with p̂ = 1/N and x = (1/t) Σ_{s≤t} W_V2 e_{z_s}: attention and predictions uniform, no residual
                stream, as the paper's analysis of early training has it

U' = U (1 + W_F) where there is a W_F. Sums run over the positions that the loss reads, divided by their number.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.errors import EngramError
from engram.learning import SGD
from engram.learning.reference import on, read_groups
from engram.models import Simplified, Weights
from engram.specs import Train
from engram.theory.lemmas import lemma1_gradient, surprise

MATRIX = "W_O2"
AT_ONCE = 2**14  # tokens
MOST_TOKENS = 2**18
Matrix = Float[Tensor, "d d"]


@dataclass(frozen=True)
class Read:
    """Some of the positions that the loss reads: what the head reads there, by the model and by theory."""

    x: Float[Tensor, "n d"]
    x_uniform: Float[Tensor, "n d"]
    logits: Float[Tensor, "n N"]
    y: Int[Tensor, " n"]


def refusal(spec: Train) -> str | None:
    """Why theory says nothing of the first step; None where it does."""
    now = spec.at(0)
    if not isinstance(spec.model, Simplified):
        kind = type(spec.model).__name__
        return f"the first step of {MATRIX} is told of Simplified, which this theory describes, not of {kind}"
    if MATRIX not in now.plan.trained_at(0) or spec.silent(0):
        return f"{MATRIX} does not move at step 0"
    if now.plan.lr_at(0) == 0:
        return "the step size of step 0 is zero"
    if now.plan.batch * now.task.T > MOST_TOKENS:
        return f"a batch of {now.plan.batch * now.task.T:,} tokens is too large to be looked at here"
    return None


@torch.no_grad()
def gradients(spec: Train, w: Weights) -> dict[str, Matrix]:
    """∇L of the first batch with respect to W_O2 in both ways, in float64."""
    w = {name: value.double() for name, value in w.items()}
    readout = w["U"] + w["U"] @ w["W_F"] if "W_F" in w else w["U"]
    parts = list(_reads(spec, w))
    n = sum(len(part.y) for part in parts)
    if n == 0:
        raise EngramError("theory: the loss reads no position of the first batch")
    found = {"exact": torch.zeros_like(w[MATRIX]), "uniform": torch.zeros_like(w[MATRIX])}
    for part in parts:
        joint = torch.nn.functional.one_hot(part.y, len(readout)).double() / n
        found["exact"] -= readout.T @ surprise(part.logits, joint).T @ part.x
        found["uniform"] += lemma1_gradient(torch.zeros_like(w[MATRIX]), part.x_uniform, w["U"], joint)
    return found


def _reads(spec: Train, w: Weights) -> Iterator[Read]:
    now, cpu = spec.at(0), torch.device("cpu")
    batch = now.task.sample(spec.seed, 0, now.plan.batch)
    read = torch.stack([on(cpu, mask) for mask in read_groups(batch, now.plan.loss).values()]).any(0)
    tokens, targets = on(cpu, batch.tokens), on(cpu, batch.targets)
    for part in torch.arange(len(tokens)).split(max(1, AT_ONCE // tokens.shape[1])):
        trace, here = spec.model.forward(w, tokens[part]), read[part]
        values = (trace.written["embedding"] + trace.written["head1"]) @ w["W_V2"].T
        t = torch.arange(1, tokens.shape[1] + 1, dtype=values.dtype)[:, None]
        averages = (w["E"][tokens[part]] @ w["W_V2"].T).cumsum(1) / t
        yield Read((trace.attention2 @ values)[here], averages[here], trace.logits[here], targets[part][here])


def compared(spec: Train, gradient: Matrix, step: Matrix) -> dict[str, float | None]:
    """Cosine of −η∇ with the step that was taken, and ‖step‖/‖η∇‖, where the optimiser takes plain steps."""
    now = spec.at(0)
    expected = -now.plan.lr_at(0) * gradient
    sizes = float(expected.norm()), float(step.norm())
    cosine = float((expected * step).sum()) / (sizes[0] * sizes[1]) if min(sizes) > 0 else None
    plain = isinstance(now.plan.optimiser, SGD)
    return {"cosine": cosine, "ratio": sizes[1] / sizes[0] if plain and sizes[0] > 0 else None, "size": sizes[0]}
