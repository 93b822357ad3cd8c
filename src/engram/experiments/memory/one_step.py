"""One gradient step from W = 0 stores every pair, and learns to ignore what does not predict.

With orthonormal embeddings the scores after one population step are known; with random ones every pair is recalled.
When inputs carry a position too, x = e_y + p_t, it cancels in W1 (Eq. 12) and accuracy is 1 at every position.

    engram run memory.one-step --seeds 5
"""

from engram.claims import Claimed, Figure, Labelled, Measure, Records, Runs, Scale, Seeds, checks
from engram.claims.readings import counted, worst_by_seed
from engram.experiments.memory import mean

SOURCE = "Birth of a Transformer, Lemma 1, Lemma 2 and its example (Eq. 11 and 12)"
CLAIMS = {
    "memory.one-step": "One step from W = 0 gives scores (η/N)(1{k = f(z)} − 1/N), and random embeddings are recalled.",
    "memory.noise-filtered": "One step on e_y + p_t cancels the positions and predicts y at every position.",
}
CLEAN = {
    "smoke": {"N": 8, "d": 64},
    "quick": {"N": 64, "d": 256},
    "paper": {"N": 256, "d": 512},
}
NOISY = {
    "smoke": {"N": 8, "T": 4, "d": 128},
    "quick": {"N": 64, "T": 32, "d": 512},
    "paper": {"N": 128, "T": 64, "d": 1024},
}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    return {
        "clean": checks("one_step.clean", seeds, 3, **CLEAN[scale]),
        "noisy": checks("one_step.noisy", seeds, **NOISY[scale]),
    }


def claims(runs: Runs) -> Claimed:
    clean, noisy = runs["clean"], runs["noisy"]
    stored = [
        Measure.worst("orthonormal: largest error of a score", worst_by_seed(clean, "error"), 1e-10),
        _recalled("random: accuracy, worst draw", clean),
    ]
    yield "memory.one-step", stored
    N, right = noisy[0].check.sizes["N"], "random: mean right score in units of η/N"
    filtered = [
        Measure.worst("W1 minus Eq. 12, largest entry", worst_by_seed(noisy, "error.W1"), 1e-10),
        Measure.worst("orthonormal: largest error of a score", worst_by_seed(noisy, "error.scores"), 1e-10),
        _recalled("random: accuracy at the worst position", noisy),
        mean(right, noisy, "right.mean", low=0.95 - 1 / N, high=1.05 - 1 / N),
    ]
    yield "memory.noise-filtered", filtered


def _recalled(name: str, records: Records) -> Measure:
    """The smallest accuracy of each run, a share of N tokens."""
    N, least = records[0].check.sizes["N"], [float(r.column("accuracy").min()) for r in records]
    return Measure.share(name, counted(least, N), N, low=0.95)


def figure(runs: Runs) -> Figure:
    from engram.show.memory_laws import scores_by_position

    return scores_by_position(runs["noisy"])
