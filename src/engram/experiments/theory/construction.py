"""The induction head written by hand (Eq. 7) solves the bigram task, if the width suffices.

W_K1, W_K2 and W_O2 are the sums of outer products of Eq. 7 with random embeddings; every token is a possible trigger,
and both key matrices are multiplied by β. All entries are N(0, 1/d) and scores are not divided by √d. At d = 128, where
training comes close to 1, the construction does not: 65 stored triggers and 128 positions interfere too much.

    engram run theory.construction --seeds 5
"""

from itertools import pairwise, product

from engram.claims import Figure, Labelled, Measure, Measures, Runs, Scale, Seeds, checks
from engram.claims.readings import means

SOURCE = "Birth of a Transformer, Eq. 7 and 8"
CLAIMS = {
    "theory.construction": "The weights of Eq. 7 solve the task at d = 512, and up to there the wider the better.",
}
WIDTHS = {"smoke": (32, 64), "quick": (64, 128, 256, 512, 1024), "paper": (64, 128, 256, 512, 1024, 2048)}
SHARPNESS = (10, 30, 100)
DRAWS = {"smoke": 1, "quick": 2, "paper": 8}
ENOUGH, FEW, WIDE = 0.97, 0.9, 512


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    law, draws, sizes = "learning.construction.accuracies", DRAWS[scale], product(WIDTHS[scale], SHARPNESS)
    return {(d, sharp): checks(law, seeds, draws, d=d, sharpness=sharp) for d, sharp in sizes}


def claims(runs: Runs) -> Measures:
    found, sharp, widths = accuracies(runs), max(SHARPNESS), WIDTHS[runs.scale]
    wide = min(WIDE, max(widths))
    yield Measure.over_seeds(f"d={wide}, β={sharp}: in-context accuracy", found[wide, sharp], low=ENOUGH)
    for d, wider in pairwise(widths):
        if wider <= wide:  # beyond, nothing is left to gain
            name = f"β={sharp}: accuracy at d={wider} minus d={d}"
            yield Measure.difference(name, found[wider, sharp], found[d, sharp])
    if (128, sharp) in found:
        yield Measure.over_seeds(f"d=128, β={sharp}: in-context accuracy", found[128, sharp], high=FEW)


def accuracies(runs: Runs) -> dict[tuple[int, int], list[float]]:
    """Accuracy of each seed, by width and sharpness."""
    return {size: means(same, "accuracy") for size, same in runs.items()}


def figure(runs: Runs) -> Figure:
    from engram.show.gradient_steps import accuracy_by_width

    return accuracy_by_width(accuracies(runs))
