"""A task of one's own: a random word, again and again. Does the same model learn to look back?

It does, but by position: layer 2 attends L − 1 places back, or whole words more, and the memories W_K1 and W_K2 of an
induction head stay at chance. Where words have different lengths, position tells nothing and an induction head is born:
recall.W_K2 rises to 1, and layer 1 looks back from where layer 2 looks (attention.chain). Accuracy is the same; the
probes tell them apart.

engram run ./own_task.py --seeds 5
engram run ./own_task.py --set task.spread=3
"""

import numpy as np

from engram import SGD, Batch, Claim, Measure, Plan, Simplified, Train, Value, generator


class Repeat(Value):
    """z_1 … z_L are different random letters; from then on z_t = z_{t−L}; words have L ± spread letters."""

    N: int = 26
    T: int = 32
    L: int = 8
    spread: int = 0
    groups: tuple[str, ...] = ("in_context", "first")

    def sample(self, seed: int, step: int, batch: int) -> Batch:
        rng, t = generator(seed, "data", step), np.arange(self.T + 1)
        words = rng.permuted(np.tile(np.arange(self.N), (batch, 1)), axis=1)
        L = rng.integers(self.L - self.spread, self.L + self.spread + 1, size=(batch, 1))
        z = np.take_along_axis(words, t % L, axis=1)
        again = t[:-1] >= L
        return Batch(z[:, :-1], z[:, 1:], {"in_context": again, "first": ~again})


def specs(scale, seeds):
    plan = Plan(optimiser=SGD(lr=0.2, momentum=0.9), steps={"smoke": 5}.get(scale, 300), batch=64)
    return [Train(task=Repeat(), model=Simplified(d=64), plan=plan, seed=seed) for seed in seeds]


def claims(records):
    accuracy, W_K2, chain = (
        [record.last(column) for record in records]
        for column in ("accuracy.in_context", "recall.W_K2", "attention.chain")
    )
    # one of the positions of a batch: seeds that all say 1 would otherwise have no spread to judge by
    one_more = 1 / (64 * 24)
    right = Measure.over_seeds("accuracy at the end", accuracy, low=0.9, resolution=one_more)
    no_head = Measure.over_seeds("recall of W_K2, which an induction head needs", W_K2, high=0.3)
    no_chain = Measure.over_seeds("layer 1 looks back from where layer 2 looks", chain, high=0.3)
    yield Claim(
        "mine.looks-back", "It does, by position, without an induction head.", "this file", (right, no_head, no_chain)
    )
