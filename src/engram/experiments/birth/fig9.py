"""Fig. 9: one step on W_O2 already reads the output token out of a noisy average of the context.

The one-step estimate classifies the next token by averages alone: R1 is the share of tokens k for which the mean input
μ_k of the output memory at y = k, less the mean μ over all y, points most to its own direction W_V2 e_k (Appendix E).
Attention is uniform. Expectations come from 1, 2, 4, … 64 batches of 32 sequences of 256 tokens, with K=5 random
triggers and uniform outputs; more batches contain the earlier ones, and all widths see the same. A token that is never
the answer in the batches counts as wrong. The paper gives curves without numbers: after a handful of batches, read as
8, recall is asked to be above 0.9 at d=512, and above 0.5 at d=128.

    engram run birth.fig9 --seeds 5
"""

from engram.claims import Figure, Labelled, Measure, Measures, Runs, Scale, Seeds, checks
from engram.claims.readings import counted
from engram.tasks import Bigram

SOURCE = "Birth of a Transformer, Fig. 9 (Appendix E, effect of dimension)"
CLAIMS = {
    "birth.one-step-recall": "One step on W_O2 recalls the tokens after a handful of batches; more batches and "
    "higher d recall more."
}
WIDTHS = (16, 32, 64, 128, 256, 512)
BATCHES = {"smoke": 8, "quick": 64, "paper": 64}
HANDFUL = 8  # 65 536 tokens
LEAST = {512: 0.9, 128: 0.5}  # recall after a handful of batches, by width
LOW, HIGH = 32, 256


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    return {d: checks("one_step_bigram.recalls", seeds, BATCHES[scale], d=d) for d in WIDTHS}


def claims(runs: Runs) -> Measures:
    found = by_width(runs, "recall")
    most, tokens = max(found[LOW]), Bigram().N
    for d, least in LEAST.items():
        hits = counted(found[d][HANDFUL], tokens)
        yield Measure.share(f"recall at d={d} after {HANDFUL} batches", hits, tokens, low=least)
    for d in (LOW, HIGH):
        yield Measure.difference(f"recall at d={d}, {most} batches minus 1", found[d][most], found[d][1])
    for n in (1, HANDFUL, most):
        name = f"recall at {n} × 32 sequences, d={HIGH} minus d={LOW}"
        yield Measure.difference(name, found[HIGH][n], found[LOW][n])


def by_width(runs: Runs, column: str) -> dict[int, dict[int, list[float]]]:
    """Values over seeds, by width and by number of batches."""
    rows = {d: zip(*(record.rows for record in records), strict=True) for d, records in runs.items()}
    return {d: {int(same[0]["batches"]): [row[column] for row in same] for same in rows[d]} for d in rows}


def figure(runs: Runs) -> Figure:
    from engram.show.birth import one_step_figure

    return one_step_figure(by_width(runs, "recall"), by_width(runs, "unseen")[LOW])
