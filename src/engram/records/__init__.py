"""Records: what is kept of a Spec that ran. Only this room touches run files."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engram.records.record import Record

__all__ = ["Record"]


def __getattr__(name: str) -> Any:
    """Fetched when first used: what only reads rows does not wait for torch."""
    if name == "Record":
        from engram.records.record import Record

        return Record
    raise AttributeError(f"module 'engram.records' has no attribute {name!r}")
