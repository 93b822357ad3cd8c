"""The authors' own models of hop_k, asked again: how many hops they make, what was dropout, and where their heads look.

Transformers of L = 2 and 4 layers (GPT-2 trunks, d = 128, 4 heads, 100,000 steps on fresh strings) that the authors
published are asked for k = 0 … 16 hops on 100 strings each: with dropout on, as the published errors were measured, and
off, which nobody has published. Heads are held against find^j in strings that ask for 2^(L−1) − 1 hops, the most that L
layers of pointer doubling make (engram.theory.hops): then layer i must look at find^(2^(i−2)). A head is chosen on the
other seeds. The files are read from the folder that ENGRAM_REFERENCE names; without it the committed records decide.

    engram run hops.published --seeds 10000-10007
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds, checks
from engram.experiments.hops import DEPTH
from engram.theory.hops import most_hops

TIMES = "there is no larger version of a published model"
SOURCE = f"{DEPTH}; models and errors that the authors published (chsanford/hop-induction-heads)"
CLAIMS = {
    "hops.published-depth": "Without dropout the authors' models of L = 2 and 4 layers first err on more than 0.02 of "
    "the letters at k = 2^(L−1).",
    "hops.published-errors": "With dropout on, the authors' models have the published errors within 0.03; a part of "
    "them was dropout.",
    "hops.doubling-attention": "Heads of the authors' models double their pointers: layer i looks at find^(2^(i−2)), "
    "and no layer before it does.",
}
SHA256 = {  # of the files of hops/gpt2-L2 and hops/gpt2-L4
    2: {
        "config": "e6369b5d37445eae50b47685db0b121e7d2ab0455b54e388499eabfa603e0864",
        "weights": "53249ba4cff3b0595cab2f8e07d1a80e3279a340d08e2a47541fc03f63adf207",
    },
    4: {
        "config": "7aeb9e3d0260d6062278d1156d71e2a3b185db3bf8f7e12216632be103baff86",
        "weights": "45f9e88e5a7b51434b2e75892f721258f9a3c876a6d8c4212fe3ff0ab633fb7c",
    },
}
DEPTHS = tuple(SHA256)
PUBLISHED = {  # errors by L and k, width 4, online data, dropout on
    2: {1: 0.010, 2: 0.140, 3: 0.346, 4: 0.423, 5: 0.543, 6: 0.588, 7: 0.616, 8: 0.658, 12: 0.720, 16: 0.737},
    4: {1: 0.001, 2: 0.003, 3: 0.005, 4: 0.015, 5: 0.034, 6: 0.062, 7: 0.109, 8: 0.216, 12: 0.467, 16: 0.612},
}
STRINGS = {"smoke": 3, "quick": 100, "paper": 100}  # for every k
WATCHED = {"smoke": 3, "quick": 50, "paper": 50}  # strings in which heads are held against find^j
FARTHEST = 8  # find^1 … find^8
WRONG = 0.02  # more than this is an error
WITHIN = 0.03  # of a published error
ABOVE_CHANCE = 0.25


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """At smoke scale random weights of ours take the place of the published ones."""
    whose, files = ("hops.stand_in", {L: {} for L in DEPTHS}) if scale == "smoke" else ("published.hop", SHA256)
    asked = {
        ("errors", L, dropout): checks(f"{whose}_errors", seeds, STRINGS[scale], L=L, dropout=dropout, **files[L])
        for L in DEPTHS
        for dropout in (False, True)
    }
    return asked | {
        ("alignment", L): checks(
            f"{whose}_alignment", seeds, WATCHED[scale], L=L, k=most_hops(L), most=FARTHEST, **files[L]
        )
        for L in DEPTHS
    }


def claims(runs: Runs) -> Claimed:
    yield "hops.published-depth", [one for L in DEPTHS for one in depth_measures(runs["errors", L, False], L)]
    yield "hops.published-errors", [one for L in DEPTHS for one in error_measures(runs, L)]
    yield "hops.doubling-attention", [one for L in DEPTHS for one in attention_measures(runs["alignment", L], L)]


def by_seed(records: Records) -> Float[np.ndarray, "seeds k"]:
    """Errors at k = 0, 1, …, a row for each seed."""
    return np.stack([record.column("error") for record in records])


def one_letter(records: Records) -> float:
    """What one letter more or less changes in an error."""
    return 1 / min(float(record.column("letters").min()) for record in records)


def depth_measures(records: Records, L: int) -> Measures:
    """The first k with an error above 0.02 is 2^(L−1): none before it has one, and it has."""
    first, errors, least = most_hops(L) + 1, by_seed(records), one_letter(records)
    before, there = errors[:, :first].max(axis=1).tolist(), errors[:, first].tolist()
    yield Measure.over_seeds(f"L = {L}: largest error over k < {first}", before, high=WRONG, resolution=least)
    yield Measure.over_seeds(f"L = {L}: error at k = {first}", there, low=WRONG, resolution=least)


def error_measures(runs: Runs, L: int) -> Measures:
    records, last = runs["errors", L, True], most_hops(L) + 1
    dropped, kept, least = by_seed(records), by_seed(runs["errors", L, False]), one_letter(records)
    for k, published in PUBLISHED[L].items():
        name = f"L = {L}, k = {k}: error with dropout minus the published one"
        yield Measure.over_seeds(name, (dropped[:, k] - published).tolist(), -WITHIN, WITHIN, least)
    share = 1 - kept[:, 1 : last + 1].sum(axis=1) / dropped[:, 1 : last + 1].sum(axis=1)
    name = f"L = {L}: share of the errors at k = 1 … {last} that is gone without dropout"
    yield Measure.over_seeds(name, share.tolist(), low=0)


Looks = dict[tuple[int, int], Float[np.ndarray, "seeds H"]]  # by layer and j


def looks(records: Records, column: str = "alignment") -> Looks:
    """What every head of a layer has on find^j, by seed."""
    rows = [record.rows for record in records]
    places = {(int(row["layer"]), int(row["j"])) for row in rows[0]}
    return {
        (layer, j): np.array([[r[column] for r in of if (r["layer"], r["j"]) == (layer, j)] for of in rows])
        for layer, j in sorted(places)
    }


def chosen_elsewhere(values: Float[np.ndarray, "seeds H"]) -> list[float]:
    """For each seed the value of the head that is best in the others; a single seed chooses for itself."""
    others = [np.delete(values, seed, axis=0) if len(values) > 1 else values for seed in range(len(values))]
    return [float(values[seed, other.mean(axis=0).argmax()]) for seed, other in enumerate(others)]


def attention_measures(records: Records, L: int) -> Measures:
    best = {place: chosen_elsewhere(values) for place, values in looks(records).items()}
    chance = {place: values[:, 0].tolist() for place, values in looks(records, "chance").items()}
    for layer in range(2, L + 1):
        j = 2 ** (layer - 2)
        name = f"L = {L}: layer {layer} on find^{j}, its best head minus chance"
        yield Measure.difference(name, best[layer, j], chance[layer, j], low=ABOVE_CHANCE)
    for layer in range(3, L + 1):
        j = 2 ** (layer - 2)
        name = f"L = {L}: on find^{j}, layer {layer} minus layer {layer - 1}"
        yield Measure.difference(name, best[layer, j], best[layer - 1, j])


def table(runs: Runs) -> list[dict[str, Any]]:
    """Errors by depth and k: published, and our means with dropout and without."""
    return [row for L in DEPTHS for row in _rows(runs, L)]


def _rows(runs: Runs, L: int) -> Iterator[dict[str, Any]]:
    dropped, kept = (by_seed(runs["errors", L, dropout]).mean(axis=0) for dropout in (True, False))
    for k, published in PUBLISHED[L].items():
        means = {"with dropout": round(float(dropped[k]), 4), "without": round(float(kept[k]), 4)}
        yield {"L": L, "k": k, "published": published} | means


def figure(runs: Runs) -> Figure:
    from engram.show.published_hops import hops_and_looks

    errors = {(L, dropout): by_seed(runs["errors", L, dropout]) for L in DEPTHS for dropout in (False, True)}
    maps = {L: {place: values.mean(axis=0) for place, values in looks(runs["alignment", L]).items()} for L in DEPTHS}
    whose = "Random weights" if runs.scale == "smoke" else "The authors' models"
    return hops_and_looks(errors, PUBLISHED, maps, f"{whose}, {len(runs['alignment', 2])} seeds of fresh strings")
