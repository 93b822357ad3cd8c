"""No model beats SR log D bits: what trained models store for each bit that they use.

A learner that has seen the book and keeps B bits has, on average over books, a loss of at least ln D for every fact
beyond the B / log2 D that its bits can hold. Models are trained near their capacity, every matrix is rounded to the
fewest levels that keep 99 % of the facts (a model for which there are none is an error), and the bits then known of the
book (Fano) are set beside those used. That the ratio is below 1 is a theorem; how far below is what is measured.

    engram run facts.lower-bound --seeds 3
"""

from engram.claims import Figure, Labelled, Measure, Measures, Runs, Scale, Seeds, checks

SOURCE = "Understanding factual recall in transformers, section on lower bounds"
CLAIMS = {"facts.bits-per-bit": "A trained transformer stores 0.02 to 0.06 bits of facts for each bit of its weights."}
SEEDS = {"quick": 5, "paper": 3}
BAND = 0.02, 0.06  # the bound itself is 1, and no measurement can pass it (tests/test_claims_that_cannot_fail.py)
LAW = "learning.fact_search.bits"


def _shape(S: int, d: int, steps: int) -> dict[str, int]:
    return {"S": S, "R": S, "D": 8, "T": 32, "d": d, "heads": 8, "d_h": d // 8, "m": d, "steps": steps}


SHAPES = {
    "smoke": [{"S": 3, "R": 3, "D": 2, "T": 6, "d": 8, "heads": 2, "d_h": 4, "m": 8, "steps": 256}],
    "quick": [_shape(S, d, 8192) for S, d in ((10, 16), (15, 24), (20, 32))],
    "paper": [_shape(S, d, 16384) for S, d in ((14, 16), (21, 24), (28, 32), (42, 48))],
}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    return {f"d={sizes['d']}, {sizes['S'] * sizes['R']} facts": checks(LAW, seeds, **sizes) for sizes in SHAPES[scale]}


def claims(runs: Runs) -> Measures:
    for shape, same in runs.items():
        yield Measure.over_seeds(f"{shape}: bits stored for each bit used", [r.rows[0]["ratio"] for r in same], *BAND)


def figure(runs: Runs) -> Figure:
    from engram.show.facts import stored_and_used

    return stored_and_used({shape: [record.rows[0] for record in same] for shape, same in runs.items()})
