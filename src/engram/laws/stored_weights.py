"""Laws of what optimisers store: weights q(z) after learning, schedules of steps, and rules that normalise them."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from engram.laws.memory_steps import drawn_pairs
from engram.tasks.zipf import Zipf
from engram.theory import memory_dynamics as dynamics
from engram.theory.margin_law import repeated_visits
from engram.theory.memory_dynamics import RULES, Logits, Pairs, descend, follow, matrix_of, scores_of
from engram.theory.stored_weights import recursion, scores_with, stored_in, weights_of
from engram.values import Rows, generator, law

Shares = Float[Tensor, "draws N"]
Metric = Callable[[Pairs, Logits], Float[Tensor, " draws"]]
LOOKS = 50


def batches(task: Zipf, draws: int, batch: int, steps: int, seed: int) -> Iterator[Shares]:
    """The share of every token in each of `steps` fresh batches, for `draws` problems."""
    rng = generator(seed, "dynamics.batches")
    for _ in range(steps):
        yield torch.from_numpy(rng.multinomial(batch, task.probabilities, size=draws) / batch)


def constant(shares: Iterator[Shares], rate: float) -> Iterator[tuple[Shares, float]]:
    return ((share, rate) for share in shares)


@law("dynamics.stored")
def stored_weights(
    draws: int, seed: int, *, N: int, d: int, batch: int, rate: float, steps: int, M: int = 5, alpha: float = 2.0
) -> Rows:
    """What descent on fresh batches from W = 0 stores, one row for each token of each of `draws` memories.

    q       its weight: read off W by least squares where d ≥ N, else kept while learning, as no matrix tells it
    seen    its share of all samples
    wrong   1 where it is answered wrongly at the end
    """
    task = Zipf(N=N, M=M, alpha=alpha)
    pairs = drawn_pairs(task, ("gaussian/d", "sphere"), d, draws, seed, "stored")
    shares = list(batches(task, draws, batch, steps, seed))
    *_, c = follow(pairs, constant(iter(shares), rate))
    seen, wrong = torch.stack(shares).mean(0), scores_of(pairs, c).argmax(-1) != pairs.answers
    weights = torch.stack([_weights(Pairs(pairs.E[i], pairs.U[i], pairs.p, pairs.answers), c[i]) for i in range(draws)])
    for draw in range(draws):
        columns = (task.probabilities, weights[draw], seen[draw], wrong[draw])
        for p, q, share, is_wrong in zip(*columns, strict=True):
            yield {"draw": draw, "p": float(p), "q": float(q), "seen": float(share), "wrong": int(is_wrong)}


def _weights(pairs: Pairs, c: Logits) -> Float[Tensor, " N"]:
    readable = pairs.E.shape[-1] >= pairs.E.shape[-2]
    return weights_of(stored_in(matrix_of(pairs, c), pairs) if readable else c, pairs.answers)


@law("dynamics.schedules")
def schedules(
    draws: int, seed: int, N: int = 10, M: int = 5, d: int = 5, alpha: float = 1.5, steps: int = 1000, turn: int = 100
) -> Rows:
    """The 0/1 error of `draws` memories under SGD with batch 1, for γ = 0.1, γ = 10, and 10 that becomes 0.3 at `turn`.

    All three see the same tokens. One row at each of LOOKS steps and at the first ones.
    """
    task = Zipf(N=N, M=M, alpha=alpha)
    pairs = drawn_pairs(task, ("gaussian/d", "sphere"), d, draws, seed, "schedules")
    shares = list(batches(task, draws, 1, steps, seed))
    rates = {"small": [0.1] * steps, "large": [10.0] * steps, "decayed": [10.0] * turn + [0.3] * (steps - turn)}
    paths = [follow(pairs, zip(shares, rate[:steps], strict=True)) for rate in rates.values()]
    looks = {*range(0, min(steps, 20)), *np.linspace(0, steps, LOOKS + 1).astype(int).tolist()}
    for t, found in enumerate(zip(*paths, strict=True)):
        if t in looks:
            errors = (dynamics.error(pairs, scores_of(pairs, c)).mean() for c in found)
            yield {"samples": t, **{f"error.{name}": float(e) for name, e in zip(rates, errors, strict=True)}}


@law("dynamics.rules")
def rules(
    draws: int, seed: int, N: int = 10, M: int = 5, d: int = 10, alpha: float = 2.0, rate: float = 1.0, steps: int = 100
) -> Rows:
    """The 0/1 error of `draws` memories on the population, by gradients, by their signs, and over their spread."""
    pairs = drawn_pairs(Zipf(N=N, M=M, alpha=alpha), ("gaussian/d", "sphere"), d, draws, seed, "rules")
    yield from _by_rule(pairs, dynamics.error, "error", rate, steps)


@law("dynamics.wrong_tokens")
def wrong_tokens(
    draws: int, seed: int, N: int = 10, M: int = 5, d: int = 10, alpha: float = 2.0, rate: float = 1.0, steps: int = 100
) -> Rows:
    """The memories of `dynamics.rules`: the mean p of the tokens that are wrong, 0 where none is."""
    pairs = drawn_pairs(Zipf(N=N, M=M, alpha=alpha), ("gaussian/d", "sphere"), d, draws, seed, "rules")
    yield from _by_rule(pairs, dynamics.mean_of_wrong, "p", rate, steps)


def _by_rule(pairs: Pairs, metric: Metric, name: str, rate: float, steps: int) -> Rows:
    """A metric after every step, the mean over memories, by each of the rules."""
    for found in zip(*(descend(pairs, rule, rate, steps) for rule in RULES), strict=True):
        yield {f"{name}.{rule}": float(metric(pairs, z).mean()) for rule, z in zip(RULES, found, strict=True)}


@law("dynamics.recursion")
def approximation(
    draws: int, seed: int, *, d: int, N: int = 100, M: int = 5, alpha: float = 2.0, batch: int = 1000, steps: int = 100
) -> Rows:
    """The 0/1 error of `draws` memories, and that of the scalar approximation of q on the same batches, γ = 1."""
    task = Zipf(N=N, M=M, alpha=alpha)
    pairs = drawn_pairs(task, ("gaussian/d", "sphere"), d, draws, seed, "recursion")
    shares = list(batches(task, draws, batch, steps, seed))
    real, scalar = follow(pairs, constant(iter(shares), 1.0)), recursion(pairs, constant(iter(shares), 1.0))
    for c, q in zip(real, scalar, strict=True):
        errors = (dynamics.error(pairs, logits).mean() for logits in (scores_of(pairs, c), scores_with(pairs, q)))
        yield {name: float(e) for name, e in zip(("error.real", "error.scalar"), errors, strict=True)}


@law("dynamics.visits")
def visits(draws: int, seed: int, rate: float, m: float = 10.0) -> Rows:
    """The weight of a token after 1 … `draws` visits: q += γ / (1 + e^q/m)."""
    for k, q in enumerate(repeated_visits(rate, m, draws)[1:].tolist(), start=1):
        yield {"visits": k, "q": q}
