"""Finite width and samples: how wide a head must be to learn a planted token in three steps.

One of T tokens is marked, and a permutation of it is asked for; steps on W_OV, W_KQ and W_OV again, from the same n
samples (engram.learning.planted_steps). The critical width is found by bisection, for accuracy 0.9 on fresh sequences:
for T = N/8 with n = N (ln N + 5.1) as in the talk, and for T = 4. Beside it the width at which the mark is attended to,
and a map of both over length and width.

In this model (the mark is in the keys only) attention is the easier part until T is near N: storing N pairs needs
d ≈ c √N whatever T is, and attention about T^{4/3} N^{1/3} n^{−2/3} (theory.mean-bias). For T = N/8 that overtakes √N
only near N = 10^5, so the talk's slope 1.11, whose protocol is not published in detail, is not found here. Controls,
ours: for T = N attention decides, and the width grows faster than √N; there samples help more than for T = 4.

    engram run theory.finite --seeds 5
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from engram.claims import Claim, Measure
from engram.claims.experiment import Scale
from engram.claims.readings import capacity
from engram.models.one_head import OneHead
from engram.records import Record
from engram.specs import Check, Search
from engram.tasks.planted import PlantedToken
from engram.theory.mean_bias import critical_width

TIMES = "quick 1 min a seed, paper 15 min a seed on 2 cores"
SOURCE = "talks, 'Finite width and finite samples' (Vural et al.)"
CLAIMS = {
    "theory.finite-slope": "The critical width grows like N for T = N/8, and like √N for a fixed T.",
    "theory.samples": "More samples lower the critical width when T is large.",
    "theory.long-slope": "For T = N, where attention is the harder part, the critical width grows faster than √N.",
}
WHY = {
    "theory.finite-slope": (
        "In this model, where the mark is in the keys and not in the values, storing N pairs is the harder part: it "
        "needs d ≈ 8√N, for T = N/8 as for T = 4. What attention needs overtakes this only near N = 10^5. The talk's "
        "figure has slope 1.11 for T = N/8; its protocol is not published and may differ. Controls: for T = N, where "
        "attention decides, the same search finds a steeper slope (theory.long-slope), and the widths at which the "
        "mark is found follow their own law (theory.mean-bias-width)."
    ),
}
SIZES = {"smoke": (64, 128), "quick": (64, 128, 256, 512, 1024), "paper": (64, 128, 256, 512, 1024, 2048, 4096)}
LONG, SHORT, WHOLE = "T = N/8", "T = 4", "T = N"
MORE = ", 8 times the samples"
LENGTHS = {LONG: lambda N: N // 8, SHORT: lambda N: 4, WHOLE: lambda N: N}
KINDS = (LONG, SHORT, WHOLE, LONG + MORE, SHORT + MORE, WHOLE + MORE)
LARGEST = 256  # tokens where T = N: these take long
BANDS = {LONG: (1.0, 1.2), SHORT: (0.45, 0.65)}
VOTES = {"label": 3, "mark": 9}  # whether the mark is found differs more between codebooks
MAPS = {
    "smoke": {"N": 16, "least": 4, "most": 8, "widest": 16},
    "quick": {"N": 256, "least": 4, "most": 512, "widest": 512},
    "paper": {"N": 1024, "least": 4, "most": 2048, "widest": 2048},
}
DRAWS = {"smoke": 1, "quick": 3, "paper": 9}


def specs(scale: Scale, seeds: Sequence[int]) -> list[Search | Check]:
    sought = [
        search_width(_task(kind, N), asked, seed, votes)
        for kind in KINDS
        for asked, votes in VOTES.items()
        for N in SIZES[scale]
        for seed in seeds
        if kind.removesuffix(MORE) != WHOLE or (N <= LARGEST and asked == "label")
    ]
    law = "learning.planted_steps.phases"
    return [*sought, *(Check(law=law, sizes=MAPS[scale], draws=DRAWS[scale], seed=seed) for seed in seeds)]


def search_width(task: PlantedToken, asked: Any, seed: int, votes: int) -> Search:
    model = OneHead(asked=asked)
    return Search(task=task, model=model, target=0.9, bracket=(4, 512), tolerance=0.03, votes=votes, seed=seed)


def _task(kind: str, N: int) -> PlantedToken:
    task = PlantedToken(N=N, T=LENGTHS[kind.removesuffix(MORE)](N))
    return PlantedToken(N=N, T=task.T, n=8 * task.samples) if kind.endswith(MORE) else task


def kind_of(record: Record) -> str:
    task = record.search.task
    return next(kind for kind in KINDS if _task(kind, task.N) == task)  # type: ignore[union-attr, arg-type]


Widths = Mapping[tuple[str, str], Mapping[int, Sequence[float]]]


def widths(records: Sequence[Record]) -> Widths:
    """Critical widths over seeds, by kind, by what is asked, by N."""
    found: dict[tuple[str, str], dict[int, list[float]]] = {}
    for record in (r for r in records if isinstance(r.spec, Search)):
        key = kind_of(record), record.store.asked
        found.setdefault(key, {}).setdefault(record.search.task.N, []).append(capacity(record))  # type: ignore[union-attr]
    return found


def slopes(by_size: Mapping[int, Sequence[float]]) -> list[float]:
    """For each seed the slope of log width in log size."""
    logs = np.log(list(by_size.values()))
    return [float(np.polyfit(np.log(list(by_size)), seed, 1)[0]) for seed in logs.T]


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    found = widths(records)
    yield _claim(
        "theory.finite-slope",
        *(Measure.over_seeds(f"{kind}: slope", slopes(found[kind, "label"]), *band) for kind, band in BANDS.items()),
    )
    N = max(found[WHOLE, "label"])
    gains = {kind: np.log(found[kind, "label"][N]) - np.log(found[kind + MORE, "label"][N]) for kind in (WHOLE, SHORT)}
    label = f"N={N}, {WHOLE}: log of the critical width, over that with 8 times the samples"
    yield _claim(
        "theory.samples",
        Measure.over_seeds(label, gains[WHOLE].tolist(), low=0),
        Measure.over_seeds(f"the same less that for {SHORT}", (gains[WHOLE] - gains[SHORT]).tolist(), low=0),
    )
    long = slopes(found[WHOLE, "label"])
    yield _claim("theory.long-slope", Measure.over_seeds(f"{WHOLE}: slope", long, low=0.6))


def _claim(id: str, *measures: Measure) -> Claim:
    return Claim(id, CLAIMS[id], SOURCE, measures)


def phase_map(records: Sequence[Record]) -> tuple[int, dict[tuple[int, int], dict[str, float]]]:
    """N, and the mean over seeds of both shares by (T, d)."""
    runs = [r for r in records if isinstance(r.spec, Check)]
    cells = {}
    for rows in zip(*(r.rows for r in runs), strict=True):
        size = int(rows[0]["T"]), int(rows[0]["d"])
        cells[size] = {name: float(np.mean([row[name] for row in rows])) for name in ("label", "mark")}
    return runs[0].check.sizes["N"], cells


def figure(records: Sequence[Record]) -> Any:
    from engram.show.finite import critical_widths

    found = widths(records)
    means = {key: float(np.mean(slopes(sizes))) for key, sizes in found.items()}
    N, cells = phase_map(records)
    law = {T: critical_width(N, T, PlantedToken(N=N).samples) for T in sorted({T for T, _ in cells})}
    return critical_widths(found, means, N, cells, law)
