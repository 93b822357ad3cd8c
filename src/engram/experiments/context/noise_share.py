"""Less noise or more: its level follows α, the answer from context comes later, and there is more to reveal.

The training of context.noisy-recall with other shares α of noise. Predicted before it was run: the fewer clean
successors of the trigger there are, the weaker is the signal for attention, and the later p(correct) rises; and without
the matrix that holds the noise, p(correct) can rise from 1 − α up to 1.

    engram run context.noise-share --seeds 5
"""

from engram.claims import Figure, Labelled, Measure, Measures, Runs, Scale, Seeds
from engram.claims.readings import birth_step
from engram.experiments.birth import log_ratio
from engram.experiments.context import SOURCE as SOURCE
from engram.experiments.context.noisy_recall import MATRIX, gains, noise_level, with_noise

CLAIMS = {
    "context.alpha": "With more noise the level of the noise token follows α, the answer from context comes later, and "
    "removing the matrix gains more (α = 0.2 … 0.7).",
}
ALPHAS = (0.2, 0.5, 0.7)


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    return {label: records for alpha in ALPHAS for label, records in with_noise(scale, alpha, seeds).items()}


def claims(runs: Runs) -> Measures:
    least, _, most = ALPHAS
    yield from (noise_level(alpha, runs) for alpha in (least, most))
    slow, soon = ([birth_step(r, "noise.p_correct", (1 - a) / 2) for r in runs[a]] for a in (most, least))
    yield log_ratio(f"log of the step with p(correct) > (1 − α)/2: α = {most} over α = {least}", slow, soon)
    name = f"p(correct) gained with {MATRIX} removed: α = {most} minus α = {least}"
    yield Measure.difference(name, gains(runs[most], MATRIX), gains(runs[least], MATRIX))


def figure(runs: Runs) -> Figure:
    from engram.show.noisy_recall import noise_share_figure

    ends = {
        words: {alpha: [r.last(f"map.{MATRIX}.{kept}.p_correct") for r in runs[alpha]] for alpha in ALPHAS}
        for words, kept in (("the model", "100%"), (f"{MATRIX} removed", "0%"))
    }
    return noise_share_figure({alpha: runs[alpha] for alpha in ALPHAS}, ends)
