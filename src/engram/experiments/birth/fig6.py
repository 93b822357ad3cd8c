"""Fig. 6: the memories behind Fig. 4 center: uniform outputs fill W_O2 and W_K2 better, W_K1 does not care.

The same trainings as birth.fig4-center. Bigram outputs are already predicted by W_F, so little is left for the
induction head to learn from; the previous-token memory is useful at every position, whatever the outputs.

    engram run birth.fig6 --seeds 5
"""

from math import inf

from engram.claims import Figure, Measure, Measures, Runs
from engram.claims.readings import late_mean
from engram.experiments.birth.fig4_center import LAWS, specs

__all__ = ["CLAIMS", "SOURCE", "TIMES", "claims", "figure", "specs"]

TIMES = "the runs of birth.fig4-center"
SOURCE = "Birth of a Transformer, Fig. 6"
CLAIMS = {
    "birth.diversity-fills-memories": "Uniform outputs fit W_O2 and W_K2 better than bigram ones; W_K1 is comparable."
}


def claims(runs: Runs) -> Measures:
    bands = {"recall.W_O2": (0, inf), "recall.W_K2": (0, inf), "recall.W_K1.t<64": (-0.15, 0.15)}
    for column, band in bands.items():
        uniform, bigram = ([late_mean(r, column, r.train.steps, 50) for r in runs[law]] for law in LAWS)
        yield Measure.difference(f"{column}, last 50 steps: uniform minus bigram", uniform, bigram, *band)


def figure(runs: Runs) -> Figure:
    from engram.show.birth import memories_by_kind

    kinds = {f"trained on {law} outputs": same for law, same in runs.items()}
    return memories_by_kind(kinds, "Fig. 6: memories by outputs")
