"""Finite width and samples: how wide a head must be to learn a planted token in three steps.

One of T tokens is marked, and a permutation of it is asked for; steps on W_OV, W_KQ and W_OV again, from the same n
samples (engram.learning.planted_steps). The critical width is found by bisection, for accuracy 0.9 on fresh sequences:
for T = N/8 with n = N (ln N + 5.1) as in the talk, and for T = 4. Beside it the width at which the mark is attended to.

In this model attention is the easier part. Storing N pairs needs d ≈ c √N whatever T is. What hinders attention is
that labels come unequally often: the mean of all inputs then looks like a signal, and noise is T²√N/(n d^{3/2}) for a
signal of 1, so that d must exceed (T²/N) (N²/(Tn))^{2/3}. (The talk's exponent cannot be read.) For T = N/8 that
overtakes √N only near N = 10^5, so the talk's slope 1.11, whose protocol is not published in detail, is not found here.

    engram run theory.finite --seeds 5
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from engram.experiments import Scale
from engram.models.one_head import OneHead
from engram.records import Claim, Measure, Record, Search
from engram.records.readings import capacity
from engram.tasks.planted import PlantedToken

TIMES = "quick 20 s a seed, paper 5 min a seed on 2 cores"
SOURCE = "talks, 'Finite width and finite samples' (Vural et al.)"
CLAIMS = {
    "theory.finite-slope": "The critical width grows like N for T = N/8, and like √N for a fixed T.",
    "theory.samples": "More samples lower the critical width when T is large.",
}
SIZES = {"smoke": (48, 64), "quick": (64, 128, 256, 512, 1024), "paper": (64, 128, 256, 512, 1024, 2048, 4096)}
LONG, SHORT, MORE = "T = N/8", "T = 4", "T = N/8, 8 times the samples"
KINDS = (LONG, SHORT, MORE)
BANDS = {LONG: (1.0, 1.2), SHORT: (0.45, 0.65)}


def specs(scale: Scale, seeds: Sequence[int]) -> list[Search]:
    return [
        Search(
            task=_task(kind, N),
            model=OneHead(asked=asked),
            target=0.9,
            bracket=(4, 512),
            tolerance=0.03,
            votes=3,
            seed=s,
        )
        for kind in KINDS
        for asked in ("label", "mark")
        for N in SIZES[scale]
        for s in seeds
    ]


def _task(kind: str, N: int) -> PlantedToken:
    task = PlantedToken(N=N, T=4 if kind == SHORT else N // 8)
    return PlantedToken(N=N, T=task.T, n=8 * task.samples) if kind == MORE else task


def kind_of(record: Record) -> str:
    task = record.search.task
    return next(kind for kind in KINDS if _task(kind, task.N) == task)  # type: ignore[union-attr, arg-type]


Widths = Mapping[tuple[str, str], Mapping[int, Sequence[float]]]


def widths(records: Sequence[Record]) -> Widths:
    """Critical widths over seeds, by kind, by what is asked, by N."""
    found: dict[tuple[str, str], dict[int, list[float]]] = {}
    for record in records:
        key = kind_of(record), record.store.asked
        found.setdefault(key, {}).setdefault(record.search.task.N, []).append(capacity(record))  # type: ignore[union-attr]
    return found


def slopes(by_size: Mapping[int, Sequence[float]]) -> list[float]:
    """For each seed the slope of log width in log N."""
    logs = np.log(list(by_size.values()))
    return [float(np.polyfit(np.log(list(by_size)), seed, 1)[0]) for seed in logs.T]


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    found = widths(records)
    yield _claim(
        "theory.finite-slope",
        *(Measure.over_seeds(f"{kind}: slope", slopes(found[kind, "label"]), *band) for kind, band in BANDS.items()),
    )
    largest = max(found[LONG, "mark"])
    gain = np.log(found[LONG, "mark"][largest]) - np.log(found[MORE, "mark"][largest])
    label = f"N={largest}, {LONG}: log of the width that finds the mark, over that with 8 times the samples"
    yield _claim("theory.samples", Measure.over_seeds(label, gain.tolist(), low=0))


def _claim(id: str, *measures: Measure) -> Claim:
    return Claim(id, CLAIMS[id], SOURCE, measures)


def figure(records: Sequence[Record]) -> Any:
    from engram.show.steps import critical_widths

    found = widths(records)
    return critical_widths(found, {key: float(np.mean(slopes(sizes))) for key, sizes in found.items()})
