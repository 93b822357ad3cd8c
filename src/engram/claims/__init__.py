"""Claims: sentences made checkable, the numbers read off records for them, and the ledger of all verdicts.

What the file of an experiment needs stands here: Measure, checks, and names for the types of its functions.
"""

from engram.claims.claim import Claim, Measure, decide
from engram.claims.experiment import Claimed, Figure, Labelled, Measures, Records, Rows, Runs, Scale, Seeds, checks

__all__ = [
    "Claim", "Claimed", "Figure", "Labelled", "Measure", "Measures", "Records", "Rows", "Runs", "Scale", "Seeds",
    "checks", "decide",
]  # fmt: skip
