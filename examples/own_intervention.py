"""An intervention of one's own: what happens when the output memory is pruned in the middle of its birth?

Hardly anything: more than four of five entries become zero, but a memory is spread over all of them. Recall falls from
0.42 to 0.37, and at the end it is 0.82 rather than 0.83 (seed 0).

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
    T, d, batch, steps, at = {"smoke": (32, 16, 4, 12, 6)}.get(scale, (64, 128, 32, 60, 25))
    plan = Plan(optimiser=SGD(lr=1.0, momentum=0.9), steps=steps, batch=batch, trained=("W_O2",), probe_every=1)
    same = {"task": Bigram(K=5, T=T), "model": Simplified(d=d), "plan": plan}
    pruned = (Prune(step=at, matrix="W_O2", share=1.5),)
    return {
        "left alone": [Train(**same, seed=seed) for seed in seeds],
        "pruned": [Train(**same, seed=seed, events=pruned) for seed in seeds],
    }
