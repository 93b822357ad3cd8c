"""Hops written by hand: ⌊log₂k⌋ + 2 layers hop k times, log₂k + 1 compose k permutations, and no part of them tells.

Pointer doubling: planted weights of the general transformer answer hop_k for every k up to 31 on the same strings. With
one layer less only 2^j − 1 hops can be reached: the best of them is compared with hop_k at k = 2^j. Compositions: every
seed has hidden permutations of its own. No correlation: all permutations of three values are enumerated.

    engram run hops.constructions --seeds 5
"""

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Runs, Scale, Seeds, checks
from engram.claims.readings import worst_by_seed
from engram.experiments.hops import SOURCE as SOURCE

CLAIMS = {
    "hops.pointer-doubling": "⌊log₂k⌋ + 2 planted layers answer hop_k for k up to 31; at k = 2^j one layer less fails.",
    "hops.composition": "log₂k + 1 planted layers compose k permutations in context with hidden ones, exactly.",
    "hops.no-correlation": "Averaged over one of the permutations, the answer says nothing about the others.",
}
MOST = {"smoke": 4, "quick": 31, "paper": 31}
LENGTH = {"smoke": 24, "quick": 98, "paper": 98}
STRINGS = {"smoke": 10, "quick": 10, "paper": 100}
FOLDS = {"smoke": ((3, 2),), "quick": ((5, 4), (5, 8)), "paper": ((5, 4), (5, 8), (8, 16))}
SEQUENCES = {"smoke": 20, "quick": 500, "paper": 2000}
VALUES = 3  # of the enumeration
NONE = 1e-7  # less than one position
FAILS = 0.6  # hop_{k−2}, the nearest, agrees with hop_k at about half of the letters


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    folds = {
        ("composition", n, k): checks("hops.composition", seeds, SEQUENCES[scale], n=n, k=k) for n, k in FOLDS[scale]
    }
    return folds | {
        "doubling": checks("hops.doubling", seeds, STRINGS[scale], most=MOST[scale], length=LENGTH[scale]),
        "enumerated": checks("hops.no_correlation", [0], n=VALUES, k=2),
    }


def claims(runs: Runs) -> Claimed:
    folds = {f"n = {n}, k = {k}": worst_by_seed(runs["composition", n, k], "wrong") for n, k in FOLDS[runs.scale]}
    yield "hops.pointer-doubling", list(hop_measures(runs))
    yield "hops.composition", [Measure.worst(f"{fold}: share of positions wrong", w, NONE) for fold, w in folds.items()]
    yield "hops.no-correlation", correlations(runs)


def hop_measures(runs: Runs) -> Measures:
    most, records = MOST[runs.scale], runs["doubling"]
    wrong = worst_by_seed(records, "wrong")
    yield Measure.worst(f"k = 1 … {most}: largest share of positions wrong", wrong, NONE)
    for k in (2**j for j in range(1, most.bit_length())):
        shares = [record.rows[k - 1]["shallower"] for record in records]
        name = f"k = {k}, one layer less: share of letters right, best number of hops that it reaches"
        yield Measure.over_seeds(name, shares, high=FAILS)


def correlations(runs: Runs) -> list[Measure]:
    """How far the law of the answer is from uniform: with all permutations given, and with some averaged over."""
    (record,) = runs["enumerated"]
    rows = {(row["averaged"], row["first"]): row for row in record.rows}
    return [
        Measure.exact("averaged over the first: largest distance from 1/n", rows[1, 1]["off"], 1e-12),
        Measure.exact("averaged over the second: largest distance from 1/n", rows[1, 0]["off"], 1e-12),
        Measure.exact("1 − 1/n minus the largest distance from 1/n, both given", rows[0, 0]["uncertain"], 1e-12),
    ]


def figure(runs: Runs) -> Figure:
    from engram.show.hop_constructions import depth_and_hops

    return depth_and_hops(runs["doubling"], correlations(runs), VALUES)
