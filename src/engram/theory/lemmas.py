r"""Gradients are memories: closed forms from Birth of a Transformer, beside automatic differentiation.

Data are finite. One matrix (Lemmas 1 and 2, Eq. 38): X (A×d) holds the inputs that occur, U (M×d) the output
embeddings, p_joint (A×M) the law of (x, y); for tokens X = E. Attention (Lemmas 4 and 5): X (A×T×d) holds A sequences
of inputs, p_joint (A×N) the law of (sequence, label). As in the paper's Appendix B the key stands on the left,
zᵀ W x_T, and nothing is divided by √d; our W_K is the transpose (NOTATION.md).
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from engram.embeddings import directions
from engram.values import Rows, generator, law

Matrix = Float[Tensor, "d d"]
Inputs = Float[Tensor, "A d"]
Outputs = Float[Tensor, "N d"]
Positions = Float[Tensor, "T d"]
Sequences = Float[Tensor, "A T d"]
Joint = Float[Tensor, "A N"]


def surprise(logits: Joint, p_joint: Joint) -> Joint:
    """p(X, y=k) − p(X) p̂(k|X), minus the derivative of the loss with respect to the logits."""
    return p_joint - p_joint.sum(1, keepdim=True) * torch.softmax(logits, dim=1)


def differentiate(logits_of: Callable[..., Joint], W: Matrix, p_joint: Joint, *others: Tensor) -> Matrix:
    """∇_W of the cross-entropy E ℓ(y, logits) by autograd; the logits are a function of W and the others."""
    W = W.detach().requires_grad_()
    return torch.autograd.grad(-(p_joint * torch.log_softmax(logits_of(W, *others), dim=1)).sum(), W)[0]


def scores(W: Matrix, X: Inputs, U: Outputs) -> Joint:
    """U W x, the logits of Eq. 4."""
    return X @ W.T @ U.T


def normalised_scores(W: Matrix, X: Inputs, U: Outputs) -> Joint:
    """U Wx/‖Wx‖, the logits of Eq. 37."""
    return torch.nn.functional.normalize(X @ W.T, dim=1) @ U.T


def lemma1_gradient(W: Matrix, E: Inputs, U: Outputs, p_joint: Joint) -> Matrix:
    """Eq. 5: ∇L = Σ_k E_z[(p̂_W(k|z) − p(k|z)) u_k e_zᵀ]."""
    return -U.T @ surprise(scores(W, E, U), p_joint).T @ E


def lemma2_gradient(W: Matrix, X: Inputs, U: Outputs, p_joint: Joint) -> Matrix:
    """Lemma 2: ∇L = Σ_k p(y=k) u_k (μ̂_k − μ_k)ᵀ, μ_k = E[x|y=k], μ̂_k = E_x[p̂_W(k|x) x] / p(y=k)."""
    p_x, p_y = p_joint.sum(1, keepdim=True), p_joint.sum(0)[:, None]
    mu = p_joint.T @ X / p_y
    mu_hat = (p_x * torch.softmax(scores(W, X, U), dim=1)).T @ X / p_y
    return U.T @ (p_y * (mu_hat - mu))


def layernorm_gradient(W: Matrix, X: Inputs, U: Outputs, p_joint: Joint) -> Matrix:
    """Eq. 38, scores u_k · Wx/‖Wx‖: ∇L = Σ_k E[(p̂_k − p_k)/‖Wx‖ (I − Wx(Wx)ᵀ/‖Wx‖²) u_k xᵀ]."""
    Wx = X @ W.T
    norm = Wx.norm(dim=1, keepdim=True)
    h = Wx / norm
    pull = -surprise(h @ U.T, p_joint) @ U
    return ((pull - (pull * h).sum(1, keepdim=True) * h) / norm).T @ X


def distance_to_span(A: Matrix, E: Inputs, U: Outputs) -> float:
    """‖A − Π_U A Π_E‖_F, the distance of A from span{u_j e_iᵀ}; Π projects on the rows of U and E."""
    onto_U, onto_E = torch.linalg.pinv(U) @ U, torch.linalg.pinv(E) @ E
    return float((A - onto_U @ A @ onto_E).norm())


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
        "lemma1": (lemma1_gradient, scores),
        "lemma2": (lemma2_gradient, scores),
        "layernorm": (layernorm_gradient, normalised_scores),
    }
    for index in range(draws):
        W, X, U, p = matrix_problem(A, M, d, seed, index)
        yield {
            name: _error(formula(W, X, U, p), differentiate(logits, W, p, X, U))
            for name, (formula, logits) in pairs.items()
        }


def _error(by_hand: Matrix, by_autograd: Matrix) -> float:
    return float((by_hand - by_autograd).abs().max())


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
            W = shrink * W - eta * differentiate(scores, W, p, E, U)
            distances.append(distance_to_span(W - shrink**t * W0, E, U))
        yield {"distance": max(distances), "distance.W0": distance_to_span(W0, E, U)}


def attended(X: Sequences, scores: Float[Tensor, "A T"]) -> Float[Tensor, "A d"]:
    """Σ_t x_t σ(scores)_t, σ the softmax."""
    return torch.einsum("atd,at->ad", X, torch.softmax(scores, dim=1))


def matches(Z: Sequences, W: Matrix, X: Sequences) -> Float[Tensor, "A T"]:
    """z_tᵀ W x_T, the score of every key with the last query."""
    return torch.einsum("atd,ad->at", Z, X[:, -1] @ W.T)


def second_layer(W: Matrix, X: Sequences, Z: Sequences, U: Outputs, Phi2: Matrix) -> Joint:
    """Eq. 13: ξ(X) = U Φ2 X σ(Zᵀ W x_T); the paper has Z = X, and its proof distinguishes the two."""
    return attended(X, matches(Z, W, X)) @ Phi2.T @ U.T


def lemma4_gradient(X: Sequences, Z: Sequences, U: Outputs, Phi2: Matrix, p_joint: Joint) -> Matrix:
    """Lemma 4, at W = 0: ∇L = Σ_k E[(p̂(k|X) − 1{y=k}) (1/T) Σ_t u_kᵀΦ2x_t · (z_t − z̄) x_Tᵀ]."""
    wanted = surprise(X.mean(1) @ Phi2.T @ U.T, p_joint) @ U @ Phi2  # row X: Σ_k (1{y=k} − p̂_k) Φ2ᵀu_k
    value = torch.einsum("atd,ad->at", X, wanted) / X.shape[1]
    return -torch.einsum("at,atd,ae->de", value, Z - Z.mean(1, keepdim=True), X[:, -1])


def first_layer(W: Matrix, X: Sequences, P: Positions, Phi1: Matrix) -> Sequences:
    """z_t(W) = Σ_{s≤t} Φ1 x_s σ(p_{1:t}ᵀ W p_t)_s: attention by positions, values from tokens."""
    future = torch.full((len(P), len(P)), -torch.inf, dtype=P.dtype).triu(1)
    return torch.softmax((P @ W @ P.T).T + future, dim=1) @ (X @ Phi1.T)


def linearised(u: Float[Tensor, "A T"]) -> Float[Tensor, "A T"]:
    """σ̄(u)_t = (1 + u_t − ū)/T, the softmax linearised at 0."""
    return (1 + u - u.mean(1, keepdim=True)) / u.shape[1]


def both_layers(W: Matrix, X: Sequences, P: Positions, U: Outputs, Phi1: Matrix, Phi2: Matrix, W2: Matrix) -> Joint:
    """Eq. 14: ξ(X) = U Φ2 X σ̄(Z(W)ᵀ W2 x_T)."""
    u = matches(first_layer(W, X, P, Phi1), W2, X)
    return torch.einsum("atd,at->ad", X, linearised(u)) @ Phi2.T @ U.T


def lemma5_gradient(
    X: Sequences, P: Positions, U: Outputs, Phi1: Matrix, Phi2: Matrix, W2: Matrix, p_joint: Joint
) -> Matrix:
    """Lemma 5, at W = 0: ∇L = Σ_k E[(p̂_k − 1{y=k}) (1/T) Σ_t u_kᵀΦ2(x_t − x̄) M_t].

    M_t = (1/t) Σ_{s≤t} (Φ1x_s)ᵀW2x_T · (p_s − p̄_{1:t}) p_tᵀ.
    """
    T = len(P)
    t = torch.arange(1, T + 1, dtype=P.dtype)
    wanted = surprise(both_layers(torch.zeros_like(W2), X, P, U, Phi1, Phi2, W2), p_joint) @ U @ Phi2
    value = torch.einsum("atd,ad->at", X - X.mean(1, keepdim=True), wanted) / T / t
    match = matches(X @ Phi1.T, W2, X)
    until = torch.ones(T, T, dtype=P.dtype).tril()  # [t, s]: s ≤ t
    reached = value.T @ match * until  # [t, s]: value of t times match of s, over all sequences
    centred = reached - (value * (match @ until.T)).sum(0)[:, None] * until / t[:, None]
    return -torch.einsum("ts,sd,te->de", centred, P, P)


def attention_problem(A: int, T: int, N: int, d: int, seed: int, index: int) -> dict[str, Tensor]:
    """Random inputs, embeddings and matrices with entries N(0, 1), and a random law of (sequence, label)."""

    def draw(name: str, rows: int) -> Tensor:
        return directions("gaussian", rows, d, seed, f"gradients.{name}.{index}", torch.float64)

    p = generator(seed, "gradients.p", index).dirichlet([1.0] * (A * N)).reshape(A, N)
    matrices = {name: draw(name, d) / d for name in ("Phi1", "Phi2", "W2")}
    X, Z = (draw(name, A * T).reshape(A, T, d) for name in "XZ")
    return {"X": X, "Z": Z, "P": draw("P", T), "U": draw("U", N), "p_joint": torch.from_numpy(p)} | matrices


@law("gradients.closed_forms")
def attention_closed_forms(draws: int, seed: int, A: int = 5, T: int = 4, N: int = 6, d: int = 5) -> Rows:
    """The largest difference of an entry between each closed form and autograd; one row per random problem."""
    for index in range(draws):
        X, Z, P, U, p, Phi1, Phi2, W2 = attention_problem(A, T, N, d, seed, index).values()
        zero, fourth, fifth = torch.zeros_like(W2), (X, Z, U, Phi2), (X, P, U, Phi1, Phi2, W2)
        yield {
            "lemma4": _error(lemma4_gradient(*fourth, p), differentiate(second_layer, zero, p, *fourth)),
            "lemma5": _error(lemma5_gradient(*fifth, p), differentiate(both_layers, zero, p, *fifth)),
        }
