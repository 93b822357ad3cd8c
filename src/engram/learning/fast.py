r"""Loss and gradients of `Simplified` on CPU from the memory algebra: exact, without autograd and without dense maps.

Inputs are embeddings of finite sets, so the kernel works on tables (native/transformer.cpp has the forward pass):

    PP = P W_K1 Pᵀ/τ,  EP = E W_K1 Pᵀ/τ,  PE, EE        F = E Φ1ᵀ,  G = P Φ1ᵀ        H = U' W_O2 W_V2,  U' = U (I + W_F)

and returns the gradient of each table, summed over the batch. The chain rule from tables to matrices is done here, once
a step:

    ∇W_K1 = (Pᵀ ∇PP P + Eᵀ ∇EP P + Pᵀ ∇PE E + Eᵀ ∇EE E)/τ        ∇Φ1 = ∇Fᵀ E + ∇Gᵀ P
    ∇M    = U'ᵀ ∇H  with M = W_O2 W_V2                            ∇U' = Σ_t ∇l_t x1_tᵀ + ∇H Mᵀ,   ∇W_F = Uᵀ ∇U'
"""

from collections.abc import Iterable
from math import sqrt

import numpy as np
import torch
from jaxtyping import Int8
from torch import Tensor

from engram.errors import EngramError
from engram.learning.reference import Measured, read_groups, summary
from engram.models import Architecture, Simplified, Weights
from engram.native import REAL, call, kernel
from engram.tasks import Batch

TRAINABLE = {"W_K1", "W_V1", "W_O1", "W_K2", "W_V2", "W_O2", "W_F", "U"}
OUTPUT, KEYS2, KEYS1, VALUES1, READOUT = 1, 2, 4, 8, 16
WANTED = {
    "W_O2": OUTPUT, "W_V2": OUTPUT, "W_K2": KEYS2, "W_K1": KEYS1, "W_V1": VALUES1, "W_O1": VALUES1,
    "W_F": READOUT, "U": READOUT,
}  # fmt: skip
NO_MEMORY, OVERFLOW_SEEN = 1, 2


def applies(model: object, trained: tuple[str, ...], device: str) -> bool:
    """Whether this path can train these matrices of this model here: no trained input embeddings, CPU, a kernel."""
    return isinstance(model, Simplified) and set(trained) <= TRAINABLE and device == "cpu" and kernel() is not None


def gradients(model: Architecture, w: Weights, batch: Batch, loss: str, names: tuple[str, ...]) -> Measured:
    """The same as `reference.gradients`."""
    assert isinstance(model, Simplified)
    tables = _tables(model, w)
    groups = read_groups(batch, loss)
    group = numbered(groups, batch)
    positions = int((group >= 0).sum())
    wanted = sum({WANTED[name] for name in names})
    finite = all(bool(torch.isfinite(table).all()) for table in tables.values())
    sums, found, outcome = _run_kernel(tables, batch, group, len(groups), wanted, 1 / max(1, positions))
    metrics = summary(dict(zip(groups, sums.tolist(), strict=True)))
    if outcome == OVERFLOW_SEEN or not finite:
        metrics["loss"] = float("nan")  # the kernel's fast arithmetic need not carry a NaN through
    return Measured({name: _chain(name, model, w, found) for name in names}, metrics, positions)


def numbered(groups: dict[str, np.ndarray], batch: Batch) -> Int8[np.ndarray, "B T"]:
    """The number of the group of each position that is read, −1 at the others."""
    group = np.full(batch.tokens.shape, -1, dtype=np.int8)
    for number, mask in enumerate(groups.values()):
        group[mask] = number
    return group


def _temperature(model: Simplified) -> float:
    return sqrt(model.d) if model.scale == "standard" else 1.0


def _readout(w: Weights) -> Tensor:
    """U' = U (I + W_F)."""
    return w["U"] + w["U"] @ w["W_F"] if "W_F" in w else w["U"]


def _tables(model: Simplified, w: Weights) -> Weights:
    E, P, tau = w["E"], w["P"], _temperature(model)
    keys = {"E": E @ w["W_K1"].T / tau, "P": P @ w["W_K1"].T / tau}  # row s: W_K1 x_s / τ
    values = w["W_V1"].T @ w["W_O1"].T  # Φ1ᵀ
    readout = _readout(w)
    return {
        "PP": P @ keys["P"].T, "EP": E @ keys["P"].T, "PE": P @ keys["E"].T, "EE": E @ keys["E"].T,
        "F": E @ values, "G": P @ values, "E": E, "P": P, "U": readout,
        "H": readout @ w["W_O2"] @ w["W_V2"], "K": w["W_K2"] / tau,
    }  # fmt: skip


def _run_kernel(
    tables: Weights, batch: Batch, group: np.ndarray, groups: int, wanted: int, weight: float
) -> tuple[np.ndarray, Weights, int]:
    """Sums (loss, right guesses, positions) by group, the gradients of the tables, and how it went."""
    (B, T), (Tmax, d), N = batch.tokens.shape, tables["P"].shape, len(tables["E"])
    dtype = tables["P"].dtype
    refuse_what_does_not_fit(batch, Tmax, N, dtype)
    shapes = {
        "PP": (Tmax, Tmax), "EP": (N, Tmax), "PE": (Tmax, N), "EE": (N, N),
        "F": (N, d), "G": (Tmax, d), "LX": (N, d), "LC": (N, d), "K": (d, d),
    }  # fmt: skip
    found = {name: torch.empty(shape, dtype=dtype) for name, shape in shapes.items()}
    sums, given = np.zeros((groups, 3)), [table.contiguous() for table in tables.values()]
    integers = (side.astype(np.int32, copy=False) for side in (batch.tokens, batch.targets))
    sizes = (B, T, Tmax, N, d, groups, torch.get_num_threads(), wanted, weight)
    arrays = (*integers, group, addresses(given), addresses(found.values()), sums)
    outcome = call(f"gradients_{REAL[dtype.itemsize]}", (*sizes, *arrays))
    if outcome == NO_MEMORY:
        raise MemoryError
    return sums, found, outcome


def addresses(tensors: Iterable[Tensor | None]) -> np.ndarray:
    """Where each begins; null where there is none."""
    return np.array([0 if tensor is None else tensor.data_ptr() for tensor in tensors], dtype=np.uintp)


def refuse_what_does_not_fit(batch: Batch, Tmax: int, N: int, dtype: torch.dtype) -> None:
    """The kernel trusts its sizes: what would read or write beyond its tables stops here."""
    both = (batch.tokens, batch.targets)
    if batch.tokens.shape[1] > Tmax or min(z.min() for z in both) < 0 or max(z.max() for z in both) >= N:
        raise EngramError(f"the batch does not fit the model: at most {Tmax} positions, tokens in 0 … {N - 1}")
    if dtype not in (torch.float32, torch.float64):
        raise EngramError(f"the fast path computes in float32 or float64, not {dtype}; use the reference path")


def _chain(name: str, model: Simplified, w: Weights, g: Weights) -> Tensor:
    """The gradient of a matrix from those of the tables."""
    E, P, tau = w["E"], w["P"], _temperature(model)
    if name == "W_K1":
        return ((P.T @ g["PP"] + E.T @ g["EP"]) @ P + (P.T @ g["PE"] + E.T @ g["EE"]) @ E) / tau
    if name == "W_K2":
        return g["K"] / tau
    if name in ("W_V1", "W_O1"):
        values = g["F"].T @ E + g["G"].T @ P  # ∇Φ1
        return w["W_O1"].T @ values if name == "W_V1" else values @ w["W_V1"].T
    if name in ("W_V2", "W_O2"):
        M = _readout(w).T @ g["LC"]
        return w["W_O2"].T @ M if name == "W_V2" else M @ w["W_V2"].T
    readout = g["LX"] + g["LC"] @ (w["W_O2"] @ w["W_V2"]).T  # ∇U'
    if name == "W_F":
        return w["U"].T @ readout
    return readout + readout @ w["W_F"].T if "W_F" in w else readout
