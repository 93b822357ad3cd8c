r"""What attention needs to find a planted mark: the mean of all inputs looks like a signal if labels come unevenly.

With p̂ = 1/N the step on attention is w = n⁻² Σ_ii' (ũ_{y_i}·ũ_{y_i'}) C_i x̄_i', where C_i is the covariance of keys
and values within sequence i, x̄ the mean of its values and ũ = u − ū. Its signal on the mark is 1/(NT²). The common part
of all x̄ meets labels that are unequally frequent, and gives tokens noise with standard deviation

    σ = √(λ³ + 3λ² + λ) / (n N²),   λ = N/d                  for d ≪ N: 1/(n √N d^{3/2})

Once it is below the signal the mark is found: for √N ≪ T and d ≪ N from d ∝ T^{4/3} N^{1/3} n^{−2/3} on, which is the
talk's (T²/N)(N²/(Tn))^γ with γ = 2/3 (the exponent cannot be read there; nor is its min{1, ·} in this law). Between
these limits, and above the width at which the mark is not like any token by chance, it is found where

    (NT²σ)² + 1/d = 1/κ²                                     κ = 4 was chosen by eye

Measured: signal and σ themselves, over all widths; and critical widths along T, n and N = T beside this law. Control:
labels that are equally frequent, where this noise is gone and a smaller one is left.

    engram run theory.mean-bias --seeds 5
"""

from collections.abc import Mapping

import numpy as np

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Runs, Scale, Seeds, checks
from engram.claims.fits import by_seed, exponent
from engram.claims.readings import capacity
from engram.experiments.memory import mean
from engram.experiments.theory.finite import search_width, slopes
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
TOKENS = "tokens N = T"
CONTROL = f"{TOKENS}, equal label counts"


def lines(scale: Scale) -> dict[str, dict[int, PlantedToken]]:
    """Tasks along which one size grows; two lines may share a task. On the last, labels are equally frequent."""
    N, n = FIXED[scale], PlantedToken(N=FIXED[scale]).samples
    lengths, sizes = [round(N / 2 ** (k / 2)) for k in (4, 3, 2, 1, 0)], [N // 4, N // 2, N, 2 * N]
    more = {k * n: PlantedToken(N=N, T=N, n=k * n) for k in (2, 4, 8)}
    return {
        "length T": {T: PlantedToken(N=N, T=T) for T in lengths},
        "samples n": {n: PlantedToken(N=N, T=N)} | more,
        TOKENS: {M: PlantedToken(N=M, T=M) for M in sizes},
        CONTROL: {M: PlantedToken(N=M, T=M, balanced=True) for M in sizes},
    }


def law(task: PlantedToken) -> float:
    return critical_width(task.N, task.T, task.samples)


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    N, draws, counts = FIXED[scale], DRAWS[scale], {"drawn": False, "equal": True}
    sought = {
        (title, size): [search_width(task, "mark", seed, VOTES[scale]) for seed in seeds]
        for title, tasks in lines(scale).items()
        for size, task in tasks.items()
    }
    return {**sought, **{name: checks(LAW, seeds, draws, N=N, T=N, balanced=equal) for name, equal in counts.items()}}


def along(runs: Runs, title: str) -> dict[int, list[float]]:
    """The critical width of each seed, by the size that grows."""
    return {size: [capacity(record) for record in runs[title, size]] for size in lines(runs.scale)[title]}


def claims(runs: Runs) -> Claimed:
    yield "theory.mean-bias", [*_directly(runs)]
    measures = [_slope(runs, title, tasks) for title, tasks in lines(runs.scale).items() if title != CONTROL]
    found, control = along(runs, TOKENS), along(runs, CONTROL)
    size = max(found)
    gains = np.log(found[size]) - np.log(control[size])
    label = f"N = T = {size}: log of the width, over that with equal label counts"
    yield "theory.mean-bias-width", [*measures, Measure.over_seeds(label, gains.tolist(), low=np.log(2))]


def _directly(runs: Runs) -> Measures:
    """Signal and noise over their laws at the narrowest and the widest, and in the mean over widths."""
    for column in ("signal", "noise"):
        for place, name in ((0, "narrowest"), (-1, "widest")):
            values = [record.rows[place][column] for record in runs["drawn"]]
            yield Measure.over_seeds(f"{column} over its law, {name} d", values, 0.8, 1.2)
        yield mean(f"{column} over its law, mean over widths", runs["drawn"], column, 0.9, 1.1)
    yield mean("noise over the law with equal label counts, mean over widths", runs["equal"], "noise", high=0.5)


def _slope(runs: Runs, title: str, tasks: Mapping[int, PlantedToken]) -> Measure:
    (predicted,) = slopes({size: [law(task)] for size, task in tasks.items()})
    name = f"exponent in {title}, minus {predicted:.2f} of the law"
    return exponent(name, by_seed(along(runs, title)), -NEAR, NEAR, law=predicted)


def figure(runs: Runs) -> Figure:
    from engram.show.critical_widths import widths_along

    theory = {title: [*map(law, tasks.values())] for title, tasks in lines(runs.scale).items() if title != CONTROL}
    measured = {title: along(runs, title) for title in theory}
    direct = {counts: [record.rows for record in runs[counts]] for counts in ("drawn", "equal")}
    return widths_along(measured, theory, along(runs, CONTROL), direct)
