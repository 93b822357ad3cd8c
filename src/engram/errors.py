"""One-line errors. Light to import: the command line needs them before anything else."""

from collections.abc import Iterable
from difflib import get_close_matches


class EngramError(Exception):
    """Bad input or a broken record, told in one line that ends with a remedy. Exit code 2."""


class Interrupted(Exception):
    """Stopped on request after a whole step; the state is saved. Exit code 130."""

    def __init__(self, run: str, step: int | None = None):
        where = f" at step {step}" if step is not None else ""
        super().__init__(f"stopped{where} and saved; go on with: engram runs resume {run}")
        self.run, self.step = run, step


def did_you_mean(given: str, allowed: Iterable[str]) -> str:
    """'did you mean X? ' for the nearest allowed name, capitals aside; nothing if none is near."""
    by_lower = {name.lower(): name for name in allowed}
    near = get_close_matches(given.lower(), by_lower, n=1, cutoff=0.5)
    return f"did you mean {by_lower[near[0]]}? " if near else ""
