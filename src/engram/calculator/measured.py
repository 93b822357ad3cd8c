"""What was measured of capacities: a table made from the committed records (`make capacities`), and its fits.

The table is read in milliseconds, where the records take seconds; a test compares it with them.
"""

import csv
from functools import cache
from pathlib import Path

from engram.calculator.kinds import KINDS, fit_of
from engram.theory.extrapolation import Fit

FILE = Path(__file__).parents[1] / "data" / "capacities.csv"
COLUMNS = ("memory", "size", "held")
Points = list[tuple[float, float]]


@cache
def measured() -> dict[str, Points]:
    """For each kind of memory its sizes, and what a seed held there."""
    found: dict[str, Points] = {name: [] for name in KINDS}
    with FILE.open(newline="") as file:
        for row in csv.DictReader(file):
            found[row["memory"]].append((float(row["size"]), float(row["held"])))
    return found


@cache
def fit_to(name: str) -> Fit:
    """The law that was fitted to all measurements of a kind."""
    return fit_of(KINDS[name], measured()[name])
