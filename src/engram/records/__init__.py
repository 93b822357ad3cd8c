"""Records: what was asked (Spec), what was kept (Record), what it means (Claim). Only this room touches run files."""

from engram.records.claim import Claim, Measure, decide
from engram.records.record import Record
from engram.records.spec import Check, Search, Spec, Train

__all__ = ["Check", "Claim", "Measure", "Record", "Search", "Spec", "Train", "decide"]
