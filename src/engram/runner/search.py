"""The rows of a Search: one for each training, or written memory, at the sizes that bisection tries."""

from collections.abc import Callable, Iterator, Sequence

from engram.errors import EngramError
from engram.learning.bisection import bisection
from engram.records.files import Row
from engram.specs import Search
from engram.specs.spec import run_id

Stop = Callable[[], bool]


def search_rows(spec: Search, path: str, known: Sequence[Row] = (), stop: Stop = lambda: False) -> Iterator[Row]:
    """The size that was tried and the outcome; `known` rows are not tried again."""
    asking, step = bisection(*spec.bracket, 1 + spec.tolerance), 0
    n = next(asking)
    while True:
        rows = list(known[step : step + spec.votes])
        if any(row.get("n") != n or row.get("vote") != vote for vote, row in enumerate(rows)):
            fix = f"remove the run (engram runs rm {run_id(spec)}) and run it again"
            raise EngramError(f"run {run_id(spec)}: row {step} answers another question; {fix}")
        if len(rows) < spec.votes:  # all votes of a size again: how many share a product can change a digit
            for vote, outcome in list(enumerate(_outcomes(spec, n, path, stop)))[len(rows) :]:
                rows.append({"step": step + vote, "n": n, "vote": vote} | outcome)
                yield rows[-1]
        step += spec.votes
        try:
            n = asking.send(spec.passed([row["accuracy"] for row in rows]) != spec.rises)
        except StopIteration:
            return


def _outcomes(spec: Search, n: int, path: str, stop: Stop) -> list[dict[str, float]]:
    """Every vote has its own codebook; the first is that of the seed."""
    return spec.kind.trial(spec, n, [spec.seed + (vote << 32) for vote in range(spec.votes)], path, stop)
