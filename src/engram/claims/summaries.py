"""What runs that differ in their seed only ended at: which columns say most, their means, and how sure these are."""

from collections.abc import Sequence
from math import isfinite
from textwrap import shorten
from typing import Any

from engram.claims.intervals import Student
from engram.errors import EngramError, did_you_mean
from engram.probes.columns import bounds
from engram.records import Record
from engram.records.faces import HEADLINES
from engram.specs.encode import TAGS

MOST_METRICS = 2  # unless others are named
LEAST_SEEDS = 3  # of an interval: that of two seeds is thirteen times as wide as they lie apart


def choose_metrics(records: Sequence[Record], wanted: Sequence[str] = ()) -> list[str]:
    """The columns that were named, which every run must have; else those that say most."""
    known = [name for name in records[0].columns if all(name in record.columns for record in records)]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        hint = did_you_mean(unknown[0], known)
        raise EngramError(f"--metric: not all runs have measured {unknown[0]!r}; {hint}allowed: {', '.join(known)}")
    best = [name for name in HEADLINES if name in known] or [name for name in known if name != "step"]
    return list(wanted) or best[:MOST_METRICS]


def over_seeds(records: Sequence[Record], name: str) -> dict[str, Any]:
    """What each seed ended at, the mean, and the part of its 95 % interval that can be; of two seeds there is none."""
    values = [ended_at(record, name) for record in records]
    if not values:
        return {"values": [], "mean": None, "low": None, "high": None}
    estimate = Student(tuple(values))
    low, high = _possible(estimate.interval, name) if len(values) >= LEAST_SEEDS else (None, None)
    return {"values": values, "mean": estimate.measured, "low": low, "high": high}


def _possible(interval: tuple[float, float], name: str) -> tuple[float | None, float | None]:
    """No share lies outside 0 and 1, and no loss below 0, whatever Student's interval does."""
    least, most = bounds(name)
    low, high = (min(most, max(least, edge)) if isfinite(edge) else None for edge in interval)
    return low, high


def ended_at(record: Record, name: str) -> float:
    """The mean of what was measured in the last tenth of the steps: single batches are noisy."""
    steps, values = record.curve(name)
    return float(values[steps >= 0.9 * steps[-1]].mean())


def setting_in_words(value: Any) -> str:
    """An object such as SGD(lr=0.1) by its class and the fields that are not empty or zero."""
    if not isinstance(value, dict):
        return str(value)
    kind = str(value.get("class", "")).rpartition(".")[2]
    return shorten(
        " ".join([kind, *(f"{k}={v}" for k, v in value.items() if k not in TAGS and v)]), 24, placeholder="…"
    )
