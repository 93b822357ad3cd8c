"""--budget: how long a command may take, by its own estimate."""

import re
from typing import Annotated

from cyclopts import Parameter

from engram.errors import EngramError

LENGTHS = {"s": 1, "min": 60, "h": 3600, "d": 86400}  # in seconds
Budget = Annotated[str, Parameter(show_default=False)]


def seconds_in(budget: str | None) -> float | None:
    """
    >>> seconds_in("90s"), seconds_in("1.5h"), seconds_in("3 d"), seconds_in(None)
    (90.0, 5400.0, 259200.0, None)
    """
    if budget is None:
        return None
    found = re.fullmatch(rf"(\d+(?:\.\d+)?) ?({'|'.join(LENGTHS)})", budget.strip())
    if found is None or not float(found[1]):
        raise EngramError(f"--budget: write a time such as 30s, 90min, 2h or 3d; got {budget!r:.60}")
    return float(found[1]) * LENGTHS[found[2]]


def keep_within(most: float | None, seconds: float | None) -> None:
    """Refuses what takes longer than a person wants to spend."""
    from engram.engines.ahead import in_words

    if most is None or (seconds is not None and seconds <= most):
        return
    if seconds is None:
        raise EngramError("--budget: how long this takes is not known; leave --budget out to run it all the same")
    raise EngramError(
        f"--budget: this takes {in_words(seconds)}, which is {seconds / most:.1f} times what was given; take fewer "
        "seeds or values, a smaller scale, more machines (--engine), or a larger budget"
    )
