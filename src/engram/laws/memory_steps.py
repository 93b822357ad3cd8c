"""Laws of few memories under large steps: margins, spikes, oscillation, forgetting, and a Hessian beside autograd."""

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from engram.embeddings import Law, directions
from engram.tasks.zipf import Zipf
from engram.theory import memory_dynamics as dynamics
from engram.theory.forgetting import (
    Plane,
    best_errors,
    cross_entropy,
    descend_loss,
    descend_samples,
    error_at,
    minimise_cross_entropy,
)
from engram.theory.margin_law import first_perfect, growth, margin_at, two_tokens
from engram.theory.margins import problems
from engram.theory.memory_dynamics import Pairs, follow, matrix_of, scores_of
from engram.values import Rows, law

START = (7.5, 2.5)  # of the published path


def drawn_pairs(task: Zipf, laws: tuple[Law, Law], d: int, draws: int, seed: int, name: str) -> Pairs:
    """Random embeddings E and U for `draws` problems with the same tokens and answers."""
    E, U = (
        problems(of, draws, n, d, seed, f"{name}.{letter}")
        for of, n, letter in zip(laws, (task.N, task.M), "EU", strict=True)
    )
    return Pairs(E, U, torch.from_numpy(task.probabilities), torch.from_numpy(task.answers))


@law("dynamics.hessian")
def closed_forms(draws: int, seed: int, N: int = 6, M: int = 4, d: int = 5) -> Rows:
    """The largest difference of an entry of the gradient and of the Hessian from autograd; one row per problem."""
    for index in range(draws):
        E, U, W = (
            directions("gaussian", n, d, seed, f"hessian.{i}.{index}", torch.float64) for i, n in enumerate((N, M, d))
        )
        pairs = Pairs(E, U, torch.from_numpy(Zipf(N=N, M=M).probabilities), torch.arange(N) % M)

        def of_matrix(V: Tensor, pairs: Pairs = pairs) -> Tensor:
            return (
                torch.nn.functional.cross_entropy(pairs.E @ V.T @ pairs.U.T, pairs.answers, reduction="none") @ pairs.p
            )

        slope = torch.autograd.functional.jacobian(of_matrix, W)
        curvature = torch.autograd.functional.hessian(of_matrix, W)
        assert isinstance(slope, Tensor)
        assert isinstance(curvature, Tensor)
        yield {
            "gradient": float((dynamics.gradient(pairs, W) - slope).abs().max()),
            "hessian": float((dynamics.hessian(pairs, W) - curvature.reshape(d * d, d * d)).abs().max()),
        }


@law("dynamics.margins")
def margin_flow(draws: int, seed: int, *, p: float, M: int, rate: float, until: float) -> Rows:
    """The margin of an orthogonal token at `draws` times up to `until`, by steps of descent, and by its law."""
    steps = round(until / rate)
    looks, m, done = np.unique(np.geomspace(1, steps, draws).astype(int)), 0.0, 0
    for look in looks.tolist():
        for _ in range(look - done):
            m += rate * growth(m, p, M)
        done = look
        yield {"time": look * rate, "margin": m, "law": margin_at(p, M, look * rate)}


@law("dynamics.orthogonal")
def orthogonal_margins(draws: int, seed: int, N: int = 5, d: int = 8, rate: float = 1e-3, until: float = 10.0) -> Rows:
    """A whole matrix with random orthonormal embeddings: how far any margin is from its law at `draws` times."""
    task = Zipf(N=N, M=N, alpha=1)
    E, U = (directions("orthonormal", N, d, seed, f"orthogonal.{name}", torch.float64) for name in "EU")
    pairs = Pairs(E, U, torch.from_numpy(task.probabilities), torch.from_numpy(task.answers))
    steps = round(until / rate)
    looks = set(np.unique(np.linspace(1, steps, draws).astype(int)).tolist())
    for t, c in enumerate(follow(pairs, [(pairs.p, rate)] * steps)):
        if t in looks:
            found = dynamics.margins(pairs, dynamics.scores(pairs, matrix_of(pairs, c))).tolist()
            expected = [margin_at(p, N, t * rate) for p in task.probabilities.tolist()]
            yield {"time": t * rate, "difference": max(abs(a - b) for a, b in zip(found, expected, strict=True))}


@law("dynamics.two_tokens")
def two_token_path(draws: int, seed: int, a: float, p: float, rate: float) -> Rows:
    """`draws` steps on two tokens of overlap a: loss, 0/1 error, γ, and η λ/2, before and after each."""
    path = two_tokens(a, p, rate, draws)
    for loss, error, gamma, top in zip(path.losses, path.errors, path.gamma, path.sharpness, strict=True):
        yield {
            "loss": float(loss),
            "error": float(error),
            "gamma.0": float(gamma[0]),
            "gamma.1": float(gamma[1]),
            "edge": float(rate * top / 2),
        }


@law("dynamics.first_perfect")
def first_perfect_steps(draws: int, seed: int, points: int = 10) -> Rows:
    """The published grid of overlaps, rates and weights: the first step of `draws` without an error, else draws + 1."""
    axes = (np.linspace(0.5, 1, points), np.logspace(-1, 1, points), 1 / (1 + np.exp(-np.logspace(-0.5, 0.5, points))))
    a, rate, p = (part.ravel() for part in np.meshgrid(*axes, indexing="ij"))
    for cell in zip(a, rate, p, first_perfect(a, p, rate, draws), strict=True):
        yield dict(zip(("a", "rate", "p", "first"), map(float, cell), strict=True))


@law("dynamics.oscillation")
def oscillating_margins(draws: int, seed: int, *, d: int, rate: float, N: int = 5, steps: int = 100) -> Rows:
    """Population descent of `draws` random memories of N tokens, one row a step.

    moved, fallen     how far margins move, and how far they fall, mean over tokens and memories
    edge              mean η λ/2 before the step
    below, rises      memories with η λ/2 < 1 before the step, and those whose loss rises in it
    rises.below       those of both kinds
    margin.z          margins of the first memory after the step
    """
    pairs = drawn_pairs(Zipf(N=N, M=N, alpha=1), ("sphere", "sphere"), d, draws, seed, "oscillation")
    logits = (scores_of(pairs, c) for c in follow(pairs, [(pairs.p, rate)] * steps))
    for before, after in pairwise(logits):
        moved = dynamics.margins(pairs, after) - dynamics.margins(pairs, before)
        edge = rate * dynamics.sharpness(pairs, before) / 2
        rises = dynamics.loss(pairs, after) > dynamics.loss(pairs, before)
        yield {
            "moved": float(moved.abs().mean()),
            "fallen": float(moved.clamp(max=0).abs().mean()),
            "edge": float(edge.mean()),
            "below": int((edge < 1).sum()),
            "rises": int(rises.sum()),
            "rises.below": int((rises & (edge < 1)).sum()),
            **{f"margin.{z}": float(m) for z, m in enumerate(dynamics.margins(pairs, after)[0])},
        }


@law("dynamics.forgetting")
def forgotten_tokens(draws: int, seed: int, N: int = 30, alpha: float = 1.0) -> Rows:
    """For each random plane the 0/1 error where the cross-entropy is least, and the least one."""
    plane = Plane.drawn(N, alpha, draws, seed)
    found = error_at(plane, minimise_cross_entropy(plane))
    for minimiser, best in zip(found.tolist(), best_errors(plane).tolist(), strict=True):
        yield {"error": minimiser, "best": best, "excess": minimiser - best}


@law("dynamics.forgetful_path")
def forgetful_path(
    draws: int, seed: int, N: int = 10, alpha: float = 2.0, rate: float = 0.1, batch: int = 10, steps: int = 1000
) -> Rows:
    """Paths from γ = (7.5, 2.5) on `draws` random planes, one row a step.

    risen                    share of the planes in which the 0/1 error of population descent has risen at some step so
                             far in which the cross-entropy fell
    loss, error, gamma.0/1   of the first plane, on batches (published) and, with .flow, on the population
    """
    plane, start = Plane.drawn(N, alpha, draws, seed), np.array(START)
    flows, sampled = descend_loss(plane, start, rate, steps), descend_samples(plane, start, rate, steps, batch, seed)
    risen, last = np.zeros(draws, bool), None
    for flow, sample in zip(flows, sampled, strict=True):
        now = (cross_entropy(plane, flow), error_at(plane, flow))
        if last is not None:
            risen |= (now[0] < last[0]) & (now[1] > last[1] + 1e-12)
        last = now
        yield {"risen": float(risen.mean()), **_first(plane, sample, ""), **_first(plane, flow, ".flow")}


def _first(plane: Plane, gamma: np.ndarray, name: str) -> dict[str, float]:
    one, point = Plane(plane.sides[:1], plane.p), gamma[:1]
    values = (cross_entropy(one, point)[0], error_at(one, point)[0], *point[0])
    return {
        f"{key}{name}": float(value) for key, value in zip(("loss", "error", "gamma.0", "gamma.1"), values, strict=True)
    }
