r"""Two classes in the plane: where the cross-entropy is least, tokens may be forgotten that another matrix recalls.

Tokens e_z lie on the unit circle, the answer is z mod 2, U = I: only γ = Wᵀ(u_0 − u_1) in R² matters, with margins
s_z γ·e_z, s_z = ±1. The 0/1 error depends on the angle of γ alone and changes at 2N angles, so its minimum is exact.
The cross-entropy is convex; where all tokens can be right it has no minimum, and descent ends in such a direction.

Cabannes, Simsek and Bietti (2024).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from engram.tasks.zipf import Zipf
from engram.theory.margin_law import pull
from engram.theory.margins import problems
from engram.values import generator

Points = Float[np.ndarray, "draws 2"]
Numbers = Float[np.ndarray, " draws"]
FARTHEST = 1e3  # margins beyond it cannot be told apart from infinite ones


@dataclass(frozen=True)
class Plane:
    """`sides` are s_z e_z: a token is right where γ has a positive product with its side."""

    sides: Float[np.ndarray, "draws N 2"]
    p: Float[np.ndarray, " N"]

    @classmethod
    def drawn(cls, N: int, alpha: float, draws: int, seed: int) -> "Plane":
        task = Zipf(N=N, M=2, alpha=alpha)
        signs = 1 - 2 * task.answers
        return cls(
            problems("sphere", draws, N, 2, seed, "forgetting.E").numpy() * signs[:, None],
            task.probabilities,
        )


def margins_of(plane: Plane, gamma: Points) -> Float[np.ndarray, "draws N"]:
    return np.einsum("tni,ti->tn", plane.sides, gamma)


def cross_entropy(plane: Plane, gamma: Points) -> Numbers:
    return np.logaddexp(0, -margins_of(plane, gamma)) @ plane.p


def error_at(plane: Plane, gamma: Points) -> Numbers:
    """A margin of 0 is an error."""
    return (margins_of(plane, gamma) <= 0) @ plane.p


def best_errors(plane: Plane) -> Numbers:
    """The least 0/1 error of any γ: tried once between every two angles at which a token changes its side."""
    angles = np.arctan2(plane.sides[..., 1], plane.sides[..., 0])
    edges = np.sort(np.concatenate([angles + np.pi / 2, angles - np.pi / 2], axis=1) % (2 * np.pi), axis=1)
    middles = edges + np.diff(edges, axis=1, append=edges[:, :1] + 2 * np.pi) / 2
    tried = np.stack([np.cos(middles), np.sin(middles)], axis=-1)  # draws, 2N, 2
    wrong = np.einsum("tni,tai->tan", plane.sides, tried) <= 0
    return (wrong @ plane.p).min(1)


def minimise_cross_entropy(plane: Plane, steps: int = 60) -> Points:
    """Newton's method with halved steps where a whole one does not help; it runs off where all can be right."""
    gamma = np.zeros((len(plane.sides), 2))
    for _ in range(steps):
        gamma = gamma + _downhill(plane, gamma, _newton(plane, gamma))
    return gamma


def _downhill(plane: Plane, gamma: Points, step: Points) -> Points:
    """The step, halved until it raises no loss by more than rounding does."""
    highest = cross_entropy(plane, gamma) + 1e-15
    for _ in range(30):
        worse = cross_entropy(plane, gamma + step) > highest
        if not worse.any():
            break
        step = np.where(worse[:, None], step / 2, step)
    return step


def _newton(plane: Plane, gamma: Points) -> Points:
    """−H⁻¹g, at most FARTHEST long in all directions that the loss no longer sees."""
    margins = margins_of(plane, gamma)
    unsure = plane.p * np.exp(-np.logaddexp(0, margins) - np.logaddexp(0, -margins))
    curvature = np.einsum("tn,tni,tnj->tij", unsure, plane.sides, plane.sides) + 1e-12 * np.eye(2)
    slope = pull(gamma, plane.sides, plane.p) / 2
    direction = np.linalg.solve(curvature, slope[..., None])[..., 0]
    length = np.linalg.norm(direction, axis=1, keepdims=True)
    return direction * np.minimum(1, FARTHEST / np.maximum(length, 1e-300))


def descend_loss(plane: Plane, start: Float[np.ndarray, " 2"], rate: float, steps: int) -> Iterator[Points]:
    """Descent on the whole population."""
    gamma = np.tile(start, (len(plane.sides), 1))
    yield gamma
    for _ in range(steps):
        gamma = gamma + rate * pull(gamma, plane.sides, plane.p)
        yield gamma


def descend_samples(
    plane: Plane, start: Float[np.ndarray, " 2"], rate: float, steps: int, batch: int, seed: int
) -> Iterator[Points]:
    """Descent on fresh batches, those of the same seed in the same order."""
    gamma, rng = np.tile(start, (len(plane.sides), 1)), generator(seed, "forgetting.tokens")
    yield gamma
    for _ in range(steps):
        shares = rng.multinomial(batch, plane.p, size=len(gamma)) / batch
        gamma = gamma + rate * pull(gamma, plane.sides, shares)
        yield gamma
