"""Gradients are memories: closed forms from Birth of a Transformer, beside automatic differentiation.

X (A×d) holds the inputs that occur, U (M×d) the output embeddings, p_joint (A×M) the law of (x, y); for tokens X = E.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from engram.embeddings import directions
from engram.values import Rows, generator, law

Matrix = Float[Tensor, "d d"]
Inputs = Float[Tensor, "A d"]
Outputs = Float[Tensor, "M d"]
Joint = Float[Tensor, "A M"]


def probabilities(h: Inputs, U: Outputs) -> Joint:
    """p̂(k|x) = softmax_k(u_k · h)."""
    return torch.softmax(h @ U.T, dim=1)


def lemma1_gradient(W: Matrix, E: Inputs, U: Outputs, p_joint: Joint) -> Matrix:
    """Eq. 5: ∇L = Σ_k E_z[(p̂_W(k|z) − p(k|z)) u_k e_zᵀ]."""
    p_z = p_joint.sum(1, keepdim=True)
    return U.T @ (p_z * probabilities(E @ W.T, U) - p_joint).T @ E


def lemma2_gradient(W: Matrix, X: Inputs, U: Outputs, p_joint: Joint) -> Matrix:
    """Lemma 2: ∇L = Σ_k p(y=k) u_k (μ̂_k − μ_k)ᵀ, μ_k = E[x|y=k], μ̂_k = E_x[p̂_W(k|x) x] / p(y=k)."""
    p_x, p_y = p_joint.sum(1, keepdim=True), p_joint.sum(0)[:, None]
    mu = p_joint.T @ X / p_y
    mu_hat = (p_x * probabilities(X @ W.T, U)).T @ X / p_y
    return U.T @ (p_y * (mu_hat - mu))


def layernorm_gradient(W: Matrix, X: Inputs, U: Outputs, p_joint: Joint) -> Matrix:
    """Eq. 38, scores u_k · Wx/‖Wx‖: ∇L = Σ_k E[(p̂_k − p_k)/‖Wx‖ (I − Wx(Wx)ᵀ/‖Wx‖²) u_k xᵀ]."""
    Wx = X @ W.T
    norm = Wx.norm(dim=1, keepdim=True)
    h = Wx / norm
    pull = (p_joint.sum(1, keepdim=True) * probabilities(h, U) - p_joint) @ U
    return ((pull - (pull * h).sum(1, keepdim=True) * h) / norm).T @ X


def distance_to_span(A: Matrix, E: Inputs, U: Outputs) -> float:
    """‖A − Π_U A Π_E‖_F, the distance of A from span{u_j e_iᵀ}; Π projects on the rows of U and E."""
    onto_U, onto_E = torch.linalg.pinv(U) @ U, torch.linalg.pinv(E) @ E
    return float((A - onto_U @ A @ onto_E).norm())


def cross_entropy(W: Matrix, X: Inputs, U: Outputs, p_joint: Joint) -> Float[Tensor, ""]:
    """Eq. 4: E ℓ(y, U W x)."""
    return -(p_joint * torch.log_softmax(X @ W.T @ U.T, dim=1)).sum()


def normalised_cross_entropy(W: Matrix, X: Inputs, U: Outputs, p_joint: Joint) -> Float[Tensor, ""]:
    """Eq. 37: E ℓ(y, U Wx/‖Wx‖)."""
    h = torch.nn.functional.normalize(X @ W.T, dim=1)
    return -(p_joint * torch.log_softmax(h @ U.T, dim=1)).sum()


def differentiate_loss(loss: Callable[..., Tensor], W: Matrix, X: Inputs, U: Outputs, p_joint: Joint) -> Matrix:
    """∇_W of a loss by autograd."""
    W = W.detach().requires_grad_()
    return torch.autograd.grad(loss(W, X, U, p_joint), W)[0]


def matrix_problem(A: int, M: int, d: int, seed: int, index: int) -> tuple[Matrix, Inputs, Outputs, Joint]:
    """Random W, X, U with entries N(0, 1), so that p̂ is far from uniform, and a random law of (x, y)."""
    W, X, U = (
        directions("gaussian", n, d, seed, f"lemmas.{i}.{index}", torch.float64) for i, n in enumerate((d, A, M))
    )
    p_joint = generator(seed, "lemmas.p", index).dirichlet([1.0] * (A * M)).reshape(A, M)
    return W, X, U, torch.from_numpy(p_joint)


@law("lemmas.closed_forms")
def matrix_closed_forms(draws: int, seed: int, A: int = 7, M: int = 6, d: int = 5) -> Rows:
    """The largest difference of an entry between each closed form and autograd; one row per random problem."""
    pairs = {
        "lemma1": (lemma1_gradient, cross_entropy),
        "lemma2": (lemma2_gradient, cross_entropy),
        "layernorm": (layernorm_gradient, normalised_cross_entropy),
    }
    for index in range(draws):
        W, X, U, p = matrix_problem(A, M, d, seed, index)
        yield {
            name: float((formula(W, X, U, p) - differentiate_loss(loss, W, X, U, p)).abs().max())
            for name, (formula, loss) in pairs.items()
        }


@law("lemmas.span")
def descent_span(draws: int, seed: int, N: int = 4, M: int = 3, d: int = 16, steps: int = 20) -> Rows:
    """Eq. 6: after each step of gradient descent, the distance of W − α₀W₀ from span{u_j e_iᵀ}, and that of W₀.

    Weight decay λ is 0 in even rows and 0.1 in odd rows; α₀ = (1 − ηλ)^t.
    """
    eta = 0.5
    for index in range(draws):
        shrink = 1 - eta * (0.0, 0.1)[index % 2]
        W0, E, U, p = matrix_problem(N, M, d, seed, index)
        W, distances = W0, []
        for t in range(1, steps + 1):
            W = shrink * W - eta * differentiate_loss(cross_entropy, W, E, U, p)
            distances.append(distance_to_span(W - shrink**t * W0, E, U))
        yield {"distance": max(distances), "distance.W0": distance_to_span(W0, E, U)}
