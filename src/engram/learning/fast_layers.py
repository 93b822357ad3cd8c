r"""Loss and gradients of any `Transformer` on CPU by the compiled kernel (native/layers.cpp): exact, without autograd.

The kernel reads whole vectors. So the rows (or columns) of every head and the columns of every matrix are padded with
zeros, which changes no product. Keys are given divided by the temperature, which divides their scores. Each matrix is
given twice, in panels of columns: products forward read its transpose, those backward the matrix itself. Gradients come
back in the padded shape, one for each thread.
"""

from math import isfinite, sqrt

import numpy as np
import torch
from jaxtyping import Float, Int32
from torch import Tensor
from torch.nn.functional import pad

from engram.learning.fast import NO_MEMORY, OVERFLOW_SEEN, addresses, numbered, refuse_what_does_not_fit
from engram.learning.reference import Measured, read_groups, summary
from engram.models import Architecture, Transformer, Weights
from engram.native import REAL, call, kernel
from engram.tasks import Batch

COLUMNS, VECTOR = 64, 16  # multiples of the kernel's blocks and vectors on any processor
LETTERS = "QKVOIF"  # the matrices of a layer, in the order of the kernel


def applies(model: object, device: str) -> bool:
    """Whether this path can train the model here."""
    return isinstance(model, Transformer) and device == "cpu" and kernel() is not None


@torch.no_grad()
def gradients(model: Architecture, w: Weights, batch: Batch, loss: str, names: tuple[str, ...]) -> Measured:
    """The same as `reference.gradients`."""
    assert isinstance(model, Transformer)
    refuse_what_does_not_fit(batch, _positions(model, w, batch), len(w["E"]), w["E"].dtype)
    groups, threads = read_groups(batch, loss), max(1, min(torch.get_num_threads(), len(batch.tokens)))
    given = {name: _given(model, name, w[name]) for name in model.names}
    found = {name: _sums(given[name], threads) for name in names}
    sums, outcome = _run_kernel(model, given, found, batch, numbered(groups, batch), len(groups), threads)
    metrics = summary(dict(zip(groups, sums.tolist(), strict=True)))
    if outcome == OVERFLOW_SEEN or not all(map(_is_finite, given.values())):
        metrics["loss"] = float("nan")  # the kernel's fast arithmetic need not carry a NaN through
    taken = {name: _taken(model, name, found[name].sum(dim=0), w[name].shape) for name in names}
    return Measured(taken, metrics, int(sums[:, 2].sum()))


def _positions(model: Transformer, w: Weights, batch: Batch) -> int:
    """So many as P has; rotary ones have no end."""
    return len(w["P"]) if model.positions == "embedded" else batch.tokens.shape[1]


def _run_kernel(
    model: Transformer, given: Weights, found: Weights, batch: Batch, group: np.ndarray, groups: int, threads: int
) -> tuple[np.ndarray, int]:
    """Sums (loss, right guesses, positions) by group, and how it went; gradients are added to `found`."""
    layers = range(1, len(model.layers) + 1)
    names = ["E", "P", "U", *(f"{kind}_{letter}{i}" for i in layers for kind in "Wb" for letter in LETTERS)]
    both = [side for name in names for side in (_read(name, given[name]) if name in given else (None, None))]
    positions, rotary = _positions(model, given, batch), model.positions == "rotary"
    sizes = (*batch.tokens.shape, positions, len(given["E"]), model.d, len(model.layers), model.norm == "pre", rotary)
    integers = (side.astype(np.int32, copy=False) for side in (batch.tokens, batch.targets))
    sums, weight = np.zeros((threads, groups, 3)), 1 / max(1, int((group >= 0).sum()))
    arrays = (*integers, group, addresses(both), addresses(map(found.get, names)), sums)
    numbers = np.array([*sizes, groups, threads], dtype=np.int32)
    outcome = call(f"layers_{REAL[given['E'].dtype.itemsize]}", (numbers, _kinds(model), weight, *arrays))
    if outcome == NO_MEMORY:
        raise MemoryError
    return sums.sum(axis=0), outcome


def _read(name: str, W: Float[Tensor, "m n"]) -> tuple[Tensor, Tensor | None]:
    """A matrix as the kernel reads it: backward, and forward where it multiplies."""
    return (_padded(W), None) if name in "EP" or name.startswith("b_") else (_panels(W), _panels(W.T))


def _kinds(model: Transformer) -> Int32[np.ndarray, "L 3"]:
    """Of each layer its heads, the columns that a head is given, and the columns of W_F."""
    units = {"none": 0, "linear": model.d, "mlp": model.hidden}
    kinds = [(layer.heads, _up(model.d // layer.heads, VECTOR), units[layer.feed_forward]) for layer in model.layers]
    return np.array(kinds, dtype=np.int32)


def _given(model: Transformer, name: str, W: Float[Tensor, "*m n"]) -> Float[Tensor, "M N"]:
    """A matrix with padded heads, keys divided by the temperature; a bias is a matrix of one row."""
    if name.startswith("b_"):
        return _given(model, f"W{name[1:]}", W[:, None]).T if name[2] in "QKV" else W[None]
    if name.startswith(("W_Q", "W_V")):
        return _wide(W, _heads(model, name))
    if name.startswith("W_K"):
        return _wide(W, _heads(model, name)) / _temperature(model, name)
    return _wide(W.T, _heads(model, name)).T if name.startswith("W_O") else W


def _taken(model: Transformer, name: str, g: Float[Tensor, "M N"], shape: torch.Size) -> Float[Tensor, "*m n"]:
    """The gradient of a matrix or bias from that of what was given."""
    if name.startswith("b_"):
        column = torch.Size((*shape, 1))
        return _taken(model, f"W{name[1:]}", g.T, column)[:, 0] if name[2] in "QKV" else g[0, : shape[0]].contiguous()
    if name.startswith(("W_Q", "W_V")):
        g = _narrow(g, _heads(model, name), model.d)
    elif name.startswith("W_K"):
        g = _narrow(g, _heads(model, name), model.d) / _temperature(model, name)
    elif name.startswith("W_O"):
        g = _narrow(g.T, _heads(model, name), model.d).T
    return g[:, : shape[1]].contiguous()


def _heads(model: Transformer, name: str) -> int:
    return model.layers[int(name[3:]) - 1].heads


def _temperature(model: Transformer, name: str) -> float:
    return 1.0 if model.scale == "unit" else sqrt(model.d // _heads(model, name))


def _wide(W: Float[Tensor, "d n"], heads: int) -> Float[Tensor, "D n"]:
    """The rows of every head filled up to whole vectors."""
    rows = len(W) // heads
    return _filled(W.unflatten(0, (heads, rows)).mT, _up(rows, VECTOR)).mT.flatten(0, 1)


def _narrow(W: Float[Tensor, "M n"], heads: int, d: int) -> Float[Tensor, "d n"]:
    """Without what `_wide` and padding have added."""
    wide = _up(d // heads, VECTOR)
    return W[: heads * wide].unflatten(0, (heads, wide))[:, : d // heads].flatten(0, 1)


def _sums(W: Float[Tensor, "m n"], threads: int) -> Float[Tensor, "h m N"]:
    """Where each thread adds up the gradient of a padded matrix."""
    return torch.zeros(threads, len(W), _up(W.shape[1], COLUMNS), dtype=W.dtype)


def _panels(W: Float[Tensor, "m n"]) -> Float[Tensor, "p m c"]:
    """So many columns at a time, one panel after the other."""
    return _padded(W).unflatten(1, (-1, COLUMNS)).transpose(0, 1).contiguous()


def _padded(W: Float[Tensor, "m n"]) -> Float[Tensor, "m N"]:
    return _filled(W, _up(W.shape[1], COLUMNS)).contiguous()


def _filled(W: Float[Tensor, "*m n"], columns: int) -> Float[Tensor, "*m N"]:
    return W if W.shape[-1] == columns else pad(W, (0, columns - W.shape[-1]))


def _up(size: int, to: int) -> int:
    return -(-size // to) * to


def _is_finite(W: Float[Tensor, "m n"]) -> bool:
    return all(map(isfinite, W.aminmax()))
