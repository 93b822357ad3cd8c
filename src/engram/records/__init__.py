"""Records: what is kept of a Spec that ran. Only this room touches run files."""

from engram.records.record import Record

__all__ = ["Record"]
