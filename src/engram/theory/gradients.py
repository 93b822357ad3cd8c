r"""Gradients of attention are memories: Lemmas 4 and 5 of Birth of a Transformer, beside automatic differentiation.

Data are finite: X (A×T×d) holds A sequences of inputs, p_joint (A×N) the law of (sequence, label). As in the paper's
Appendix B the key stands on the left, zᵀ W x_T, and nothing is divided by √d; our W_K is the transpose (NOTATION.md).
Lemmas 1 and 2 are in `lemmas`.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from engram.embeddings import directions
from engram.values import Rows, generator, law

Matrix = Float[Tensor, "d d"]
Outputs = Float[Tensor, "N d"]
Positions = Float[Tensor, "T d"]
Sequences = Float[Tensor, "A T d"]
Joint = Float[Tensor, "A N"]


def surprise(logits: Joint, p_joint: Joint) -> Joint:
    """p(X, y=k) − p(X) p̂(k|X), minus the derivative of the loss with respect to the logits."""
    return p_joint - p_joint.sum(1, keepdim=True) * torch.softmax(logits, dim=1)


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


def _cross_entropy(logits: Joint, p_joint: Joint) -> Float[Tensor, ""]:
    return -(p_joint * torch.log_softmax(logits, dim=1)).sum()


def differentiate_logits(logits_of: Callable[[Tensor], Tensor], W: Matrix, p_joint: Joint) -> Matrix:
    """∇_W of the cross-entropy by autograd."""
    W = W.detach().requires_grad_()
    return torch.autograd.grad(_cross_entropy(logits_of(W), p_joint), W)[0]


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
        v = attention_problem(A, T, N, d, seed, index)
        X, Z, P, U, p = (v[name] for name in ("X", "Z", "P", "U", "p_joint"))
        Phi1, Phi2, W2 = (v[name] for name in ("Phi1", "Phi2", "W2"))
        zero = torch.zeros_like(W2)
        by_autograd = (
            differentiate_logits(lambda W, X=X, Z=Z, U=U, Phi2=Phi2: second_layer(W, X, Z, U, Phi2), zero, p),
            differentiate_logits(lambda W, a=(X, P, U, Phi1, Phi2, W2): both_layers(W, *a), zero, p),
        )
        by_hand = lemma4_gradient(X, Z, U, Phi2, p), lemma5_gradient(X, P, U, Phi1, Phi2, W2, p)
        errors = (float((a - b).abs().max()) for a, b in zip(by_hand, by_autograd, strict=True))
        yield dict(zip(("lemma4", "lemma5"), errors, strict=True))
