"""An induction head planted among other heads: L1H2 looks back and writes, L2H1 reads it in its keys and copies.

    L1H2   W_Qᵀ W_K = β Σ_t p_t p_{t−1}ᵀ, writes Φ e = W_O W_V e
    L2H1   W_Qᵀ W_K = β Σ_k e_k (Φ e_k)ᵀ, writes Σ_k u_k (W_V e_k)ᵀ

The other two heads have small random weights. N + T − 1 ≤ d/2 makes all factors exact.
"""

import torch
from torch import Tensor

from engram.models import Layer, Model, Network, Transformer, network_of
from engram.models.network import Provenance

N, T, D, SHARP = 48, 64, 512, 60.0
PREVIOUS, INDUCTION = (1, 2), (2, 1)
ARCHITECTURE = Transformer(d=D, layers=(Layer(heads=2), Layer(heads=2)), scale="unit")
ROWS = {1: slice(0, D // 2), 2: slice(D // 2, D)}  # of the heads


def planted(seed: int = 0) -> Network:
    """The planted network, in float64."""
    w = {name: value.double() for name, value in ARCHITECTURE.init(N, T, seed).items()}
    for name in (f"W_{letter}{i}" for letter in "QKVO" for i in (1, 2)):
        w[name] *= 0.01
    E, P, U = w["E"], w["P"], w["U"]
    back, ahead = ROWS[PREVIOUS[1]], ROWS[INDUCTION[1]]
    w["W_Q1"][back], w["W_K1"][back] = factors(SHARP * P[1:].T, P[:-1])
    w["W_V1"][back], w["W_O1"][:, back] = orthonormal(1), orthonormal(2).T
    Phi = w["W_O1"][:, back] @ w["W_V1"][back]
    w["W_Q2"][ahead], w["W_K2"][ahead] = factors(SHARP * E.T, E @ Phi.T)
    w["W_V2"][ahead], w["W_O2"][:, ahead] = orthonormal(3), 20 * U.T @ E @ orthonormal(3).T
    return network_of(Model(ARCHITECTURE, w), Provenance("planted", "engram"))


def unplanted(seed: int = 0) -> Network:
    """The same sizes, with random weights."""
    w = {name: value.double() for name, value in ARCHITECTURE.init(N, T, seed).items()}
    return network_of(Model(ARCHITECTURE, w), Provenance("random", "engram"))


def factors(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """W_Q and W_K with W_Qᵀ W_K = left @ right, padded with zeros to half the width."""
    W_Q, W_K = torch.zeros(2, D // 2, D, dtype=torch.float64)
    W_Q[: len(right)], W_K[: len(right)] = left.T, right
    return W_Q, W_K


def orthonormal(seed: int) -> Tensor:
    """Random orthonormal rows, half as many as the width."""
    drawn = torch.randn(D, D // 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return torch.linalg.qr(drawn).Q.T
