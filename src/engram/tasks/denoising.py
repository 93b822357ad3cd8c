r"""In-context denoising (Smart, Bietti, Sengupta 2025): L clean points and a noisy one to be recovered.

    geometry ~ new for each prompt;   x_1 … x_L, x ~ p(· | geometry);   x̃ = x + z,   z ~ N(0, σ_Z² I_n)

Three cases: a random subspace, a sphere in one, clusters. Each knows E[x | x̃, geometry], which no predictor beats.
"""

from abc import abstractmethod
from dataclasses import dataclass
from math import sqrt
from typing import Annotated

import numpy as np
from jaxtyping import Float
from pydantic import Field, model_validator
from scipy.special import ive, softmax

from engram.values import Value, generator

Size = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
Geometry = Float[np.ndarray, "B k n"]
Points = Float[np.ndarray, "B L n"]
Vectors = Float[np.ndarray, "B n"]


@dataclass(frozen=True)
class Prompts:
    """X: the clean points, one row each. query: x̃. clean: x. geometry: what the points have in common."""

    X: Points
    query: Vectors
    clean: Vectors
    geometry: Geometry


class Denoising(Value):
    """Points of a shape, of which one, with noise, is to be restored.

    n        ambient dimension
    L        points in a prompt
    noise    variance σ_Z² of the noise
    """

    n: Size = 16
    L: Size = 500
    noise: Positive

    @abstractmethod
    def draw_geometry(self, rng: np.random.Generator, batch: int) -> Geometry:
        """A basis or centres for each prompt, one row per vector."""

    @abstractmethod
    def draw_points(self, rng: np.random.Generator, geometry: Geometry, count: int) -> Points:
        """Clean points of each prompt."""

    @abstractmethod
    def bayes(self, query: Vectors, geometry: Geometry) -> Vectors:
        """E[x | x̃, geometry]."""

    def sample(self, seed: int, step: int, batch: int) -> Prompts:
        rng = generator(seed, "data", step)
        geometry = self.draw_geometry(rng, batch)
        points = self.draw_points(rng, geometry, self.L + 1)
        clean = points[:, -1]
        return Prompts(points[:, :-1], clean + sqrt(self.noise) * rng.standard_normal(clean.shape), clean, geometry)


def _bases(rng: np.random.Generator, batch: int, k: int, n: int) -> Geometry:
    """Orthonormal rows that span a uniformly random subspace of dimension k."""
    return np.linalg.qr(rng.standard_normal((batch, n, k)))[0].swapaxes(1, 2)


def _within(query: Vectors, basis: Geometry) -> Vectors:
    """Px̃, the part of x̃ in the span of the rows."""
    return np.einsum("bk,bkn->bn", np.einsum("bkn,bn->bk", basis, query), basis)


class Subspace(Denoising, name="tasks.denoising.Subspace"):
    """Case 1: N(0, variance) in each direction of a random subspace of dimension d.

    d           dimension of the subspace
    variance    of a point, in each direction
    """

    noise: Positive = 1.0
    d: Size = 8
    variance: Positive = 2.0

    @model_validator(mode="after")
    def _fits(self) -> "Subspace":
        if self.d > self.n:
            raise ValueError(f"d: a subspace of dimension {self.d} does not fit into n={self.n}; use d ≤ n")
        return self

    def draw_geometry(self, rng: np.random.Generator, batch: int) -> Geometry:
        return _bases(rng, batch, self.d, self.n)

    def draw_points(self, rng: np.random.Generator, geometry: Geometry, count: int) -> Points:
        return sqrt(self.variance) * rng.standard_normal((len(geometry), count, self.d)) @ geometry

    def bayes(self, query: Vectors, geometry: Geometry) -> Vectors:
        return self.variance / (self.variance + self.noise) * _within(query, geometry)


class Sphere(Denoising, name="tasks.denoising.Sphere"):
    """Case 2: uniform on a sphere S^d of the given radius in a random subspace of dimension d + 1.

    d         dimension of the sphere
    radius    of the sphere
    """

    noise: Positive = 0.1
    d: Size = 8
    radius: Positive = 1.0

    @model_validator(mode="after")
    def _fits(self) -> "Sphere":
        if self.d + 1 > self.n:
            raise ValueError(f"d: a sphere S^{self.d} does not fit into n={self.n}; use d ≤ n − 1")
        return self

    def draw_geometry(self, rng: np.random.Generator, batch: int) -> Geometry:
        return _bases(rng, batch, self.d + 1, self.n)

    def draw_points(self, rng: np.random.Generator, geometry: Geometry, count: int) -> Points:
        g = rng.standard_normal((len(geometry), count, self.d + 1))
        return self.radius * g / np.linalg.norm(g, axis=2, keepdims=True) @ geometry

    def bayes(self, query: Vectors, geometry: Geometry) -> Vectors:
        """R · I_{(d+1)/2}(κ) / I_{(d−1)/2}(κ) · Px̃ / ‖Px̃‖, κ = R ‖Px̃‖ / σ_Z²."""
        inside = _within(query, geometry)
        norm = np.linalg.norm(inside, axis=1, keepdims=True)
        kappa = self.radius * norm / self.noise
        return self.radius * ive((self.d + 1) / 2, kappa) / ive((self.d - 1) / 2, kappa) * inside / norm


class Clusters(Denoising, name="tasks.denoising.Clusters"):
    """Case 3: N(0, variance) around one of K random centres of norm 1.

    K           number of centres
    variance    around a centre, in each direction
    """

    noise: Positive = 0.1
    K: Size = 8
    variance: Positive = 0.02

    def draw_geometry(self, rng: np.random.Generator, batch: int) -> Geometry:
        g = rng.standard_normal((batch, self.K, self.n))
        return g / np.linalg.norm(g, axis=2, keepdims=True)

    def draw_points(self, rng: np.random.Generator, geometry: Geometry, count: int) -> Points:
        which = rng.integers(self.K, size=(len(geometry), count))
        spread = sqrt(self.variance) * rng.standard_normal((*which.shape, self.n))
        return np.take_along_axis(geometry, which[:, :, None], axis=1) + spread

    def bayes(self, query: Vectors, geometry: Geometry) -> Vectors:
        """(σ_0² x̃ + σ_Z² Σ_k p_k μ_k) / s, p = softmax(μ_k · x̃ / s), s = σ_0² + σ_Z²; all centres have norm 1."""
        s = self.variance + self.noise
        p = softmax(np.einsum("bkn,bn->bk", geometry, query) / s, axis=1)
        return (self.variance * query + self.noise * np.einsum("bk,bkn->bn", p, geometry)) / s


CASES: dict[str, type[Denoising]] = {"subspace": Subspace, "sphere": Sphere, "clusters": Clusters}
