"""How weights that store pairs are written by hand, or found by gradient descent (`fit`). Pure functions.

E (N×d) holds e_z, U (M×d) holds u_y, `f` (N) says which y belongs to z. Leading axes, if any, are independent problems.
"""

from collections.abc import Callable, Sequence
from math import factorial, pi, prod, sqrt

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

Answers = Int[Tensor, "*problems N"]
Pairs = Float[Tensor, "*problems N d"]  # a row for each pair
Units = Float[Tensor, "*problems m d"]  # a row for each hidden unit
Factor = Float[Tensor, "*problems d m"]  # the left factor of a d×d matrix


def targets(U: Float[Tensor, "*problems M d"], f: Answers) -> Pairs:
    """Row z is u_{f(z)}."""
    return U.gather(-2, f[..., None].expand(*f.shape, U.shape[-1]))


def recalled(y: Pairs, U: Float[Tensor, "*problems M d"], f: Answers) -> float:
    """The share of answers y_z whose largest score u · y_z is at the right output."""
    return float(((y @ U.mT).argmax(-1) == f).double().mean())


def hebb(E: Pairs, V: Pairs) -> Float[Tensor, "*problems d d"]:
    """W = Σ_z v_z e_zᵀ, where v_z = u_{f(z)}."""
    return V.mT @ E


def one_step(E: Pairs, V: Pairs, U: Float[Tensor, "M d"], lr: float) -> Float[Tensor, "d d"]:
    """−η ∇L(0) of the mean cross-entropy: (η/N) Σ_z (v_z − ū) e_zᵀ, where ū is the mean of all M values."""
    return lr / len(E) * hebb(E, V - U.mean(0))


def rounded(W: Float[Tensor, "*problems m n"], levels: int) -> Float[Tensor, "*problems m n"]:
    """W on `levels` (an even number) evenly spaced values from −max|W| to max|W|; zero is not among them."""
    step = 2 * W.abs().amax((-2, -1), keepdim=True) / (levels - 1)
    return ((W / step - 0.5).round() + 0.5) * step


def factors(x: Pairs, y: Pairs, U0: Factor, V0: Units) -> tuple[Factor, Units]:
    """U = U0 + Σ y_i (V0 x_i)ᵀ and V = V0 + Σ (U0ᵀ y_i) x_iᵀ of W = (d/2m) U V; U0 and V0 have entries N(0, 1/d)."""
    return U0 + y.mT @ (x @ V0.mT), V0 + (y @ U0).mT @ x


def thresholded(overlaps: Float[Tensor, "q n"], V: Float[Tensor, "n d"], b: float) -> Float[Tensor, "q d"]:
    """F(x) = Σ_i v_i σ(x_i · x − b), σ = ReLU, from the overlaps x_i · x: one unit per pair, silent for all others."""
    return (overlaps - b).relu() @ V


def low_rank(E: Pairs, V: Pairs, B: Factor) -> Factor:
    """A = Σ_z v_z (Bᵀe_z)ᵀ / m of W = A Bᵀ, B frozen, entries N(0, 1): one step on the correlation Σ v_z · W e_z."""
    return V.mT @ (E @ B) / B.shape[-1]


def hermite(k: int, t: Tensor) -> Tensor:
    """h_k(t), the Hermite polynomial with E h_j(g) h_k(g) = 1{j=k} for g ~ N(0, 1)."""
    before, now = torch.zeros_like(t), torch.ones_like(t)
    for j in range(k):  # He_{j+1} = t He_j − j He_{j−1}
        before, now = now, t * now - j * before
    return now / sqrt(factorial(k))


def relu_coefficient(k: int) -> float:
    """c_k = E h_k(g) ReLU(g): 1/√2π, 1/2, then zero for odd k and (−1)^{k/2−1} (k−3)!! / √(2π k!) for even k."""
    if k < 2:
        return (1 / sqrt(2 * pi), 0.5)[k]
    return 0.0 if k % 2 else (-1) ** (k // 2 - 1) * prod(range(k - 3, 0, -2)) / sqrt(2 * pi * factorial(k))


def random_features(E: Pairs, V: Pairs, W: Units, k: int) -> Units:
    """Second layer of x ↦ outᵀ ReLU(W x) with W frozen, entries N(0, 1): out_i = Σ_z h_k(w_i · e_z) v_z / (m c_k).

    In expectation over W the answer to e_z is Σ_x ⟨e_x, e_z⟩^k v_x: a dense memory of degree k.
    """
    c = relu_coefficient(k)
    if c == 0:
        raise ValueError(f"degree: ReLU has no Hermite coefficient of degree {k}; use 1 or an even degree")
    return hermite(k, W @ E.mT) @ V / (W.shape[-2] * c)


def cubic_slope(t: Tensor) -> Tensor:
    """σ'(t) = 2t + 3t² of σ(t) = t² + t³, whose Hermite coefficients of degree 0, 1, 2 are 3, 2, 3√2."""
    return 2 * t + 3 * t * t


CUBIC_SLOPE_COEFFICIENTS = (3.0, 2.0, 3 * sqrt(2))


def ntk_directions(E: Pairs, V: Pairs, W: Units, out: Units, k: int) -> Units:
    """δ_i = Σ_z ⟨out_i, v_z⟩ h_k(w_i · e_z) e_z: how the first layer moves; W and out are frozen, entries N(0, 1)."""
    return ((out @ V.mT) * hermite(k, W @ E.mT)) @ E


def ntk_answers(x: Pairs, W: Units, out: Units, delta: Units, k: int) -> Pairs:
    """(1/m c'_k) Σ_i out_i σ'(w_i · x) ⟨δ_i, x⟩ with σ = t² + t³; in expectation Σ_z ⟨e_z, x⟩^{k+1} v_z."""
    c = CUBIC_SLOPE_COEFFICIENTS[k]
    return (cubic_slope(x @ W.mT) * (x @ delta.mT)) @ out / (W.shape[-2] * c)


@torch.enable_grad()
def fit(
    start: Sequence[Tensor], scores: Callable[..., Float[Tensor, "N M"]], f: Int[Tensor, " N"], lr: float, steps: int
) -> list[Tensor]:
    """Adam on −mean_z log softmax(scores)_{f(z)} over all pairs, until all are recalled or `steps` are over.

    `scores` maps the weights to N×M scores. Returns the weights that recalled most pairs, the earliest of them.
    """
    weights = [w.clone().requires_grad_() for w in start]
    adam = torch.optim.Adam(weights, lr, foreach=False)
    best, kept = -1, list(start)
    for step in range(steps + 1):
        logits = scores(*weights)
        right = int((logits.argmax(1) == f).sum())
        if right > best:
            best, kept = right, [w.detach().clone() for w in weights]
        if right == len(f) or step == steps:
            break
        adam.zero_grad()
        cross_entropy(logits, f).backward()
        adam.step()
    return kept
