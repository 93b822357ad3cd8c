"""What exponential memories cost beside a matrix, and how often a memory of fixed size must see a fact.

Three costs: the multiplications of an answer at equal width; errors from noisy keys, each memory filled with as many
pairs as it holds at 99 %; errors after 10,240 samples learned online by SGD, each kind at its best rate. Then a matrix
of width 100 learns 1000 facts of frequency ∝ 1/z online, and is asked for them by how often they came.

    engram run scaling.costs --seeds 5
"""

from itertools import pairwise
from math import log2, nan

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds, checks
from engram.laws.zipf_online import MOST

SOURCE = "talks, 'exponential memories'; the sentence on frequencies is our own"
CLAIMS = {
    "scaling.exponential-costs": "Exponential memories compute more, suffer more from noise, are harder to learn.",
    "scaling.facts-frequency": "What a matrix knows depends on how often it came: most seen 64 times, few seen once.",
}
WHY = {
    "scaling.exponential-costs": (
        "It does cost 14 times the multiplications; the other two ratios go the other way in the set-ups chosen "
        "here. Noise: at d = 32 an exponential memory is far from full with 2,048 pairs, the most that were "
        "tried, while a matrix is filled to its limit; filled to the same share of what they hold, exponential "
        "memories err 8 to 14 times as often (scaling.noise-when-full). Learning: the exponential model of the "
        "published grid trains both embeddings, the matrix model neither, and at its best rate errs a third as "
        "often. Control: the same trainings reproduce the published grid (scaling.grid)."
    ),
}
M, HALF_WAY = 5, 0.6  # answers; halfway between chance, 1/M, and certainty
DRAWS = {"smoke": 1, "quick": 4, "paper": 16}
SIZES = {
    "noise": {"smoke": {"d": 8, "most": 32}, "quick": {}, "paper": {}},
    "kinds": {"smoke": {"N": 20, "d": 10, "n": 256}, "quick": {}, "paper": {}},
    "known": {"smoke": {"N": 200, "d": 10, "n": 1024}, "quick": {}, "paper": {}},
}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    draws, sizes = DRAWS[scale], {name: at[scale] for name, at in SIZES.items()}
    return {
        "arithmetic": checks("costs.arithmetic", [0]),
        "noise": checks("costs.noise", seeds, 5 * draws, **sizes["noise"]),
        "kinds": checks("online.kinds", seeds, draws, **sizes["kinds"]),
        "known": checks("online.known", seeds, draws, **sizes["known"]),
    }


def claims(runs: Runs) -> Claimed:
    yield "scaling.exponential-costs", [*costs(runs)]
    yield "scaling.facts-frequency", [*by_times_seen(runs["known"])]


def costs(runs: Runs) -> Measures:
    ratio = runs["arithmetic"][0].rows[0]["ratio"]
    yield Measure.known("multiplications, exponential over linear (d = 64, N = 1000)", ratio, low=1)
    sensitive = [noisy_errors(r.rows, 1) / noisy_errors(r.rows, 0) for r in runs["noise"]]
    yield Measure.over_seeds("errors from noisy keys, exponential over linear", sensitive, low=1)
    slow = [best(r.rows, "exponential") / best(r.rows, "matrix") for r in runs["kinds"]]
    yield Measure.over_seeds("errors after learning, exponential over matrix", slow, low=1)


def noisy_errors(rows: list[dict[str, float]], kind: int) -> float:
    """Of a memory filled to 99 %; at least one of all that were asked, so that there is a ratio."""
    return next(max(row["error"], 1 / row["asked"]) for row in rows if row["kind"] == kind)


def best(rows: list[dict[str, float]], kind: str) -> float:
    """The error at the best rate, at least one in a million."""
    return max(1e-6, min(row[kind] for row in rows))


def by_times_seen(records: Records) -> Measures:
    known = [shares(record.rows) for record in records]
    never, once, most = ([of_seed.get(times, nan) for of_seed in known] for times in (0, 1, MOST))
    yield Measure.over_seeds("never seen: share known", never, 1 / M - 0.1, 1 / M + 0.1)
    yield Measure.over_seeds("seen 64 times or more: share known", most, low=0.9)
    yield Measure.difference("share known, 64 times or more minus once", most, once, low=0.3)
    halves = [log2(half_known(of_seed)) for of_seed in known]
    name = "log2 of the times seen at which 60 % are known"
    yield Measure.over_seeds(name, halves, 1, 6, resolution=0.5)  # times are doubled from bin to bin


def shares(rows: list[dict[str, float]]) -> dict[float, float]:
    """The share known by the least number of times seen."""
    return {row["times"]: row["known"] for row in rows}


def half_known(known: dict[float, float]) -> float:
    """Where the share known first passes 60 %, between two bins in logarithms; 2^7 if it never does."""
    points = [(log2(times), share) for times, share in sorted(known.items()) if times >= 1]
    for (x, low), (y, high) in pairwise(points):
        if low < HALF_WAY <= high:
            return 2 ** (x + (y - x) * (HALF_WAY - low) / (high - low))
    return 1.0 if points[0][1] >= HALF_WAY else 2.0**7


def figure(runs: Runs) -> Figure:
    from engram.show.storage_schemes import costs_figure

    ratios = {measure.name: list(measure.values) for measure in costs(runs)}
    known: dict[float, list[float]] = {}
    for record in runs["known"]:
        for times, share in shares(record.rows).items():
            known.setdefault(times, []).append(share)
    return costs_figure(ratios, dict(sorted(known.items())), 1 / M, HALF_WAY)
