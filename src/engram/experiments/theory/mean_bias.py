r"""What attention needs to find a planted mark: the mean of all inputs looks like a signal if labels come unevenly.

With p̂ = 1/N the step on attention is w = n⁻² Σ_ii' (ũ_{y_i}·ũ_{y_i'}) C_i x̄_i', where C_i is the covariance of keys
and values within sequence i, x̄ the mean of its values and ũ = u − ū. Its signal on the mark is 1/(NT²). The common part
of all x̄ meets labels that come unequally often, and gives tokens noise with standard deviation

    σ = √(λ³ + 3λ² + λ) / (n N²),   λ = N/d                  for d ≪ N: 1/(n √N d^{3/2})

Once it is below the signal the mark is found: for √N ≪ T and d ≪ N from d ∝ T^{4/3} N^{1/3} n^{−2/3} on, which is the
talk's (T²/N)(N²/(Tn))^γ with γ = 2/3 (the exponent cannot be read there; nor is its min{1, ·} in this law). Between
these limits, and above the width at which the mark is not like any token by chance, it is found where

    (NT²σ)² + 1/d = 1/κ²                                     κ = 4 was chosen by eye

Measured: signal and σ themselves, over all widths; and critical widths along T, n and N = T beside this law. Control:
labels that come equally often, where this noise is gone and a smaller one is left.

    engram run theory.mean-bias --seeds 5
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engram.claims import Claim, Measure
from engram.claims.experiment import Scale
from engram.claims.readings import capacity
from engram.experiments.memory import of_law
from engram.experiments.theory.finite import search_width, slopes
from engram.records import Record
from engram.specs import Check, Search
from engram.tasks.planted import PlantedToken
from engram.theory.mean_bias import critical_width

TIMES = "quick 1 min a seed, paper 15 min a seed on 2 cores"
SOURCE = "talks, 'Finite width and finite samples' (Vural et al.); derived in LOG.md"
CLAIMS = {
    "theory.mean-bias": "In w the mark has 1/(NT²), and tokens have the noise that unequal label counts make.",
    "theory.mean-bias-width": "Where the mark is found follows from both, along T, n and N; equal counts need less.",
}
LAW = "learning.planted_steps.signal_and_noise"
FIXED = {"smoke": 32, "quick": 256, "paper": 512}
VOTES = {"smoke": 1, "quick": 9, "paper": 15}  # near the turn accuracy differs much between codebooks
DRAWS = {"smoke": 2, "quick": 6, "paper": 12}
NEAR = 0.15


@dataclass(frozen=True)
class Line:
    """Tasks along which one size grows."""

    title: str
    tasks: Mapping[int, PlantedToken]


def lines(N: int) -> tuple[Line, ...]:
    n = PlantedToken(N=N).samples
    lengths, sizes = [round(N / 2 ** (k / 2)) for k in (4, 3, 2, 1, 0)], [N // 4, N // 2, N, 2 * N]
    return (
        Line("length T", {T: PlantedToken(N=N, T=T) for T in lengths}),
        Line("samples n", {k * n: PlantedToken(N=N, T=N, n=k * n) for k in (1, 2, 4, 8)}),
        Line("tokens N = T", {M: PlantedToken(N=M, T=M) for M in sizes}),
    )


def balanced(line: Line) -> Line:
    """The control: labels come equally often."""
    tasks = {size: task.model_copy(update={"balanced": True}) for size, task in line.tasks.items()}
    return Line(f"{line.title}, equal label counts", tasks)


def law(task: PlantedToken) -> float:
    return critical_width(task.N, task.T, task.samples)


def specs(scale: Scale, seeds: Sequence[int]) -> list[Search | Check]:
    N = FIXED[scale]
    found = lines(N)
    tasks = {run_key(task): task for line in (*found, balanced(found[-1])) for task in line.tasks.values()}
    sought = [search_width(task, "mark", seed, VOTES[scale]) for task in tasks.values() for seed in seeds]
    directly = [
        Check(law=LAW, sizes={"N": N, "T": N, "balanced": even}, draws=DRAWS[scale], seed=seed)
        for even in (0, 1)
        for seed in seeds
    ]
    return [*sought, *directly]


def run_key(task: PlantedToken) -> tuple[int, int, int, bool]:
    """Two lines may share a task, and n may be given or the default: one search is enough."""
    return task.N, task.T, task.samples, task.balanced


Widths = dict[tuple[int, int, int, bool], list[float]]


def widths(records: Sequence[Record]) -> Widths:
    """The critical width of each seed, by task."""
    found: Widths = {}
    for record in (r for r in records if isinstance(r.spec, Search)):
        found.setdefault(run_key(record.search.task), []).append(capacity(record))  # type: ignore[arg-type]
    return found


def along(line: Line, found: Widths) -> dict[int, list[float]]:
    return {size: found[run_key(task)] for size, task in line.tasks.items()}


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    yield _claim("theory.mean-bias", *_directly(records))
    found, sought = widths(records), lines(_fixed(records))
    measures = [_slope(line, found) for line in sought]
    last = sought[-1]
    size = max(last.tasks)
    gains = np.log(along(last, found)[size]) - np.log(along(balanced(last), found)[size])
    label = f"N = T = {size}: log of the width, over that with equal label counts"
    yield _claim("theory.mean-bias-width", *measures, Measure.over_seeds(label, gains.tolist(), low=np.log(2)))


def _directly(records: Sequence[Record]) -> Iterator[Measure]:
    """Signal and noise over their laws at the narrowest and the widest, and in the mean over widths."""
    drawn, even = (of_law(_checks(records), LAW, balanced=flag) for flag in (0, 1))
    for column in ("signal", "noise"):
        for place, name in ((0, "narrowest"), (-1, "widest")):
            values = [rows[place][column] for rows in drawn]
            yield Measure.over_seeds(f"{column} over its law, {name} d", values, 0.8, 1.2)
        means = [float(np.mean([row[column] for row in rows])) for rows in drawn]
        yield Measure.over_seeds(f"{column} over its law, mean over widths", means, 0.9, 1.1)
    rest = [float(np.mean([row["noise"] for row in rows])) for rows in even]
    yield Measure.over_seeds("noise over the law with equal label counts, mean over widths", rest, high=0.5)


def _checks(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if isinstance(record.spec, Check)]


def _slope(line: Line, found: Widths) -> Measure:
    (predicted,) = slopes({size: [law(task)] for size, task in line.tasks.items()})
    over = [slope - predicted for slope in slopes(along(line, found))]
    return Measure.over_seeds(f"exponent in {line.title}, minus {predicted:.2f} of the law", over, -NEAR, NEAR)


def _claim(id: str, *measures: Measure) -> Claim:
    return Claim(id, CLAIMS[id], SOURCE, measures)


def _fixed(records: Sequence[Record]) -> int:
    return records[0].search.task.N  # type: ignore[union-attr]


def figure(records: Sequence[Record]) -> Any:
    from engram.show.finite import widths_along

    found, sought = widths(records), lines(_fixed(records))
    theory = {line.title: [law(task) for task in line.tasks.values()] for line in sought}
    measured = {line.title: along(line, found) for line in sought}
    direct = {name: of_law(_checks(records), LAW, balanced=flag) for name, flag in (("drawn", 0), ("equal", 1))}
    return widths_along(measured, theory, along(balanced(sought[-1]), found), direct)
