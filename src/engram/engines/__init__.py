"""Engines: where many Specs run. One engine is one class with the method of the protocol `Engine`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from engram.errors import EngramError, explain_crash
from engram.records import Record
from engram.records.files import Row
from engram.specs import Spec

OnRow = Callable[[Spec, Row], None]


@dataclass(frozen=True)
class Outcome:
    """The records of the Specs that finished, in their order, and what went wrong with each of the others."""

    records: list[Record]
    failed: dict[str, Exception] = field(default_factory=dict)  # by run id

    def all_records(self) -> list[Record]:
        """The records, if there are all of them; otherwise `Failed`, or what the only Spec raised."""
        if not self.failed:
            return self.records
        if len(self.failed) == 1 and not self.records:
            raise next(iter(self.failed.values()))
        raise Failed(self)


@runtime_checkable
class Engine(Protocol):
    def run(self, specs: Sequence[Spec], on_row: OnRow) -> Outcome:
        """Runs each Spec to its end, or reads it if it has ended. `on_row` sees every row once, stored rows too.

        A Spec that fails does not stop the others. Ctrl-C lets every run finish its step and save, then raises
        Interrupted.
        """
        ...

    def side_by_side(self) -> int | None:
        """How many runs are computed at a time, as things stand; None: not known."""
        ...

    def wall(self, seconds: Sequence[float], at_once: int | None = None) -> float | None:
        """Seconds until runs are over that take so many seconds of one core each; None: not known."""
        ...


class Failed(EngramError):
    """Some of many runs failed; the others are finished and kept."""

    def __init__(self, outcome: Outcome):
        n = len(outcome.failed)
        by_reason: dict[str, list[str]] = {}  # what stopped several runs is said once
        for id, error in outcome.failed.items():
            by_reason.setdefault(explain_crash(error), []).append(id)
        reasons = "; ".join(f"{', '.join(ids)}: {why}" for why, ids in by_reason.items())
        super().__init__(f"{n} of {n + len(outcome.records)} runs failed, the others are kept: {reasons}")
        self.outcome = outcome
