"""Which weights q(z) an optimiser stores: one large batch stores p, single samples with large steps store 1.

Weights are read off the learned matrix by least squares on u_k e_zᵀ. Then the scalar approximation, in which every q
grows by itself, q += γ share/(1 + e^q/(M−1)): it is good where tokens hardly overlap (d ≫ N) and bad where they do.

    engram run scaling.stored --seeds 5
"""

from collections.abc import Iterator

import numpy as np

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Records, Rows, Runs, Scale, Seeds, checks
from engram.claims.fits import slope
from engram.experiments.memory import exponent
from engram.records import Record
from engram.tasks.zipf import Zipf

TIMES = "quick 2 s a seed, paper 2 min a seed (estimated) on 2 cores"

SOURCE = "Cabannes, Dohmatob and Bietti 2024, section on optimisation, and its published code"
CLAIMS = {
    "scaling.one-step-stores-p": "One step from 0 on 10⁵ samples stores q ∝ p (N=100, M=5, d=200, α=2).",
    "scaling.batch-one-stores-one": "Single samples and γ=10 store q ≈ 1 where d ≫ N, and not where d ≤ N (N=20).",
    "scaling.q-dynamics": "At d=10, N=100 real errors fall to .045; approximate ones to .11, and then rise to .15.",
    "scaling.q-dynamics-width": "At d=1000 ≫ N=100, unlike d=10, the scalar approximation errs as real descent does.",
    "scaling.stored-exponents": "Over 100 visits larger steps store flatter weights, from visits^1 to visits^0.2.",
}
WHY = {
    "scaling.batch-one-stores-one": (
        "Where d ≤ N the weights are uneven, as claimed (spread 0.63 of the mean), but this costs little: 20 tokens "
        "with 5 answers are recalled at d = 10 with an error of 0.02, and the band, which is ours, asked for 0.05. "
        "Control: at d = 1000 the weights are even, and all tokens are recalled."
    ),
    "scaling.q-dynamics": (
        "The published numbers come out after 1,000 steps, not after the 100 that the notebook states (100 epochs "
        "of one batch each; no cell says 1,000): on fresh seeds real descent comes to 0.044, and the "
        "approximation falls to 0.103 and rises to 0.137 (scaling.q-dynamics-1000, whose last interval is wider "
        "than its band). Control: after 100 steps a separate script gives our numbers (0.08 and 0.12)."
    ),
}
FIRST, COMMON = 20, 5  # tokens in the fit of an exponent; those compared one by one
ONE_STEP = {
    "smoke": {"N": 30, "d": 40, "batch": 10_000},
    "quick": {"N": 100, "d": 200, "batch": 100_000},
    "paper": {"N": 100, "d": 200, "batch": 1_000_000},
}
SINGLE = {"N": 20, "alpha": 1.5, "batch": 1, "rate": 10.0}
WIDTHS = {"smoke": (60, 10), "quick": (1000, 10), "paper": (1000, 10)}
SAMPLES = {"smoke": 100, "quick": 2000, "paper": 2000}
DRAWS = {"smoke": (2, 2, 2, 2), "quick": (4, 10, 100, 20), "paper": (4, 50, 100, 100)}  # as in the labels below
EPOCHS = {"smoke": 5, "quick": 100, "paper": 100}
RATES = (1e-3, 1e-1, 1.0)


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    once, single, narrow, wide = DRAWS[scale]
    visits, epochs = 100, EPOCHS[scale]
    return {
        "one step": checks("dynamics.stored", seeds, once, **ONE_STEP[scale], rate=1.0, steps=1),
        **{d: checks("dynamics.stored", seeds, single, **SINGLE, d=d, steps=SAMPLES[scale]) for d in WIDTHS[scale]},
        "narrow": checks("dynamics.recursion", seeds, narrow, d=10, steps=epochs),
        "wide": checks("dynamics.recursion", seeds, wide, d=1000, steps=epochs),
        **{("visits", rate): checks("dynamics.visits", [0], visits, rate=rate) for rate in RATES},
    }


def claims(runs: Runs) -> Claimed:
    yield "scaling.one-step-stores-p", [*_one_step(runs["one step"])]
    yield "scaling.batch-one-stores-one", [*_single(runs)]
    yield "scaling.q-dynamics", [*_narrow(runs["narrow"])]
    yield "scaling.q-dynamics-width", [*_apart(runs)]
    yield "scaling.stored-exponents", [*_visits(runs)]


def _one_step(records: Records) -> Measures:
    curves = [mean_weights(record.rows) for record in records]
    exponents = [slope(curve[:FIRST]) if all(q > 0 for _, q in curve[:FIRST]) else np.nan for curve in curves]
    yield Measure.slope(f"exponent of q in p, {FIRST} most common tokens", exponents, 0.95, 1.05)
    off = [max(abs(q / p - 1) for p, q in curve[:COMMON]) for curve in curves]
    yield Measure.over_seeds(f"largest |q/(γp) − 1| of the {COMMON} most common tokens", off, high=0.1)


def mean_weights(rows: Rows) -> list[tuple[float, float]]:
    """(p, q) of every token from common to rare, q the mean over memories."""
    found: dict[float, list[float]] = {}
    for row in rows:
        found.setdefault(row["p"], []).append(row["q"])
    return [(p, float(np.mean(q))) for p, q in sorted(found.items(), reverse=True)]


def memories(record: Record) -> Iterator[Rows]:
    """The rows of each memory of a seed."""
    for draw in range(record.check.draws):
        yield [row for row in record.rows if row["draw"] == draw]


def _single(runs: Runs) -> Measures:
    wide, narrow = WIDTHS[runs.scale]
    exponents = [np.mean([_flatness(rows) for rows in memories(r)]) for r in runs[wide]]
    yield Measure.slope(f"d={wide}: exponent of q in p", [float(x) for x in exponents], -0.1, 0.1)
    yield Measure.over_seeds(f"d={wide}: spread of q over its mean", _spreads(runs[wide]), high=0.25)
    yield Measure.over_seeds(f"d={wide}: 0/1 error", _errors(runs[wide]), high=0.01, resolution=_least(runs[wide]))
    yield Measure.over_seeds(f"d={narrow}: spread of q over its mean", _spreads(runs[narrow]), low=0.5)
    yield Measure.over_seeds(f"d={narrow}: 0/1 error", _errors(runs[narrow]), low=0.05, resolution=_least(runs[narrow]))


def _flatness(rows: Rows) -> float:
    """The exponent of q in p over the tokens that were seen; none where one of them has no positive weight."""
    points = [(row["p"], row["q"]) for row in rows if row["seen"] > 0]
    return slope(points) if all(q > 0 for _, q in points) else float("nan")


def _spreads(records: Records) -> list[float]:
    """The deviation of q over tokens that were seen, over its mean; the mean over memories."""
    weights = [[[row["q"] for row in rows if row["seen"] > 0] for rows in memories(record)] for record in records]
    return [float(np.mean([np.std(q) / abs(np.mean(q)) for q in of_seed])) for of_seed in weights]


def _errors(records: Records) -> list[float]:
    return [sum(row["p"] * row["wrong"] for row in record.rows) / record.check.draws for record in records]


def _least(records: Records) -> float:
    """The smallest difference between two errors of a seed."""
    return float(Zipf(N=20, M=5, alpha=1.5).probabilities[-1]) / records[0].check.draws


def _narrow(records: Records) -> Measures:
    real, scalar = ([record.last(f"error.{name}") for record in records] for name in ("real", "scalar"))
    lowest = [float(record.column("error.scalar").min()) for record in records]
    yield Measure.over_seeds("real error after 100 steps", real, 0.03, 0.06)
    yield Measure.over_seeds("approximation: lowest error", lowest, 0.09, 0.13)
    yield Measure.over_seeds("approximation: error after 100 steps", scalar, 0.12, 0.18)


def _apart(runs: Runs) -> Measures:
    """Approximation minus real descent at the end."""
    bands = {"wide": (1000, -0.02, 0.02), "narrow": (10, 0.03, np.inf)}
    for label, (d, low, high) in bands.items():
        scalar, real = ([record.last(f"error.{name}") for record in runs[label]] for name in ("scalar", "real"))
        yield Measure.difference(f"d={d}: error of the approximation minus real", scalar, real, low, high)


def _visits(runs: Runs) -> Measures:
    bands = {1e-3: (0.95, 1.05), 1e-1: (0.4, 0.8), 1.0: (0.1, 0.35)}
    for rate, band in bands.items():
        found = exponent(runs["visits", rate][0].rows, "q", "visits")
        yield Measure.known(f"γ={rate:g}: exponent of q in visits", found, *band)


def figure(runs: Runs) -> Figure:
    from engram.show.memory_dynamics import stored

    weights = {"one batch, one step (γ=1)": [mean_weights(record.rows) for record in runs["one step"]]}
    for d in WIDTHS[runs.scale]:
        weights[f"single samples, γ=10, d={d}"] = [mean_weights(record.rows) for record in runs[d]]
    visits = {rate: runs["visits", rate][0].rows for rate in RATES}
    return stored(weights, visits, {10: runs["narrow"], 1000: runs["wide"]})
