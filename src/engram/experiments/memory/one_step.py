"""One gradient step from W = 0 stores every pair, and learns to ignore what does not predict.

With orthonormal embeddings the scores after one population step are known; with random ones every pair is recalled.
When inputs carry a position too, x = e_y + p_t, it cancels in W1 (Eq. 12) and accuracy is 1 at every position.

    engram run memory.one-step --seeds 5
"""

from collections.abc import Iterator, Sequence
from typing import Any

from engram.claims import Claim, Measure
from engram.claims.experiment import Scale
from engram.experiments.memory import of_law, worst
from engram.records import Record
from engram.specs import Check

TIMES = "quick 2 s a seed, paper 20 s a seed on 2 cores"
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


def specs(scale: Scale, seeds: Sequence[int]) -> list[Check]:
    clean = [Check(law="one_step.clean", sizes=CLEAN[scale], draws=3, seed=seed) for seed in seeds]
    return clean + [Check(law="one_step.noisy", sizes=NOISY[scale], seed=seed) for seed in seeds]


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    clean, noisy = of_law(records, "one_step.clean"), of_law(records, "one_step.noisy")
    yield Claim(
        "memory.one-step",
        CLAIMS["memory.one-step"],
        SOURCE,
        (
            Measure.exact("orthonormal: largest error of a score", worst(clean, "error"), 1e-10),
            Measure.over_seeds("random: accuracy, worst draw", least(clean, "accuracy"), low=0.999),
        ),
    )
    N = next(r.check.sizes["N"] for r in records if r.check.law == "one_step.noisy")
    right = [sum(row["right.mean"] for row in rows) / len(rows) for rows in noisy]
    yield Claim(
        "memory.noise-filtered",
        CLAIMS["memory.noise-filtered"],
        SOURCE,
        (
            Measure.exact("W1 minus Eq. 12, largest entry", worst(noisy, "error.W1"), 1e-10),
            Measure.exact("orthonormal: largest error of a score", worst(noisy, "error.scores"), 1e-10),
            Measure.over_seeds("random: accuracy at the worst position", least(noisy, "accuracy"), low=0.999),
            Measure.over_seeds("random: mean right score in units of η/N", right, low=0.95 - 1 / N, high=1.05 - 1 / N),
        ),
    )


def least(runs: Sequence[Sequence[dict[str, float]]], column: str) -> list[float]:
    """The smallest value of each run."""
    return [min(row[column] for row in rows) for rows in runs]


def figure(records: Sequence[Record]) -> Any:
    from engram.show.laws import scores_by_position

    runs = [r for r in records if r.check.law == "one_step.noisy"]
    return scores_by_position([r.rows for r in runs], runs[0].check.sizes)
