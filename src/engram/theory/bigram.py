r"""What can be predicted in the bigram task: entropies of its text, the least loss on global positions, and in context.

One layer of attention sees the current token and a bag of the tokens so far. Its counts n_j stand out where an output
has been: if the current trigger occurred m times before, its output occurred m times more than the other tokens of the
bag explain. Token i is followed by j about π_b(j|i) times, so with n_j Poisson of mean λ_j = Σ_{i≠z_t} n_i π_b(j|i),

    log P(n | o = j) − log P(n | no output) = −m log λ_j + log n_j! − log (n_j − m)!

This is a good guess from the bag, not the optimum of one layer, which may also weigh positions.

The best predictor of all knows the task. A token a that always had the same successor o is a trigger with probability

    p = ρ_a π_o(o|a) / (ρ_a π_o(o|a) + (1 − ρ_a) Π π_b(successors | a)),      ρ_a the chance that a is a trigger

and it predicts p 1_o + (1 − p) π_b(·|a). (The draws of different triggers are taken as independent.)
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln

from engram.tasks import Batch, Bigram
from engram.tasks.bigram import Pairs
from engram.values import Rows, generator, law

Guesses = Int[np.ndarray, "B T"]
MANY, AT_ONCE = 2**16, 500  # draws of triggers for their chances; sequences at a time


@law("bigram.text_levels")
def text_levels(draws: int, seed: int) -> Rows:
    """H(π_u) and Σ_i π_u(i) H(π_b(·|i)) of the bundled text in nats, and the number of its different bigrams."""
    table = Bigram().table
    yield {
        "entropy.unigram": float(-np.sum(table.unigram * np.log(table.unigram))),
        "entropy.bigram": float(table.unigram @ table.row_entropies),
        "bigrams": float(np.count_nonzero(table.bigram)),
    }


@law("bigram.floor_levels")
def floor_levels(draws: int, seed: int, K: int, T: int = 256) -> Rows:
    """The floor of the global loss from expected visits, beside the same from `draws` sampled sequences."""
    task = Bigram(K=K, T=T)
    floor = global_floor(task, seed=seed)
    batch = task.sample(seed, 0, draws)
    visited = batch.tokens[batch.groups["global"]]
    sampled = float(task.table.row_entropies[visited].mean())
    yield {"floor": floor.value, "floor.error": floor.error, "sampled": sampled}


@law("bigram.floor")
def floor(draws: int, seed: int, K: int, T: int, triggers: str, offset: int = 0) -> Rows:
    """The floor of the global loss of a Bigram task with these fields."""
    found = global_floor(Bigram.model_validate({"K": K, "T": T, "triggers": triggers, "offset": offset}), draws, seed)
    yield {"floor": found.value, "floor.error": found.error}


@dataclass(frozen=True)
class Level:
    """A reference level in nats and its standard error (0 when the expectation was enumerated)."""

    value: float
    error: float


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


@law("predictors.in_context_levels")
def in_context_levels(draws: int, seed: int, K: int, T: int, triggers: str) -> Rows:
    """In-context accuracy of three predictors over `draws` sequences: the token that stands out most in the bag, a
    good guess from the bag, and the best predictor."""
    task = Bigram.model_validate({"K": K, "T": T, "triggers": triggers})
    guesses = {"stands_out": stands_out, "bag": bag_guess, "ceiling": best_guess}
    hits = {name: np.zeros(0, dtype=bool) for name in guesses}
    for part in range(0, draws, AT_ONCE):
        batch = task.sample(seed, part, min(AT_ONCE, draws - part))
        read = batch.groups["in_context"]
        for name, guess in guesses.items():
            hits[name] = np.append(hits[name], (guess(task, batch) == batch.targets)[read])
    yield {name: float(hit.mean()) for name, hit in hits.items()}


def counts(tokens: Int[np.ndarray, "B T"], N: int) -> Float[np.ndarray, "B T N"]:
    """n_j, how often each token j occurs up to and including t."""
    return np.cumsum(np.eye(N)[tokens], axis=1)


def explained(task: Bigram, batch: Batch, n: Float[np.ndarray, "B T N"]) -> Float[np.ndarray, "B T N"]:
    """λ_j = Σ_{i≠z_t} n_i π_b(j|i), how often each token j should have occurred, given the rest of the bag."""
    others = n.copy()
    np.put_along_axis(others, batch.tokens[:, :, None], 0.0, axis=2)
    return np.maximum(others @ task.table.bigram, 1e-3)


def stands_out(task: Bigram, batch: Batch) -> Guesses:
    """argmax_j (n_j − λ_j): the token that occurred most often beyond what the others explain."""
    n = counts(batch.tokens, task.N)
    return np.argmax(n - explained(task, batch, n), axis=2)


def bag_guess(task: Bigram, batch: Batch) -> Guesses:
    """argmax_j (−m log λ_j + log n_j! − log (n_j − m)!): the likeliest output, given all counts so far."""
    n = counts(batch.tokens, task.N)
    m = np.take_along_axis(n, batch.tokens[:, :, None], axis=2) - 1  # earlier visits
    gain = -m * np.log(explained(task, batch, n)) + gammaln(n + 1) - gammaln(np.maximum(n - m, 0) + 1)
    return np.argmax(np.where(n >= m, gain, -np.inf), axis=2)


def best_guess(task: Bigram, batch: Batch) -> Guesses:
    """argmax of p 1_o + (1 − p) π_b(·|a): the likeliest next token, given the earlier successors of the current one."""
    (B, T), N = batch.tokens.shape, task.N
    log_pi_o = np.log(np.maximum(task.output_law, 1e-12))
    log_pi_b, rho = np.log(np.maximum(task.table.bigram, 1e-12)), chance_of_trigger(task)
    output, alone, visited = np.zeros((B, N), dtype=int), np.zeros((B, N)), np.zeros((B, N), dtype=bool)
    guess, b = np.empty((B, T), dtype=int), np.arange(B)
    for t in range(T):
        a, y = batch.tokens[:, t], batch.targets[:, t]
        odds = np.log(rho[a]) + log_pi_o[a, output[b, a]] - np.log1p(-rho[a]) - alone[b, a]
        p = np.where(visited[b, a], 1 / (1 + np.exp(-odds)), 0.0)
        law = (1 - p)[:, None] * task.table.bigram[a]
        law[b, output[b, a]] += p
        guess[:, t] = law.argmax(axis=1)
        differs = visited[b, a] & (output[b, a] != y)
        alone[b, a] += np.where(differs, np.inf, log_pi_b[a, y])  # two different successors: no trigger
        output[b, a], visited[b, a] = np.where(visited[b, a], output[b, a], y), True
    return guess


def chance_of_trigger(task: Bigram) -> Float[np.ndarray, " N"]:
    """ρ_a, how often each token a is a trigger; kept away from 0 and 1, so that the odds are finite."""
    drawn = task.draw_triggers(generator(0, "chance"), MANY)
    return np.clip(np.bincount(drawn.ravel(), minlength=task.N) / MANY, 1e-9, 1 - 1e-9)


def previous_visits(tokens: Int[np.ndarray, "B T"]) -> Int[np.ndarray, "B T"]:
    """The last earlier position that holds the same token, −1 where there is none."""
    T = tokens.shape[1]
    earlier = np.tri(T, k=-1, dtype=bool) & (tokens[:, :, None] == tokens[:, None, :])
    return np.where(earlier.any(axis=2), T - 1 - np.argmax(earlier[:, :, ::-1], axis=2), -1)
