r"""What can be predicted in context from a bag of tokens, and from the whole sequence.

One layer of attention sees the current token and a bag of the tokens so far. Its counts n_j stand out where an output
has been: if the current trigger occurred m times before, its output occurred m times more than the other tokens of the
bag explain. Token i is followed by j about π_b(j|i) times, so with n_j Poisson of mean λ_j = Σ_{i≠z_t} n_i π_b(j|i),

    log P(n | o = j) − log P(n | no output) = −m log λ_j + log n_j! − log (n_j − m)!

This is a good guess from the bag, not the optimum of one layer, which may also weigh positions.

The best predictor of all knows the task. A token a that always had the same successor o is a trigger with probability

    p = ρ_a π_o(o|a) / (ρ_a π_o(o|a) + (1 − ρ_a) Π π_b(successors | a)),      ρ_a the chance that a is a trigger

and it predicts p 1_o + (1 − p) π_b(·|a). (The draws of different triggers are taken as independent.)
"""

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln

from engram.tasks import Batch, Bigram
from engram.values import Rows, generator, law

Guesses = Int[np.ndarray, "B T"]
MANY, AT_ONCE = 2**16, 500  # draws of triggers for their chances; sequences at a time


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
