r"""Where a prediction comes from: every part of the residual stream has its share of the logits.

    logits = U n(Σ_i x_i) = Σ_i U (x_i − mean x_i)/σ        x_i what part i wrote, σ of the whole stream

The shares add up to the logits exactly. Without a final layer norm, σ = 1 and nothing is centred.
"""

from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.models import Architecture, Trace, Weights
from engram.probes.edges import share, successor_edges
from engram.probes.probe import END_SEQUENCES, InductionProbe, Look, tensor_of
from engram.tasks import Batch, Bigram

TOP = 3  # a global prediction: among the three likeliest successors under π_b


class Attribution(InductionProbe, name="probes.attribution.Attribution"):
    """How much of the right answer each part of the model gives."""

    columns: ClassVar = ("attribution.",)
    called: ClassVar = "attribution"

    def measure(self, look: Look) -> dict[str, float]:
        return shares(look.model, look.w, look.unseen(END_SEQUENCES))


class Preference(InductionProbe, name="probes.attribution.Preference"):
    """Which one the model follows when the induction head and the bigram disagree."""

    columns: ClassVar = ("preference.",)
    called: ClassVar = "preference"

    def measure(self, look: Look) -> dict[str, float]:
        assert isinstance(look.task, Bigram)
        return preference(look.model, look.w, look.task, look.unseen(END_SEQUENCES))


def attribution(model: Architecture, w: Weights, trace: Trace) -> dict[str, Float[Tensor, "B T N"]]:
    """The direct share of each part: "embedding" is the residual, "head2" the induction head, "W_F…" feed-forward."""
    return {name: _readout(model, part, trace.x) @ w["U"].T for name, part in trace.written.items()}


def through_W_F(model: Architecture, w: Weights, trace: Trace) -> dict[str, Float[Tensor, "B T N"]]:
    """The share of W_F split by whose writing it read: W_F is linear, so these add up to its share."""
    read = {name: part for name, part in trace.written.items() if name != "W_F"}
    return {name: _readout(model, part @ w["W_F"].T, trace.x) @ w["U"].T for name, part in read.items()}


def _readout(model: Architecture, part: Tensor, whole: Tensor) -> Tensor:
    if getattr(model, "norm", "none") == "none":
        return part
    sigma = (whole.var(dim=-1, correction=0, keepdim=True) + 1e-5).sqrt()  # the ε of layer_norm
    return (part - part.mean(dim=-1, keepdim=True)) / sigma


@torch.no_grad()
def shares(model: Architecture, w: Weights, batch: Batch) -> dict[str, float]:
    """How much of the right answer each part gives, in context and elsewhere: its share of (logit − mean logit).

    The columns of a group add up to the whole lead of the right answer. A linear W_F is split by what it read:
    "W_F.head2" is what it makes of the induction head, "W_F.embedding" what it knows of the current token.
    """
    trace = model.forward(w, tensor_of(batch.tokens, w))
    parts = attribution(model, w, trace)
    if "W_F" in parts:  # the linear layer of `Simplified`
        del parts["W_F"]
        parts |= {f"W_F.{name}": part for name, part in through_W_F(model, w, trace).items()}
    right = tensor_of(batch.targets, w)[:, :, None]
    leads = {name: (p.gather(2, right)[:, :, 0] - p.mean(dim=2)).cpu().numpy() for name, p in parts.items()}
    return {
        f"attribution.{group}.{name}": float(lead[batch.groups[group]].mean())
        for group in ("in_context", "global")
        for name, lead in leads.items()
    }


@torch.no_grad()
def preference(model: Architecture, w: Weights, task: Bigram, batch: Batch) -> dict[str, float]:
    """Which one the model follows when the induction head and the bigram disagree.

    Counted are positions where the head is active (layer 2 attends most to the successor of an earlier visit of the
    current token) and proposes a token other than the bigram's favourite. Shares of these positions:

    follows    the model predicts the token that the head proposes
    bigram     it predicts the likeliest successor under π_b

    once where the proposal is none of the three likeliest successors (unlikely), once where it is the second or third.
    """
    tokens = tensor_of(batch.tokens, w)
    trace = model.forward(w, tokens)
    looks = trace.attention2.argmax(dim=-1)
    active = successor_edges(tokens).gather(2, looks[:, :, None])[:, :, 0].cpu().numpy()
    proposal, guess = tokens.gather(1, looks).cpu().numpy(), trace.logits.argmax(dim=-1).cpu().numpy()
    rank = _rank(task.table.bigram)[batch.tokens, proposal]
    hits = {"follows": guess == proposal, "bigram": guess == task.table.bigram.argmax(axis=1)[batch.tokens]}
    places = {"unlikely": active & (rank >= TOP), "likely": active & (rank >= 1) & (rank < TOP)}
    shares = {f"preference.{kind}.{hit}": share(hits[hit], where) for kind, where in places.items() for hit in hits}
    return shares | {f"preference.{kind}.positions": float(where.mean()) for kind, where in places.items()}


def _rank(bigram: Float[np.ndarray, "N N"]) -> Int[np.ndarray, "N N"]:
    """0 for the likeliest successor of a row, 1 for the next, …"""
    return np.argsort(np.argsort(-bigram, axis=1, kind="stable"), axis=1)
