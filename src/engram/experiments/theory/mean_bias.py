r"""What attention needs to find a planted mark: the mean of all inputs looks like a signal if labels come unevenly.

With p̂ = 1/N the step on attention is w = n⁻² Σ_ii' (ũ_{y_i}·ũ_{y_i'}) C_i x̄_i', where C_i is the covariance of keys
and values within sequence i and ũ = u − ū. Its signal on the mark is 1/(NT²). The common part of all x̄ meets labels
that come unequally often, and gives every token noise of order 1/(n √N d^{3/2}). So the mark is found if

    d  ≫  (T²/N) (N²/(Tn))^{2/3}  =  T^{4/3} N^{1/3} n^{−2/3}

which would make the talk's unreadable exponent 2/3. Measured: the exponents in T and n at fixed N, and in N for T = N.
Control: the same with labels that come equally often, where this noise is gone.

    engram run theory.mean-bias --seeds 5
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engram.experiments import Scale
from engram.experiments.theory.finite import critical_width, slopes
from engram.records import Claim, Measure, Record, Search
from engram.records.readings import capacity
from engram.tasks.planted import PlantedToken

TIMES = "quick 1 min a seed, paper 15 min a seed on 2 cores"
SOURCE = "talks, 'Finite width and finite samples' (Vural et al.); derived in LOG.md"
CLAIMS = {
    "theory.mean-bias": "Attention finds the mark from d ∝ T^{4/3} N^{1/3} n^{−2/3} on; equal label counts need less."
}
FIXED = {"smoke": 32, "quick": 256, "paper": 512}
NEAR = 0.15  # of the exponent
VOTES = {"smoke": 1, "quick": 9, "paper": 15}  # near the turn accuracy differs much between codebooks


@dataclass(frozen=True)
class Line:
    """Tasks along which one size grows, and the exponent that the law has for the critical width."""

    title: str
    tasks: Mapping[int, PlantedToken]
    exponent: float


def lines(N: int) -> tuple[Line, ...]:
    n = PlantedToken(N=N).samples
    lengths, sizes = [round(N / 2 ** (k / 2)) for k in (4, 3, 2, 1, 0)], [N // 4, N // 2, N, 2 * N]
    return (
        Line("length T", {T: PlantedToken(N=N, T=T) for T in lengths}, 4 / 3),
        Line("samples n", {k * n: PlantedToken(N=N, T=N, n=k * n) for k in (1, 2, 4, 8)}, -2 / 3),
        Line("tokens N = T", {M: PlantedToken(N=M, T=M) for M in sizes}, _local_exponent(sizes)),
    )


def balanced(line: Line) -> Line:
    """The control: labels come equally often."""
    tasks = {size: task.model_copy(update={"balanced": True}) for size, task in line.tasks.items()}
    return Line(f"{line.title}, equal label counts", tasks, float("nan"))


def law(task: PlantedToken) -> float:
    """The critical width up to a constant."""
    return task.T ** (4 / 3) * task.N ** (1 / 3) * task.samples ** (-2 / 3)


def _local_exponent(sizes: Sequence[int]) -> float:
    """The law is no pure power of N when n = N (ln N + 5.1): its slope over these sizes."""
    return slopes({M: [law(PlantedToken(N=M, T=M))] for M in sizes})[0]


def specs(scale: Scale, seeds: Sequence[int]) -> list[Search]:
    found = lines(FIXED[scale])
    tasks = {run_key(task): task for line in (*found, balanced(found[-1])) for task in line.tasks.values()}
    return [critical_width(task, "mark", seed, VOTES[scale]) for task in tasks.values() for seed in seeds]


def run_key(task: PlantedToken) -> tuple[int, int, int, bool]:
    """Two lines may share a task, and n may be given or the default: one search is enough."""
    return task.N, task.T, task.samples, task.balanced


Widths = dict[tuple[int, int, int, bool], list[float]]


def widths(records: Sequence[Record]) -> Widths:
    """The critical width of each seed, by task."""
    found: Widths = {}
    for record in records:
        found.setdefault(run_key(record.search.task), []).append(capacity(record))  # type: ignore[arg-type]
    return found


def along(line: Line, found: Widths) -> dict[int, list[float]]:
    return {size: found[run_key(task)] for size, task in line.tasks.items()}


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    found, sought = widths(records), lines(_fixed(records))
    measures = [
        Measure.over_seeds(
            f"exponent in {line.title}, minus {line.exponent:.2f}",
            [slope - line.exponent for slope in slopes(along(line, found))],
            -NEAR,
            NEAR,
        )
        for line in sought
    ]
    last = sought[-1]
    size = max(last.tasks)
    gains = np.log(along(last, found)[size]) - np.log(along(balanced(last), found)[size])
    label = f"N = T = {size}: log of the width, over that with equal label counts"
    measures.append(Measure.over_seeds(label, gains.tolist(), low=np.log(2)))
    yield Claim("theory.mean-bias", CLAIMS["theory.mean-bias"], SOURCE, tuple(measures))


def _fixed(records: Sequence[Record]) -> int:
    return records[0].search.task.N  # type: ignore[union-attr]


def figure(records: Sequence[Record]) -> Any:
    from engram.show.finite import widths_along

    found, sought = widths(records), lines(_fixed(records))
    fit = np.mean([np.log(np.mean(found[run_key(t)]) / law(t)) for line in sought for t in line.tasks.values()])
    theory = {line.title: [float(np.exp(fit)) * law(task) for task in line.tasks.values()] for line in sought}
    measured = {line.title: along(line, found) for line in sought}
    return widths_along(measured, theory, along(balanced(sought[-1]), found))
