"""Numbers read off the rows of a record: births and late means."""

import numpy as np

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


def birth_or_end(record: Record, column: str, level: float = 0.5) -> int:
    """A memory not born by the end was born later than the end: the end is the cautious stand-in. At least 1."""
    born = birth(record, column, level)
    return max(1, record.train.steps if born is None else born)


def late_mean(record: Record, column: str, step: int, width: int = 30) -> float:
    """Mean over the last `width` measured steps up to `step`."""
    steps, values = record.curve(column)
    return float(values[(steps > step - width) & (steps <= step)].mean())


def mean_difference(record: Record, column: str, minus: str, from_step: int) -> float:
    """Mean of column − minus over the measured steps from `from_step` on."""
    steps, values = record.curve(column)
    return float(np.mean((values - record.curve(minus)[1])[steps >= from_step]))
