"""Where a yes turns into a no: bisection whose questions the caller answers."""

from collections.abc import Generator
from math import sqrt

from engram.errors import EngramError

MOST = 32  # how many times larger than the bracket a size may grow


def bisection(low: int, high: int, ratio: float) -> Generator[int, bool, tuple[int, int]]:
    """Yields sizes, is sent whether each passed, and returns the last size that passed and the first that did not.

    Ends when these two are neighbours or differ by less than `ratio`. An end of the bracket is tried only if the search
    comes to rest at it; if its answer is not the expected one, the bracket is doubled on that side.
    """
    lo, hi, asked = low, high, set()
    while True:
        while hi > lo * ratio and hi - lo > 1:
            middle = min(max(round(sqrt(lo * hi)), lo + 1), hi - 1)
            asked.add(middle)
            if (yield middle):
                lo = middle
            else:
                hi = middle
        if lo not in asked:
            asked.add(lo)
            if not (yield lo):
                if lo == 1:
                    raise EngramError(
                        "search: the target is already crossed below size 1; choose another target, or another memory"
                    )
                lo, hi = max(1, lo // 2), lo
        elif hi not in asked:
            asked.add(hi)
            if (yield hi):
                if hi > MOST * high:
                    raise EngramError(
                        f"search: the target is not crossed up to size {hi}; choose another target, or a larger bracket"
                    )
                lo, hi = hi, 2 * hi
        else:
            return lo, hi
