r"""What can be predicted in noisy recall: the best predictor in context, and the least loss.

Only the successors of the trigger tell of ō: every other token is drawn from π_u or π_b, whatever ō is. Let C = N − 1
be the number of tokens besides the noise token ν, and p₀ = P(ō = ν): 1/N for an existing ν, 0 for an extra one.

    an output o ≠ ν was seen      P(ν) = α,                  P(o) = 1 − α
    ν was seen n times, alone     P(ν) = r + (1 − r) α,      P(j) = (1 − r)(1 − α)/C,      r = p₀/(p₀ + (1 − p₀) αⁿ)

r is P(ō = ν | ν n times). The least loss is the mean entropy of these laws over positions in context. With g_n the
expected number of visits that follow n others while ν comes after each, and v_o the expected number of visits if ō = o,

    positions    Σ_o P(o) v_o − g_0        of which ν was seen alone, n ≥ 1 times, at    (p₀ + (1 − p₀) αⁿ) g_n

Both come from T products with π_b: no sequence is sampled.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.special import entr, xlogy

from engram.tasks import Batch, NoisyRecall
from engram.values import Rows, law

MOST = 512  # after so many times ν alone, r = 1 to the last digit: α ≤ 0.9
Many = Float[np.ndarray, " n"]


@dataclass(frozen=True)
class NoisyLevels:
    """What the best predictor of a noisy task reaches in context, losses in nats.

    floor         its loss on the task itself: the least there is
    p_noise       on clean text, where α = 0: its mean probability of the noise token,
    p_correct     of the token that comes,
    clean_loss    and its loss
    """

    floor: float
    p_noise: float
    p_correct: float
    clean_loss: float


@law("noisy.levels")
def levels(draws: int, seed: int, alpha: float, T: int = 256, offset: int = 0, noise: str = "existing") -> Rows:
    """What the best predictor reaches on the bundled text. Nothing is drawn."""
    task = NoisyRecall.model_validate({"alpha": alpha, "T": T, "offset": offset, "noise": noise})
    found = noisy_levels(task)
    clean = {"p_noise": found.p_noise, "p_correct": found.p_correct, "loss": found.clean_loss}
    yield {"floor": found.floor} | {f"clean.{name}": value for name, value in clean.items()}


def noisy_levels(task: NoisyRecall) -> NoisyLevels:
    """The levels of the best predictor, exactly."""
    alpha, p_0, g = task.alpha, chance_of_noise(task), alone_visits(task)
    n = np.arange(1, len(g))
    p_noise, p_other = alone_law(task, n)
    alone = (p_0 + (1 - p_0) * alpha**n) * g[1:]
    asked = _mean_visits(task, alpha) - g[0]
    uncertainty = entr(p_noise) + (task.N - 1) * entr(p_other)
    floor = (alone @ uncertainty + (asked - alone.sum()) * (entr(alpha) + entr(1 - alpha))) / asked
    # On clean text ν is seen alone only where it is the output, and any other output is known at once.
    always, known = p_0 * g[1:], _mean_visits(task, 0.0) - g[0] - p_0 * g[1:].sum()
    share = always.sum() + known
    return NoisyLevels(
        float(floor),
        float((always @ p_noise + known * alpha) / share),
        float((always @ p_noise + known * (1 - alpha)) / share),
        float((known * -np.log1p(-alpha) - xlogy(always, p_noise).sum()) / share),
    )


def best_law(task: NoisyRecall, batch: Batch) -> Float[np.ndarray, "n N"]:
    """P(z_{t+1} | z_1 … z_t) of the task at every position in context, in their order."""
    z, read, noise = batch.tokens, batch.groups["in_context"], task.noise_token
    follows = np.zeros(z.shape, dtype=bool)
    follows[:, 1:] = z[:, :-1] == task.trigger
    told = follows & (z != noise)  # where the output stands
    known = (np.cumsum(told, axis=1) > 0)[read]
    output = np.broadcast_to(z[np.arange(len(z)), np.argmax(told, axis=1)][:, None], z.shape)[read]
    p_noise, p_other = alone_law(task, np.cumsum(follows & ~told, axis=1)[read])
    found = np.where(known, 0.0, p_other)[:, None].repeat(task.N, axis=1)
    found[:, noise] = np.where(known, task.alpha, p_noise)
    found[known, output[known]] = 1 - task.alpha
    return found


def chance_of_noise(task: NoisyRecall) -> float:
    """p₀ = P(ō = ν)."""
    return 1 / task.N if task.noise == "existing" else 0.0


def alone_law(task: NoisyRecall, n: Int[np.ndarray, " n"]) -> tuple[Many, Many]:
    """P(ν), and P(j) of each other token, after the trigger was followed n times by ν and by nothing else."""
    p_0 = chance_of_noise(task)
    r = p_0 / (p_0 + (1 - p_0) * task.alpha**n) if p_0 else np.zeros(len(n))
    return r + (1 - r) * task.alpha, (1 - r) * (1 - task.alpha) / (task.N - 1)


def alone_visits(task: NoisyRecall) -> Many:
    """g_n for n = 0, 1, …: expected visits of q after n others where ν follows each; the last counts all beyond."""
    rows = min(task.T, MOST)

    def count(at_q: Many) -> Float[np.ndarray, "n N"]:
        found = np.zeros((rows, task.N))
        found[1:, task.noise_token] = at_q[:-1]
        found[-1, task.noise_token] += at_q[-1]
        return found

    start = np.zeros((rows, task.N))
    start[0] = task.table.unigram
    return _visits(task, start, count)


def _mean_visits(task: NoisyRecall, alpha: float) -> float:
    """Σ_o P(o) v_o, with noise of probability α."""
    answers = (1 - alpha) * np.eye(task.letters, task.N)
    answers[:, task.noise_token] += alpha
    start = np.tile(task.table.unigram, (task.letters, 1))
    return float(_visits(task, start, lambda at_q: at_q[:, None] * answers).mean())


def _visits(task: NoisyRecall, p: Float[np.ndarray, "n N"], answer: Callable[[Many], np.ndarray]) -> Many:
    """Expected visits of q over T positions in walks that start from p; `answer` says where those at q go."""
    q, visits = task.trigger, np.zeros(len(p))
    for _ in range(task.T):
        at_q = p[:, q].copy()
        visits += at_q
        p[:, q] = 0.0
        p = p @ task.table.bigram + answer(at_q)
    return visits
