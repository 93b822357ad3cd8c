"""Numbers read off the rows of a record: births and late means."""

import numpy as np

from engram.errors import EngramError
from engram.records.record import Record

MEMORIES = {  # column → name a person reads
    "recall.W_O2": "W_O2",
    "recall.W_K2": "W_K2",
    "recall.W_K1.t<64": "W_K1 (t<64)",
    "recall.W_K1": "W_K1",
}


def birth(record: Record, column: str, level: float = 0.5) -> int | None:
    """The first step at which a memory's recall is above the level; None if it never is."""
    steps, values = record.curve(column)
    above = steps[values > level]
    return int(above[0]) if len(above) else None


def late_mean(record: Record, column: str, step: int, width: int = 30) -> float:
    """Mean over the last `width` steps up to and with `step`, which must have been measured."""
    steps, values = record.curve(column)
    if step not in steps:
        raise EngramError(
            f"record {record.id} has no {column} at step {step}; finish it: engram runs resume {record.id}"
        )
    return float(values[(steps > step - width) & (steps <= step)].mean())


def mean_difference(record: Record, column: str, minus: str, from_step: int) -> float:
    """Mean of column − minus over the measured steps from `from_step` on."""
    steps, values = record.curve(column)
    return float(np.mean((values - record.curve(minus)[1])[steps >= from_step]))
