"""Claims: sentences made checkable, the numbers read off records for them, and the ledger of all verdicts."""

from engram.claims.claim import Claim, Measure, decide

__all__ = ["Claim", "Measure", "decide"]
