"""A task of one's own: a random word, again and again. Does the same model learn to look back?

engram run ./own_task.py --seeds 5
"""

import numpy as np

from engram import SGD, Batch, Claim, Measure, Plan, Simplified, Train, Value, generator


class Repeat(Value):
    """z_1 … z_L are different random letters; from then on z_t = z_{t−L}."""

    N: int = 26
    T: int = 40
    L: int = 12
    groups: tuple[str, ...] = ("in_context", "first")

    def sample(self, seed: int, step: int, batch: int) -> Batch:
        words = generator(seed, "data", step).permuted(np.tile(np.arange(self.N), (batch, 1)), axis=1)[:, : self.L]
        z = words[:, np.arange(self.T + 1) % self.L]
        again = np.broadcast_to(np.arange(self.T) >= self.L, (batch, self.T))
        return Batch(z[:, :-1], z[:, 1:], {"in_context": again, "first": ~again})


def specs(scale, seeds):
    plan = Plan(optimiser=SGD(lr=0.2, momentum=0.9), steps={"smoke": 5}.get(scale, 300), batch=64)
    return [Train(task=Repeat(), model=Simplified(d=64), plan=plan, seed=seed) for seed in seeds]


def claims(records):
    final = [record.column("accuracy.in_context")[-1] for record in records]
    measure = Measure.over_seeds("accuracy at the end", final, low=0.9)
    yield Claim("mine.looks-back", "It does.", "this file", (measure,))
