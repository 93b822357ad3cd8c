"""Few memories that overlap: margins oscillate with large steps and small widths, beyond the edge of stability.

N = M = 5 tokens on the sphere, p(z) ∝ 1/z, full-batch descent from W = 0 for 100 steps. Oscillation is measured by the
share of all movement of margins that leads downwards: 0 where they only grow, 1/2 where they go to and fro. Before each
step η λ/2 is recorded, λ the top eigenvalue of the Hessian. A seed is 20 memories.

    engram run scaling.oscillation --seeds 5
"""

import numpy as np

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds, checks

TIMES = "quick 1 s a seed, paper 2 min a seed (estimated) on 2 cores"

SOURCE = "Cabannes, Simsek and Bietti 2024, section on more memories, and its published code (exp_large_memory)"
CLAIMS = {
    "scaling.oscillation": "Margins of 5 tokens oscillate more at larger steps (3 to 20) and smaller widths (10 to 3).",
    "scaling.edge-of-stability": "The loss rises at steps that begin with η λ/2 > 1, and hardly ever at others.",
}
WIDTHS, RATES = (3, 5, 10), (3.0, 10.0, 20.0)
DRAWS = {"smoke": 2, "quick": 20, "paper": 100}
STEPS = {"smoke": 10, "quick": 100, "paper": 100}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """By width and rate."""
    law, draws, steps = "dynamics.oscillation", DRAWS[scale], STEPS[scale]
    return {(d, rate): checks(law, seeds, draws, d=d, rate=rate, steps=steps) for d in WIDTHS for rate in RATES}


def claims(runs: Runs) -> Claimed:
    yield "scaling.oscillation", [*_oscillation(runs)]
    yield "scaling.edge-of-stability", [*_edge(runs)]


def downwards(records: Records) -> list[float]:
    """For each seed the share of the movement of margins that leads downwards."""
    return [float(r.column("fallen").sum() / r.column("moved").sum()) for r in records]


def _oscillation(runs: Runs) -> Measures:
    shares, (slow, *_, fast), (narrow, *_, wide) = {k: downwards(rs) for k, rs in runs.items()}, RATES, WIDTHS
    for d in WIDTHS:
        name = f"d={d}: share of movement downwards, η={fast:g} minus η={slow:g}"
        yield Measure.difference(name, shares[d, fast], shares[d, slow])
    for rate in RATES:
        name = f"η={rate:g}: share of movement downwards, d={narrow} minus d={wide}"
        yield Measure.difference(name, shares[narrow, rate], shares[wide, rate])


def _edge(runs: Runs) -> Measures:
    """Over all widths and rates together."""
    rises, below, both = (_totals(runs, name) for name in ("rises", "below", "rises.below"))
    above = [1 - b / r if r else np.nan for b, r in zip(both, rises, strict=True)]
    yield Measure.over_seeds("of steps at which the loss rises, share that begin with η λ/2 > 1", above, low=0.9)
    rare = [b / n if n else np.nan for b, n in zip(both, below, strict=True)]
    yield Measure.over_seeds("of steps that begin with η λ/2 < 1, share at which the loss rises", rare, high=0.05)
    steps = len(WIDTHS) * len(RATES) * STEPS[runs.scale] * DRAWS[runs.scale]
    share = [r / steps for r in rises]
    yield Measure.over_seeds("share of all steps at which the loss rises", share, low=0.01)


def _totals(runs: Runs, column: str) -> list[float]:
    """For each seed the sum of a column over all its records."""
    return np.sum([[float(r.column(column).sum()) for r in records] for records in runs.values()], axis=0).tolist()


def figure(runs: Runs) -> Figure:
    from engram.show.memory_dynamics import oscillation

    shares = {label: downwards(records) for label, records in runs.items()}
    return oscillation({label: records[0] for label, records in runs.items()}, shares)
