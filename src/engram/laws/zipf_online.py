"""Memories of fixed size that learn heavy-tailed facts online: what they know, and which are harder to learn."""

import numpy as np

from engram.learning.online import KINDS, Kind, Online, initial, train
from engram.tasks.zipf import Zipf
from engram.theory.zipf import count, heavy_tail
from engram.theory.zipf_laws import several
from engram.values import Rows, law

RATES = (0.1, 1.0, 10.0, 100.0)
MOST = 64  # how often a fact was seen is told apart up to here


@law("online.kinds")
def kinds(
    draws: int, seed: int, N: int = 100, M: int = 5, alpha: float = 2.0, d: int = 100, n: int = 10_240, batch: int = 64
) -> Rows:
    """The error of each kind of memory after n samples, the mean over `draws`, at each rate γ of SGD."""
    task = heavy_tail(N, M, alpha)
    for lr in RATES:
        yield {"lr": lr, **{kind: _mean_error(task, kind, lr, d, n, batch, seed, draws) for kind in KINDS}}


def _mean_error(task: Zipf, kind: Kind, lr: float, d: int, n: int, batch: int, seed: int, draws: int) -> float:
    how, found = Online(kind=kind, d=d, lr=lr, batch=batch), []
    for draw in range(draws):
        at = several(seed, draw)
        scores = train(how, task, initial(task, kind, d, at), task.sample(n, at), [n])
        found.append(float(task.error(scores)[0]))
    return float(np.mean(found))


@law("online.known")
def known(
    draws: int,
    seed: int,
    N: int = 1000,
    M: int = 5,
    alpha: float = 1.0,
    d: int = 100,
    n: int = 16_384,
    lr: float = 1.0,
    batch: int = 16,
) -> Rows:
    """By how often a fact was seen (0, 1, 2–3, 4–7, … 64 and more): facts, and the share that the matrix knows."""
    task, how = heavy_tail(N, M, alpha), Online(d=d, lr=lr, batch=batch)
    times, right = [], []
    for draw in range(draws):
        at = several(seed, draw)
        tokens = task.sample(n, at)
        scores = train(how, task, initial(task, "matrix", d, at), tokens, [n])[0]
        times.append(count(tokens, N))
        right.append(scores.argmax(1) == task.answers)
    for least, here in _bins(np.concatenate(times)).items():
        yield {"times": least, "facts": int(here.sum()), "known": float(np.concatenate(right)[here].mean())}


def _bins(times: np.ndarray) -> dict[int, np.ndarray]:
    """Which facts were seen 0, 1, 2–3, 4–7, … times; bins without facts are left out."""
    edges = [0, *(2**k for k in range(MOST.bit_length()))]
    upper = [*edges[1:], int(times.max()) + 1]
    found = {a: (times >= a) & (times < b) for a, b in zip(edges, upper, strict=True)}
    return {a: here for a, here in found.items() if here.any()}
