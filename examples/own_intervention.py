"""An intervention of one's own: what happens when the output memory is pruned in the middle of its birth?

Because the Specs name the class, the lab offers it, with a form, in every run of this file: engram lab.

engram run ./own_intervention.py
"""

from typing import Annotated

from pydantic import Field

from engram import SGD, Bigram, OfMatrix, Plan, Simplified, Train


class Prune(OfMatrix):
    """Entries smaller than a share of the root of the mean square are set to zero."""

    title = "Prune a matrix"
    words = "prune {matrix} below {share:g} of its root mean square"
    share: Annotated[float, Field(gt=0)] = 1.0

    def act(self, w, moments, past, stream):
        W = w[self.matrix]
        W[W.abs() < self.share * W.square().mean().sqrt()] = 0


def specs(scale, seeds):
    """Under two labels: the same training with and without the intervention."""
    T, d, batch, steps = {"smoke": (32, 16, 4, 12)}.get(scale, (128, 128, 128, 300))
    plan = Plan(optimiser=SGD(lr=0.2, momentum=0.9, weight_decay=1e-4), steps=steps, batch=batch)
    same = {"task": Bigram(K=5, T=T), "model": Simplified(d=d), "plan": plan}
    pruned = (Prune(step=steps // 2, matrix="W_O2", share=1.5),)
    return {
        "left alone": [Train(**same, seed=seed) for seed in seeds],
        "pruned": [Train(**same, seed=seed, events=pruned) for seed in seeds],
    }
