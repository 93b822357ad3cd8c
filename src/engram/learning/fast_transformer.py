r"""Loss and gradients of a `Transformer` without layer norms, one head a layer: exact, and only where they are needed.

Three identities leave fewer products than the readable forward pass has:

    M (e_z + p_t) = M e_z + M p_t                    matrices that read embeddings are applied to N + T rows, once
    W_O Σ_s a_ts W_V x_s = (W_O W_V) Σ_s a_ts x_s    the two matrices of a head act as one
    W_Q x_t · W_K x_s = (W_Kᵀ W_Q x_t) · x_s         keys need no matrix of their own

The last layer, feed-forward and all, is computed only at the positions that the loss reads. Where these are the visits
of one trigger, a sixth of the text, a step has two fifths of the products of a dense one.
"""

from collections.abc import Callable
from math import sqrt

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import embedding

from engram.learning.reference import Measured, measure
from engram.models import Architecture, Transformer, Weights
from engram.tasks import Batch

Through = Callable[[Float[Tensor, "m d"]], Float[Tensor, "B T m"]]  # M ↦ M x_t at every position


def applies(model: object) -> bool:
    """Whether this path can train the model: inputs are sums of embeddings, and a head has one value matrix."""
    if not isinstance(model, Transformer) or model.norm != "none" or model.positions != "embedded" or model.biases:
        return False
    return all(layer.heads == 1 for layer in model.layers)


def gradients(model: Architecture, w: Weights, batch: Batch, loss: str, names: tuple[str, ...]) -> Measured:
    """The same as `reference.gradients`."""
    return measure(logits_at, model, w, batch, loss, names)


def logits_at(
    model: Architecture, w: Weights, tokens: Int[Tensor, "B T"], read: Bool[Tensor, "B T"]
) -> Float[Tensor, "n N"]:
    """The logits of model.forward at the positions that are read, in their order."""
    assert isinstance(model, Transformer)
    last, x = len(model.layers), w["E"][tokens] + w["P"][: tokens.shape[1]]
    for i in range(1, last):
        x = x + _attend(model, w, i, x, _of_embeddings(w, tokens) if i == 1 else lambda M, x=x: x @ M.T)
        x = _fed(model, w, i, x)
    return _fed(model, w, last, _attend_at(model, w, last, x, read)) @ w["U"].T


def _of_embeddings(w: Weights, tokens: Int[Tensor, "B T"]) -> Through:
    """M x_t from the rows M e_z and M p_t."""
    return lambda M: embedding(tokens, w["E"] @ M.T) + w["P"][: tokens.shape[1]] @ M.T


def _fed(model: Transformer, w: Weights, i: int, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
    return x if model.layers[i - 1].feed_forward == "none" else x + model.feed_forward(w, i, x)


def _temperature(model: Transformer) -> float:
    return 1.0 if model.scale == "unit" else sqrt(model.d)


def _attend(
    model: Transformer, w: Weights, i: int, x: Float[Tensor, "B T d"], through: Through
) -> Float[Tensor, "B T d"]:
    """What the head of layer i writes at every position."""
    T, queries = x.shape[1], x if f"W_Q{i}" not in w else through(w[f"W_Q{i}"])
    keys = through(w[f"W_K{i}"] / _temperature(model))
    future = torch.full((T, T), -torch.inf, dtype=x.dtype, device=x.device).triu(1)
    attention = torch.baddbmm(future, queries, keys.mT).softmax(dim=-1)
    return attention @ through(w[f"W_O{i}"] @ w[f"W_V{i}"])


def _attend_at(
    model: Transformer, w: Weights, i: int, x: Float[Tensor, "B T d"], read: Bool[Tensor, "B T"]
) -> Float[Tensor, "n d"]:
    """The residual stream after the head of layer i, at the positions that are read."""
    at, real = _places(read)
    x_t = x.gather(1, at[:, :, None].expand(-1, -1, model.d))
    queries = x_t if f"W_Q{i}" not in w else x_t @ w[f"W_Q{i}"].T
    scores = queries @ w[f"W_K{i}"] / _temperature(model) @ x.mT
    future = torch.arange(x.shape[1], device=x.device) > at[:, :, None]
    mixed = (scores.masked_fill(future, -torch.inf).softmax(dim=-1) @ x)[real]
    return x_t[real] + mixed @ (w[f"W_O{i}"] @ w[f"W_V{i}"]).T


def _places(read: Bool[Tensor, "B T"]) -> tuple[Int[Tensor, "B Q"], Bool[Tensor, "B Q"]]:
    """The positions read in each sequence, filled up with others to the largest number, and which of them are real."""
    count = read.sum(dim=1, keepdim=True)
    most = int(count.max())
    first = read.int().argsort(dim=1, descending=True, stable=True)
    return first[:, :most], torch.arange(most, device=read.device) < count
