"""Reference levels of the bigram task: entropies of the text, and the least loss on global positions."""

import numpy as np

from engram.tasks import Bigram
from engram.tasks.oracle import global_floor
from engram.values import Rows, law


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
    """The floor of the global loss (engram.tasks.oracle.global_floor) of a Bigram task with these fields."""
    found = global_floor(Bigram.model_validate({"K": K, "T": T, "triggers": triggers, "offset": offset}), draws, seed)
    yield {"floor": found.value, "floor.error": found.error}
