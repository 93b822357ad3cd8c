"""How errors fall with the width d when W = Σ q(z) u_{f(z)} e_zᵀ stores heavy-tailed tokens by q = p, or the likeliest.

The published setting: N = 1000, M = 5, y = z mod 5, α = 2, no sampling; 20 widths from 10 to 1000, embeddings drawn
once at 1000 and cut to their first d coordinates; Gaussian keys, answers on the sphere. Every trial has a slope of its
own; the published 100 trials are 5 seeds of 20 at quick scale, and those of one seed at paper scale.

    engram run scaling.schemes --seeds 5
"""

import numpy as np

from engram.claims import Claimed, Figure, Labelled, Measure, Records, Runs, Scale, Seeds, checks
from engram.claims.fits import Curve, slope
from engram.theory.zipf import width_exponent

TIMES = "quick 1 s a seed, paper 15 s a seed (estimated) on 2 cores"

SOURCE = "Cabannes, Dohmatob and Bietti 2024, figure of error against d and its published code"
CLAIMS = {
    "scaling.counts": "Stored by counts, q = p, the error falls like d^{−1/4} at α = 2 (d from 30 to 1000, N = 1000).",
    "scaling.threshold": "With the d/8 likeliest tokens stored it falls like 1/d (d from 30 to 1000, N = 1000).",
    "scaling.levels": "The errors are 0.35 d^{−1/4} and 3.5/d, as published (d from 30 to 1000, N = 1000).",
}
ALPHA, FROM = 2.0, 30
COUNTS, THRESHOLD = "p", "1 | d/8"  # columns of the record
LAWS = {COUNTS: width_exponent(ALPHA, 1, truncated=False), THRESHOLD: width_exponent(ALPHA, 0, truncated=True)}
LEVELS = {COUNTS: 0.35, THRESHOLD: 3.5}  # published guides, at these exponents
NAMES = {COUNTS: "q = p", THRESHOLD: "threshold"}
DRAWS = {"smoke": 2, "quick": 20, "paper": 100}
SIZES = {"smoke": {"N": 50, "most": 60, "widths": 4}, "quick": {}, "paper": {}}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    return {"trials": checks("zipf.trials", seeds, DRAWS[scale], alpha=ALPHA, **SIZES[scale])}


def claims(runs: Runs) -> Claimed:
    records = runs["trials"]
    yield "scaling.counts", [fallen(records, COUNTS)]
    yield "scaling.threshold", [fallen(records, THRESHOLD)]
    yield "scaling.levels", [level(records, scheme) for scheme in LEVELS]


def fallen(records: Records, scheme: str) -> Measure:
    """The mean slope of a seed's trials, over seeds."""
    found, longer = ([mean_slope(record.rows, scheme, least) for record in records] for least in (FROM, 0))
    name = f"{NAMES[scheme]}: exponent in d, mean over trials, d from 30"
    law = LAWS[scheme]
    return Measure.slope(name, found, law - 0.05, law + 0.05).noted(f"over all widths {np.mean(longer):.3f}")


def mean_slope(rows: list[dict[str, float]], scheme: str, least: int) -> float:
    trials: dict[float, Curve] = {}
    for row in rows:
        if row["d"] >= least:
            trials[row["trial"]] = [*trials.get(row["trial"], []), (row["d"], row[scheme])]
    return float(np.mean([slope(curve) for curve in trials.values()]))


def level(records: Records, scheme: str) -> Measure:
    """The geometric mean over widths of the mean error over d^law, within 10 % of the published guide."""
    found = [mean_level(by_width(record.rows, scheme), LAWS[scheme]) for record in records]
    published = LEVELS[scheme]
    name = f"{NAMES[scheme]}: error over d^{LAWS[scheme]:g}, d from 30"
    return Measure.over_seeds(name, found, 0.9 * published, 1.1 * published)


def mean_level(errors: dict[float, float], law: float) -> float:
    return float(np.exp(np.mean([np.log(error / d**law) for d, error in errors.items() if d >= FROM])))


def by_width(rows: list[dict[str, float]], scheme: str) -> dict[float, float]:
    """The mean over trials at each width."""
    found: dict[float, list[float]] = {}
    for row in rows:
        found.setdefault(row["d"], []).append(row[scheme])
    return {d: float(np.mean(errors)) for d, errors in found.items()}


def figure(runs: Runs) -> Figure:
    from engram.show.storage_schemes import errors_by_width

    series = {f"{name}, one dot per seed": measured(runs["trials"], scheme) for scheme, name in NAMES.items()}
    series["q = 1, one dot per seed"] = measured(runs["trials"], "1")
    guides = {
        "0.35 d^(−1/4), published": lambda d: 0.35 * d ** LAWS[COUNTS],
        "3.5/d, published": lambda d: 3.5 * d ** LAWS[THRESHOLD],
    }
    return errors_by_width(series, guides, "Storing by probability, or the likeliest tokens (α = 2)")


def measured(records: Records, scheme: str) -> dict[float, list[float]]:
    """The means of all seeds at each width."""
    means = [by_width(record.rows, scheme) for record in records]
    return {d: [of_seed[d] for of_seed in means] for d in means[0]}
