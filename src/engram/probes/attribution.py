r"""Where a prediction comes from: every part of the residual stream has its share of the logits.

    logits = U n(Σ_i x_i) = Σ_i U (x_i − mean x_i)/σ        x_i what part i wrote, σ of the whole stream

The shares add up to the logits exactly. Without a final layer norm, σ = 1 and nothing is centred.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from engram.models import Simplified, Trace, Transformer, Weights
from engram.tasks import Batch, Bigram
from engram.tasks.oracle import previous_visits

TOP = 3  # a global prediction: among the three likeliest successors under π_b


def attribution(model: Simplified | Transformer, w: Weights, trace: Trace) -> dict[str, Float[Tensor, "B T N"]]:
    """The direct share of each part: "embedding" is the residual, "head2" the induction head, "W_F…" feed-forward."""
    return {name: _readout(model, part, trace.x) @ w["U"].T for name, part in trace.written.items()}


def through_W_F(model: Simplified, w: Weights, trace: Trace) -> dict[str, Float[Tensor, "B T N"]]:
    """The share of W_F split by whose writing it read: W_F is linear, so these add up to its share."""
    read = {name: part for name, part in trace.written.items() if name != "W_F"}
    return {name: _readout(model, part @ w["W_F"].T, trace.x) @ w["U"].T for name, part in read.items()}


def _readout(model: Simplified | Transformer, part: Tensor, whole: Tensor) -> Tensor:
    if isinstance(model, Simplified) or model.norm == "none":
        return part
    sigma = (whole.var(dim=-1, correction=0, keepdim=True) + 1e-5).sqrt()  # the ε of layer_norm
    return (part - part.mean(dim=-1, keepdim=True)) / sigma


@torch.no_grad()
def preference(model: Simplified | Transformer, w: Weights, task: Bigram, batch: Batch) -> dict[str, float]:
    """Whom the model believes when the induction head and the bigram disagree.

    Asked are positions whose token was visited before. The head proposes the token that layer 2 attends to most, the
    model follows if it predicts just that. Where the proposal is the bigram's own favourite, following tells nothing.

    unlikely    follows, where the proposal is none of the three likeliest successors under π_b
    likely      follows, where it is the second or third of them
    """
    tokens = torch.from_numpy(np.array(batch.tokens)).to(w["E"].device)
    trace = model.forward(w, tokens)
    proposal = retrieved(trace, tokens, task.N).cpu().numpy()
    follows = trace.logits.argmax(dim=-1).cpu().numpy() == proposal
    rank = _rank(task.table.bigram)[batch.tokens, proposal]
    seen = previous_visits(batch.tokens) >= 0
    places = {"unlikely": seen & (rank >= TOP), "likely": seen & (rank >= 1) & (rank < TOP)}
    shares = {f"preference.{name}": share(follows, where) for name, where in places.items()}
    return shares | {f"preference.{name}.positions": float(where.mean()) for name, where in places.items()}


def retrieved(trace: Trace, tokens: Int[Tensor, "B T"], N: int) -> Int[Tensor, "B T"]:
    """The token that gets the most attention in layer 2, all its visits together."""
    pattern = trace.attention2
    by_token = torch.zeros(*tokens.shape, N, dtype=pattern.dtype, device=pattern.device)
    by_token.scatter_add_(2, tokens[:, None, :].expand(pattern.shape), pattern)
    return by_token.argmax(dim=-1)


def _rank(bigram: Float[np.ndarray, "N N"]) -> Int[np.ndarray, "N N"]:
    """0 for the likeliest successor of a row, 1 for the next, …"""
    return np.argsort(np.argsort(-bigram, axis=1, kind="stable"), axis=1)


def share(hits: Bool[np.ndarray, "B T"], where: Bool[np.ndarray, "B T"]) -> float:
    """How often, among the positions asked; no number where none is."""
    return float(hits[where].mean()) if where.any() else float("nan")
