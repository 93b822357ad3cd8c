r"""How margins grow under gradient descent: orthogonal tokens, two tokens that overlap, and one that is visited often.

Orthogonal embeddings, M answers, W = 0 at first: the margin of a token of probability p obeys

    dm/dt = p M / (e^m + M − 1),   so   e^m + (M − 1) m − 1 = p M t   and   m ≈ ln(p M t)

Two tokens e_0 = (1, 0) and e_1 = (a, √(1−a²)) with two answers, U = I: all that matters is γ = Wᵀ(u_0 − u_1) in R²,
with margins γ·e_0 and −γ·e_1.

Cabannes, Simsek and Bietti (2024).
"""

from dataclasses import dataclass
from functools import cached_property
from math import exp, log, log1p

import numpy as np
from jaxtyping import Float


def margin_at(p: float, M: int, t: float) -> float:
    """The m with e^m + (M − 1) m − 1 = p M t, by Newton's method from above, where the left side is convex."""
    target = p * M * t
    m = log1p(target)
    for _ in range(100):
        step = (exp(m) + (M - 1) * m - 1 - target) / (exp(m) + M - 1)
        m -= step
        if abs(step) <= 1e-15 * m:
            break
    return m


def growth(m: float, p: float, M: int) -> float:
    """dm/dt = p M / (e^m + M − 1)."""
    return p * M / (exp(m) + M - 1)


def gradient_margins(p: float, M: int, rate: float, steps: int) -> Float[np.ndarray, " t"]:
    """Margins before and after each step of descent: m += η p M / (e^m + M − 1), exact for orthonormal embeddings."""
    found = [0.0]
    for _ in range(steps):
        found.append(found[-1] + rate * growth(found[-1], p, M))
    return np.array(found)


@dataclass(frozen=True)
class TwoTokens:
    """A path of descent; `gamma` has one row before, and one after each step."""

    a: float
    p: float
    gamma: Float[np.ndarray, "t 2"]

    @cached_property
    def margins(self) -> Float[np.ndarray, "t 2"]:
        return self.gamma @ tilted(self.a).T

    @cached_property
    def losses(self) -> Float[np.ndarray, " t"]:
        return np.logaddexp(0, -self.margins) @ [self.p, 1 - self.p]

    @cached_property
    def errors(self) -> Float[np.ndarray, " t"]:
        """Equal scores give the first answer, which is right for the first token."""
        first, second = self.margins.T
        return np.where(first < 0, self.p, 0.0) + np.where(second <= 0, 1 - self.p, 0.0)

    @cached_property
    def sharpness(self) -> Float[np.ndarray, " t"]:
        """The top eigenvalue of Σ_x 2 p(x) σ(m_x) σ(−m_x) e_x e_xᵀ, which is that of ∇²L."""
        sides = tilted(self.a)
        unsure = np.exp(-np.logaddexp(0, self.margins) - np.logaddexp(0, -self.margins))
        weights = 2 * np.array([self.p, 1 - self.p]) * unsure
        return np.linalg.eigvalsh(np.einsum("tx,xi,xj->tij", weights, sides, sides))[:, -1]

    @property
    def first_perfect(self) -> int | None:
        """The first step without an error; None if there is none."""
        perfect = np.flatnonzero(self.errors == 0)
        return int(perfect[0]) if len(perfect) else None


def tilted(a: float) -> Float[np.ndarray, "2 2"]:
    """The directions in which γ gives margins: e_0 and −e_1."""
    return np.array([[1.0, 0.0], [-a, -((1 - a**2) ** 0.5)]])


def pull(
    gamma: Float[np.ndarray, "... 2"], sides: Float[np.ndarray, "... n 2"], p: Float[np.ndarray, "... n"]
) -> Float[np.ndarray, "... 2"]:
    """How γ moves with a step of size 1 on W: 2 Σ_x p(x) σ(−m_x) s_x e_x, for u_0 and u_1 both move."""
    margins = np.einsum("...ni,...i->...n", sides, gamma)
    return 2 * np.einsum("...n,...ni->...i", p * np.exp(-np.logaddexp(0, margins)), sides)


def two_tokens(a: float, p: float, rate: float, steps: int) -> TwoTokens:
    """Descent on two tokens of probabilities p and 1 − p from W = 0."""
    gamma, sides, chances = np.zeros((steps + 1, 2)), tilted(a), np.array([p, 1 - p])
    for t in range(steps):
        gamma[t + 1] = gamma[t] + rate * pull(gamma[t], sides, chances)
    return TwoTokens(a, p, gamma)


def first_perfect(
    a: Float[np.ndarray, " n"], p: Float[np.ndarray, " n"], rate: Float[np.ndarray, " n"], steps: int
) -> Float[np.ndarray, " n"]:
    """For many pairs of tokens at once the first step without an error; `steps` + 1 if it is never reached."""
    sides = np.stack([tilted(float(one)) for one in a])
    gamma, chances = np.zeros((len(a), 2)), np.stack([p, 1 - p], axis=1)
    found = np.full(len(a), steps + 1.0)
    for t in range(1, steps + 1):
        gamma = gamma + rate[:, None] * pull(gamma, sides, chances)
        margins = np.einsum("nxi,ni->nx", sides, gamma)
        perfect = (margins[:, 0] >= 0) & (margins[:, 1] > 0)
        found = np.where(perfect & (found > t), t, found)
    return found


def repeated_visits(rate: float, m: float, visits: int) -> Float[np.ndarray, " k"]:
    """The weight of a token after 0, 1, … visits: q += γ / (1 + e^q/m), from 0 for every γ."""
    q = [0.0]
    for _ in range(visits):
        q.append(q[-1] + rate / (1 + exp(q[-1] - log(m))))
    return np.array(q)
