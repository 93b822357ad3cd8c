"""How often intervals cover what they are about. `python tests/covering.py` prints the table of the log."""

from collections.abc import Callable, Iterator

import numpy as np

from engram.claims import intervals
from engram.claims.fits import by_seed, exponent
from engram.claims.intervals import TAIL, Binomial, Student

COARSE = 200, 20  # points of the grid: thousands of intervals in a second
SEEDS, SHARES, TRIALS = (3, 5, 8), (0.5, 0.9, 0.99), (5, 64)
SIZES, SPREADS = (8.0, 16.0, 32.0, 64.0, 128.0), (0.02, 0.02, 0.5, 0.02, 0.02)  # one size is noisy


def coverage(truth: float, found: Iterator[tuple[float, float]]) -> float:
    return float(np.mean([low <= truth <= high for low, high in found]))


def of_mean(n: int, times: int) -> float:
    """Normal values."""
    drawn = np.random.default_rng(n).normal(3.0, 2.0, (times, n))
    return coverage(3.0, (Student(tuple(values)).interval for values in drawn))


def of_exponent(n: int, times: int) -> float:
    """A power law that each seed meets with an error, which is large at one size."""
    noise = np.exp(np.random.default_rng(n).normal(0.0, 1.0, (times, n, len(SIZES))) * SPREADS)
    return coverage(2.0, (_exponent(one * np.square(SIZES)) for one in noise))


def _exponent(values: np.ndarray) -> tuple[float, float]:
    return exponent("", by_seed(dict(zip(SIZES, values.T.tolist(), strict=True))), -np.inf, np.inf).interval


def hits_of(n: int, p: float, rho: float, trials: int, times: int) -> np.ndarray:
    """Hits of each seed, whose own share is drawn around p with the intra-class correlation ρ."""
    rng = np.random.default_rng([n, round(1000 * p), round(1000 * rho), trials])
    own = rng.beta(p * (1 - rho) / rho, (1 - p) * (1 - rho) / rho, (times, n)) if rho else np.full((times, n), p)
    return rng.binomial(trials, own)


def of_share(n: int, p: float, rho: float, trials: int, times: int) -> float:
    """Shares of few trials, whose intervals are computed for all drawn hits at once."""
    hits, often = np.unique(np.sort(hits_of(n, p, rho, trials, times)), axis=0, return_counts=True)
    of_hits = intervals.log_likelihoods(np.arange(trials + 1), trials)
    covered = [_covers(p, own, trials, of_hits) for own in np.array_split(hits, 1 + len(hits) // 300)]
    return float(np.concatenate(covered) @ often / times)


def _covers(p: float, hits: np.ndarray, trials: int, of_hits: np.ndarray) -> np.ndarray:
    """p lies in an interval if as much as TAIL of the posterior lies on each side, or on none is anything."""
    edges, below = intervals.cumulated(of_hits[hits].sum(axis=1))
    share = np.array([np.interp(p, edges, one) for one in below])
    above_low = (share >= TAIL) | (hits == 0).all(axis=1)
    return above_low & ((share <= 1 - TAIL) | (hits == trials).all(axis=1))


def of_trials(n: int, p: float, trials: int, times: int) -> float:
    """Shares of independent trials."""
    drawn = hits_of(n, p, 0.0, trials, times)
    some = {int(hits.sum()): hits.tolist() for hits in drawn}  # the interval depends on the sum alone
    found = {total: Binomial.of(hits, [trials] * n).interval for total, hits in some.items()}
    return coverage(p, (found[int(total)] for total in drawn.sum(axis=1)))


def table(times: int) -> Iterator[str]:
    def line(name: str, one: Callable[[int], float]) -> str:
        return f"| {name} | {' | '.join(f'{one(n):.3f}' for n in SEEDS)} |"

    yield "| interval | n = 3 | n = 5 | n = 8 |\n| --- | --- | --- | --- |"
    yield line("t over seeds, normal values", lambda n: of_mean(n, times))
    yield line("slopes per seed, one of five sizes 25 times as noisy", lambda n: of_exponent(n, times))
    for rho in (0.0, 0.1, 0.3):
        for trials in TRIALS:
            for p in SHARES:
                name = f"beta-binomial, ρ = {rho:g}, {trials} trials, p = {p:g}"
                yield line(name, lambda n, p=p, rho=rho, trials=trials: of_share(n, p, rho, trials, times))
    for p in SHARES:
        yield line(f"exact binomial, 5 trials, p = {p:g}", lambda n, p=p: of_trials(n, p, 5, times))


if __name__ == "__main__":
    intervals.POINTS, intervals.CORRELATIONS = COARSE
    print(*table(4000), sep="\n")
