r"""Every gradient is a memory: ∇_W L = Σ_places (∂L/∂y) xᵀ, in the simplified model.

A place is a sequence and a position where a matrix acts, y = W x. So each step of gradient descent writes associations
from the inputs x to the backward vectors −∂L/∂y.

    x¹ = x + W_O1 W_V1 Σ_s a_ts x_s,   a = softmax over s ≤ t of x_t · W_K1 x_s,   x = e_z + p        (layer 2 alike)
    logits = U (x² + W_F x²)
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.embeddings import directions
from engram.values import Rows, generator, law

Vectors = Float[Tensor, "A T d"]
Maps = Float[Tensor, "A T T"]
Logits = Float[Tensor, "A T N"]
Places = dict[str, tuple[Tensor, Tensor]]  # by matrix: ∂L/∂y and x at each place
MATRICES = ("E", "P", "U", "W_K1", "W_V1", "W_O1", "W_K2", "W_V2", "W_O2", "W_F")


@dataclass(frozen=True)
class Forward:
    """Inputs and attention of both layers, what W_F reads, and the logits."""

    x: tuple[Vectors, Vectors]
    attention: tuple[Maps, Maps]
    x2: Vectors
    x3: Vectors
    logits: Logits


def forward(w: dict[str, Tensor], tokens: Int[Tensor, "A T"]) -> Forward:
    """The simplified model at unit scale, with W_F, layer by layer."""
    T = tokens.shape[1]
    future = torch.full((T, T), -torch.inf, dtype=w["E"].dtype).triu(1)
    x, inputs, attention = w["E"][tokens] + w["P"][:T], [], []
    for i in "12":
        a = torch.softmax(x @ w[f"W_K{i}"] @ x.mT + future, dim=-1)
        inputs, attention = [*inputs, x], [*attention, a]
        x = x + a @ x @ w[f"W_V{i}"].T @ w[f"W_O{i}"].T
    x3 = x + x @ w["W_F"].T
    return Forward((inputs[0], inputs[1]), (attention[0], attention[1]), x, x3, x3 @ w["U"].T)


def places(w: dict[str, Tensor], tokens: Int[Tensor, "A T"], p: Logits) -> Places:
    """(∂L/∂y, x) at every place y = W x of every matrix; p[a, t, k] is the law of sequence, position and label."""
    f = forward(w, tokens)
    wrong = p.sum(2, keepdim=True) * torch.softmax(f.logits, dim=2) - p  # ∂L/∂logits
    back = wrong @ w["U"]
    found: Places = {"U": (wrong, f.x3), "W_F": (back, f.x2)}
    back = back + back @ w["W_F"]
    for i in (2, 1):
        of_layer, back = _layer(w, i, f.x[i - 1], f.attention[i - 1], back)
        found |= of_layer
    # E and P are read by row: they stand transposed
    found["E"] = (torch.eye(len(w["E"]), dtype=back.dtype)[tokens], back)
    found["P"] = (torch.eye(tokens.shape[1], len(w["P"]), dtype=back.dtype).expand(len(tokens), -1, -1), back)
    return found


def _layer(w: dict[str, Tensor], i: int, x: Vectors, a: Maps, back: Vectors) -> tuple[Places, Vectors]:
    """Places of one attention layer, and what comes back to its input."""
    W_K, W_V, W_O = (w[f"W_{letter}{i}"] for letter in "KVO")
    mean, to_values = a @ x, back @ W_O
    gain = to_values @ W_V @ x.mT  # [t, s]: what more attention of t to s would change
    wrong = a * (gain - (a * gain).sum(2, keepdim=True))  # ∂L/∂score
    to_keys = wrong.mT @ x
    found: Places = {f"W_O{i}": (back, mean @ W_V.T), f"W_V{i}": (to_values, mean), f"W_K{i}": (to_keys, x)}
    return found, back + a.mT @ to_values @ W_V + to_keys @ W_K + wrong @ x @ W_K.T


def sum_outer_products(came_back: Float[Tensor, "A T m"], went_in: Float[Tensor, "A T n"]) -> Float[Tensor, "m n"]:
    """∇_W L = Σ_places (∂L/∂y) xᵀ."""
    return torch.einsum("atm,atn->mn", came_back, went_in)


def model_problem(A: int, T: int, N: int, d: int, seed: int, index: int) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """Random weights N(0, 1/d), random tokens, and a random law of (sequence, position, label)."""
    rows = {"E": N, "P": T, "U": N}
    w = {
        name: directions("gaussian/d", rows.get(name, d), d, seed, f"backward.{name}.{index}", torch.float64)
        for name in MATRICES
    }
    rng = generator(seed, "backward.data", index)
    tokens, p = rng.integers(N, size=(A, T)), rng.dirichlet([1.0] * (A * T * N)).reshape(A, T, N)
    return w, torch.from_numpy(tokens), torch.from_numpy(p)


@law("backward.outer_products")
def outer_products(draws: int, seed: int, A: int = 5, T: int = 6, N: int = 7, d: int = 8) -> Rows:
    """For each matrix the largest difference of an entry between Σ (∂L/∂y) xᵀ and autograd."""
    for index in range(draws):
        w, tokens, p = model_problem(A, T, N, d, seed, index)
        leaves = {name: value.requires_grad_() for name, value in w.items()}
        loss = -(p * torch.log_softmax(forward(leaves, tokens).logits, dim=2)).sum()
        by_autograd = dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))
        with torch.no_grad():
            found = places(w, tokens, p)
            yield {name: float((sum_outer_products(*found[name]) - by_autograd[name]).abs().max()) for name in MATRICES}
