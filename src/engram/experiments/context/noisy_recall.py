"""The noise behind a trigger is learned first, by a feed-forward layer; without it, the answer from context shows.

Two layers, one head each, W_Q = I, ReLU layers of 4d units, all trained but the embeddings, SGD with lr 0.03, momentum
0.9 and weight decay 1e-4, loss on second and later visits of the trigger. On clean text, where noise never comes, the
best predictor of noisy text still gives the noise token probability α. While the model trains, the input matrix W_I2 of
its second feed-forward layer is truncated to a share of its singular values (0 removes it); at the end every matrix is.
The published training has 5000 steps; here the answer from context is found within the first 250 (α = 0.5).

    engram run context.noisy-recall --seeds 5
"""

from collections.abc import Sequence
from statistics import mean

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds, checks
from engram.claims.readings import birth_step, late_mean, worst_by_seed
from engram.experiments.birth import log_ratio
from engram.experiments.context import SOURCE as SOURCE
from engram.learning import SGD, Plan
from engram.models import Layer, Transformer
from engram.probes.noise import Noise
from engram.probes.truncation import SHARES as SWEPT
from engram.probes.truncation import Truncation, TruncationMap, matrices_of, percent
from engram.specs import Train
from engram.tasks import NoisyRecall

CLAIMS = {
    "context.noise-first": "On clean text noise reaches p = 0.4 before the answer from context does (α = 0.5).",
    "context.bayes-level": "On clean text the trained model gives noise the probability it has in noisy text, α.",
    "context.truncation-reveals": "Without the input matrix of the second feed-forward layer the right token gains and "
    "the noise token loses, on clean text.",
    "context.where": "Removing an attention matrix instead does not help.",
    "context.truncation-identity": "A truncated matrix is off by the tail of its spectrum; truncated twice it is the "
    "same; all singular values give the matrix.",
}
FIRST, BAYES, REVEALS, WHERE, EXACT = CLAIMS
LAB = (
    "the noise is in the MLP",
    "When both tokens are equally likely on clean text, truncate W_I2 to rank 0: the right token wins at once, until "
    "training has put the noise back.",
)
SIZES = {"smoke": (24, 16, 4, 10), "quick": (128, 128, 64, 1000), "paper": (256, 256, 512, 400)}  # T, d, batch, steps
ALPHA = 0.5
EVERY = {
    "smoke": (1, 5),
    "quick": (5, 25),
    "paper": (5, 25),
}  # steps between looks at the model, and at its truncations
LOOKED_AT = {"smoke": 8, "quick": 32, "paper": 64}  # sequences, of either kind of text; for the map four times as many
MATRIX, SHARES = "W_I2", (0.0, 0.1, 0.2)
ATTENTION = tuple(f"W_{letter}{layer}" for layer in (1, 2) for letter in "KVO")
LEVEL = 0.4  # of the noise token, and of the right one
IDENTITIES = {
    "error": "largest difference of the error from the tail of the spectrum",
    "again": "largest change by truncating once more",
    "whole": "largest change where all singular values are kept",
}
SHAPES, MATRICES = ((64, 64), (32, 128), (256, 64)), {"smoke": 2, "quick": 20, "paper": 100}
MLP = Layer(queries="identity", feed_forward="mlp")


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    shapes = [check for m, n in SHAPES for check in checks("truncation.identity", seeds, MATRICES[scale], m=m, n=n)]
    return {**with_noise(scale, ALPHA, seeds), "identity": shapes}


def with_noise(scale: Scale, alpha: float, seeds: Seeds) -> Labelled:
    """Trainings with a share α of noise, and what the best predictor reaches, which is the same for all seeds."""
    levels = checks("noisy.levels", [0], 1, alpha=alpha, T=SIZES[scale][0])
    return {alpha: [training(scale, alpha, seed) for seed in seeds], ("levels", alpha): levels}


def training(scale: Scale, alpha: float, seed: int) -> Train:
    T, d, batch, steps = SIZES[scale]
    model = Transformer(d=d, hidden=4 * d, layers=(MLP, MLP))
    (look, cut), sequences = EVERY[scale], LOOKED_AT[scale]
    plan = Plan(
        optimiser=SGD(lr=0.03, momentum=0.9, weight_decay=1e-4),
        steps=steps,
        batch=batch,
        trained=tuple(name for name in model.names if name.startswith("W_")),
        attention_every=cut,
        probes=(
            Noise(every=look, sequences=sequences),
            Truncation(every=cut, matrix=MATRIX, shares=SHARES, sequences=sequences),
            TruncationMap(sequences=4 * sequences),
        ),
    )
    return Train(task=NoisyRecall(T=T, alpha=alpha), model=model, plan=plan, seed=seed)


def claims(runs: Runs) -> Claimed:
    trained = runs[ALPHA]
    right, noise = ([birth_step(r, f"noise.{p}", LEVEL) for r in trained] for p in ("p_correct", "p_noise"))
    yield (
        FIRST,
        [log_ratio(f"log of the step with p(correct) > {LEVEL} over that with p(noise) > {LEVEL}", right, noise)],
    )
    yield BAYES, [noise_level(ALPHA, runs)]
    yield REVEALS, [*_revealed(trained)]
    yield WHERE, [*_elsewhere(trained)]
    yield (
        EXACT,
        [
            Measure.worst(f"{words}, relative to the norm", worst_by_seed(runs["identity"], column), 1e-10)
            for column, words in IDENTITIES.items()
        ],
    )


def noise_level(alpha: float, runs: Runs) -> Measure:
    """How far p(noise) on clean text ends from what the best predictor of noisy text gives."""
    best = runs["levels", alpha][0].rows[0]["clean.p_noise"]  # α, but where noise is itself the answer
    found = [late_mean(record, "noise.p_noise", record.train.steps) - best for record in runs[alpha]]
    name = f"α = {alpha}: p(noise) on clean text at the end, minus that of the best predictor of noisy text"
    return Measure.over_seeds(name, found, -0.05, 0.05)


def _revealed(records: Records) -> Measures:
    """Truncated minus full: W_I2 removed, and the mean over what is kept of it."""
    for shares, words in ((SHARES[:1], f"{MATRIX} removed"), (SHARES, f"{MATRIX} kept to 0, 10 and 20 %, the mean")):
        yield Measure.over_seeds(f"{words}: p(correct) minus that of the model", gains(records, MATRIX, shares), 0)
        lost = gains(records, MATRIX, shares, "p_noise")
        yield Measure.over_seeds(f"{words}: p(noise) minus that of the model", lost, high=0)


def gains(records: Records, matrix: str, shares: Sequence[float] = (0.0,), metric: str = "p_correct") -> list[float]:
    """Of each trained model: the metric on clean text with the matrix truncated minus without, mean over shares."""
    columns = [f"map.{matrix}.{percent(share)}.{metric}" for share in shares]
    full = f"map.{matrix}.100%.{metric}"
    return [mean(record.last(column) for column in columns) - record.last(full) for record in records]


def _elsewhere(records: Records) -> Measures:
    """What W_I2 gains beyond each attention matrix; the largest of six is the hardest to beat."""
    own = gains(records, MATRIX)
    others = {matrix: gains(records, matrix) for matrix in ATTENTION}
    yield Measure.difference(
        f"p(correct) gained: {MATRIX} removed minus attention matrices removed, their mean",
        own,
        [mean(values) for values in zip(*others.values(), strict=True)],
    )
    for matrix, gained in others.items():
        yield Measure.over_seeds(f"p(correct) gained with {matrix} removed", gained, high=0)


def figure(runs: Runs) -> Figure:
    from engram.show.noisy_recall import noisy_recall_figure

    trained = runs[ALPHA]
    mapped = {m: [mean(gains(trained, m, (share,))) for share in SWEPT] for m in matrices_of(trained[0].train.model)}
    return noisy_recall_figure(trained, ALPHA, MATRIX, mapped, SWEPT)
