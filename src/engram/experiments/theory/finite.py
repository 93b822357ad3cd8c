"""Finite width and samples: how wide a head must be to learn a planted token in three steps.

One of T tokens is marked, and its image under a permutation is the label; steps on W_OV, W_KQ and W_OV again, from the
same n samples (engram.learning.planted_steps). The critical width is found by bisection, for accuracy 0.9 on fresh
sequences: for T = N/8 with n = N (ln N + 5.1) as in the talk, and for T = 4. Beside it the width at which the mark is
attended to, and a map of both over length and width.

In this model (the mark is in the keys only) attention is the easier part until T is near N: storing N pairs needs
d ≈ c √N whatever T is, and attention about T^{4/3} N^{1/3} n^{−2/3} (theory.mean-bias). For T = N/8 that overtakes √N
only near N = 10^5, so the talk's slope 1.11, whose protocol is not published in detail, is not found here. Controls,
ours: for T = N attention decides, and the width grows faster than √N; there samples help more than for T = 4.

    engram run theory.finite --seeds 5
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engram.claims import Claimed, Figure, Labelled, Measure, Records, Runs, Scale, Seeds, checks
from engram.claims.fits import by_seed, slope
from engram.claims.readings import capacity
from engram.models.stores import OneHead
from engram.specs import Search
from engram.tasks.planted import PlantedToken
from engram.theory.mean_bias import critical_width

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
SLOW, LARGEST = (WHOLE, WHOLE + MORE), 256  # the most tokens where T = N: these take long
BANDS = {LONG: (1.0, 1.2), SHORT: (0.45, 0.65)}
VOTES = {"label": 3, "mark": 9}  # whether the mark is found differs more between codebooks
LINES = [(kind, asked) for kind in KINDS for asked in VOTES if asked == "label" or kind not in SLOW]
MAPS = {
    "smoke": {"N": 16, "least": 4, "most": 8, "widest": 16},
    "quick": {"N": 256, "least": 4, "most": 512, "widest": 512},
    "paper": {"N": 1024, "least": 4, "most": 2048, "widest": 2048},
}
DRAWS = {"smoke": 1, "quick": 3, "paper": 9}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    sought = {
        (kind, asked, N): [search_width(_task(kind, N), asked, seed, VOTES[asked]) for seed in seeds]
        for kind, asked in LINES
        for N in _sizes(kind, scale)
    }
    return {**sought, "map": checks("learning.planted_steps.phases", seeds, DRAWS[scale], **MAPS[scale])}


def search_width(task: PlantedToken, asked: Any, seed: int, votes: int) -> Search:
    model = OneHead(asked=asked)
    return Search(task=task, model=model, target=0.9, bracket=(4, 512), tolerance=0.03, votes=votes, seed=seed)


def _task(kind: str, N: int) -> PlantedToken:
    task = PlantedToken(N=N, T=LENGTHS[kind.removesuffix(MORE)](N))
    return PlantedToken(N=N, T=task.T, n=8 * task.samples) if kind.endswith(MORE) else task


def _sizes(kind: str, scale: Scale) -> list[int]:
    return [N for N in SIZES[scale] if N <= LARGEST or kind not in SLOW]


def widths(runs: Runs, kind: str, asked: str = "label") -> dict[int, list[float]]:
    """Critical widths over seeds, by N."""
    return {N: [capacity(record) for record in runs[kind, asked, N]] for N in _sizes(kind, runs.scale)}


def slopes(by_size: Mapping[int, Sequence[float]]) -> list[float]:
    """For each seed the slope of log width in log size."""
    return [slope(curve) for curve in by_seed(by_size)]


def claims(runs: Runs) -> Claimed:
    found = {kind: widths(runs, kind) for kind in KINDS}
    measures = [Measure.slope(f"{kind}: slope", slopes(found[kind]), *band) for kind, band in BANDS.items()]
    yield "theory.finite-slope", measures
    N = max(found[WHOLE])
    gains = {kind: np.log(found[kind][N]) - np.log(found[kind + MORE][N]) for kind in (WHOLE, SHORT)}
    label = f"N={N}, {WHOLE}: log of the critical width, over that with 8 times the samples"
    less = Measure.over_seeds(f"the same less that for {SHORT}", (gains[WHOLE] - gains[SHORT]).tolist(), low=0)
    yield "theory.samples", (Measure.over_seeds(label, gains[WHOLE].tolist(), low=0), less)
    yield "theory.long-slope", [Measure.slope(f"{WHOLE}: slope", slopes(found[WHOLE]), low=0.6)]


def phase_map(records: Records) -> dict[tuple[int, int], dict[str, float]]:
    """The mean over seeds of both shares by (T, d)."""
    cells = {}
    for rows in zip(*(record.rows for record in records), strict=True):
        size = int(rows[0]["T"]), int(rows[0]["d"])
        cells[size] = {name: float(np.mean([row[name] for row in rows])) for name in ("label", "mark")}
    return cells


def figure(runs: Runs) -> Figure:
    from engram.show.critical_widths import critical_widths

    found = {line: widths(runs, *line) for line in LINES}
    means = {line: float(np.mean(slopes(sizes))) for line, sizes in found.items()}
    N, cells = runs["map"][0].check.sizes["N"], phase_map(runs["map"])
    law = {T: critical_width(N, T, PlantedToken(N=N).samples) for T in sorted({T for T, _ in cells})}
    return critical_widths(found, means, N, cells, law)
