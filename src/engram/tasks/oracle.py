"""What the best predictor of the bigram task can reach."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from engram.tasks.batch import Batch
from engram.tasks.bigram import Bigram, Pairs
from engram.values import generator


@dataclass(frozen=True)
class Level:
    """A reference level in nats and its standard error (0 when the expectation was enumerated)."""

    value: float
    error: float


def predictions(task: Bigram, batch: Batch) -> Int[np.ndarray, "B T"]:
    """The best guess at every position, from the sequence alone where that suffices.

    In context: the token that followed the previous visit of this one. Elsewhere: argmax π_b(· | z_t).
    """
    guess = task.table.bigram.argmax(axis=1)[batch.tokens]
    previous = previous_visits(batch.tokens)
    followed = np.take_along_axis(batch.targets, np.maximum(previous, 0), axis=1)
    return np.where(batch.groups["in_context"], followed, guess)


def previous_visits(tokens: Int[np.ndarray, "B T"]) -> Int[np.ndarray, "B T"]:
    """The last earlier position that holds the same token, −1 where there is none."""
    T = tokens.shape[1]
    earlier = np.tri(T, k=-1, dtype=bool) & (tokens[:, :, None] == tokens[:, None, :])
    return np.where(earlier.any(axis=2), T - 1 - np.argmax(earlier[:, :, ::-1], axis=2), -1)


def global_floor(task: Bigram, draws: int = 4000, seed: int = 0) -> Level:
    r"""The least loss on `global` positions: Σ_i ν_i H(π_b(·|i)) / Σ_i ν_i.

    ν_i is the expected number of visits of token i while it is not a trigger. Given triggers and outputs the sequence
    is a Markov chain, so ν follows from T products with π_b: no sequence is sampled. With one trigger, all (q, o)
    are enumerated and the floor is exact; with more, their N^2K combinations are averaged over `draws` of them.
    """
    exact = task.K == 1
    weights, pairs = _every_pair(task) if exact else _drawn_pairs(task, draws, seed)
    parts = max(1, len(weights) * task.N // 2**22)  # a part of the chains at a time bounds memory
    chains = zip(*(np.array_split(side, parts) for side in pairs), strict=True)
    visits = np.concatenate([_global_visits(task, q, o) for q, o in chains])
    uncertainty, positions = visits @ task.table.row_entropies, visits.sum(axis=1)
    if weights @ positions == 0:
        return Level(float("nan"), 0.0)  # every token is a trigger
    floor = weights @ uncertainty / (weights @ positions)
    residual = (uncertainty - floor * positions) / (weights @ positions)
    return Level(float(floor), 0.0 if exact else float(residual.std(ddof=1) / np.sqrt(draws)))


def _drawn_pairs(task: Bigram, draws: int, seed: int) -> tuple[Float[np.ndarray, " n"], Pairs]:
    return np.full(draws, 1 / draws), task.draw_pairs(generator(seed, "floor"), draws)


def _every_pair(task: Bigram) -> tuple[Float[np.ndarray, " n"], Pairs]:
    """Every trigger q with every output o, and the probability of the two."""
    N, fixed = task.N, task.fixed_triggers
    p_q = task.table.unigram if fixed is None else np.isin(np.arange(N), fixed).astype(float)
    p_qo = p_q[:, None] * task.output_law
    q, o = np.nonzero(p_qo)
    return p_qo[q, o], (q[:, None], o[:, None])


def _global_visits(task: Bigram, q: Int[np.ndarray, "n K"], o: Int[np.ndarray, "n K"]) -> Float[np.ndarray, "n N"]:
    """Expected visits of each token while it is not a trigger, over T positions, in each chain."""
    chain = np.arange(len(q))
    p = np.tile(task.table.unigram, (len(q), 1))
    visits = np.zeros_like(p)
    for _ in range(task.T):
        forced = np.take_along_axis(p, q, axis=1)
        np.put_along_axis(p, q, 0.0, axis=1)
        visits += p
        p = p @ task.table.bigram
        for k in range(task.K):
            p[chain, o[:, k]] += forced[:, k]
    return visits
