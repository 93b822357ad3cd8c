"""What a run has come to: progress, speed, time left, births. Terminal and report say it the same way."""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from engram.claims.readings import birth
from engram.probes.columns import Column, memories
from engram.records import Record
from engram.records.files import Row
from engram.specs import Spec, Train

LEVELS = (0.5, 0.9)


@dataclass
class Progress:
    """Follows the rows of one run. Speed is that of the last rows: stored ones and a slow start are soon forgotten."""

    spec: Spec
    step: int = 0
    latest: Row = field(default_factory=dict)
    births: dict[tuple[str, float], int] = field(default_factory=dict)
    _recent: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=30))

    def see(self, row: Row) -> list[str]:
        """Take in a row; returns a sentence for each memory that was just born."""
        self.step = row["step"]
        self._recent.append((time.monotonic(), self.step))
        self.latest |= {name: value for name, value in row.items() if value is not None}
        return [self._born(c, level) for c in memories(row) for level in LEVELS if self._is_new(row, c.name, level)]

    def _is_new(self, row: Row, column: str, level: float) -> bool:
        return (column, level) not in self.births and (row.get(column) or 0.0) > level

    def _born(self, memory: Column, level: float) -> str:
        self.births[memory.name, level] = self.step
        verb = "is born" if level == LEVELS[0] else "stands firm"
        return f"{memory.title} {verb} at step {self.step} (recall {self.latest[memory.name]:.2f} > {level})"

    @property
    def seconds_per_step(self) -> float | None:
        """None until two rows have come with time between them."""
        if not self._recent:
            return None
        (began, first), (now, last) = self._recent[0], self._recent[-1]
        return (now - began) / (last - first) if last > first and now - began > 0.05 else None

    @property
    def seconds_left(self) -> float | None:
        pace = self.seconds_per_step
        return None if pace is None else pace * (self.spec.steps - self.step)

    @property
    def tokens_per_second(self) -> float | None:
        pace = self.seconds_per_step
        if pace is None or not isinstance(self.spec, Train):
            return None
        return self.spec.plan.batch * self.spec.task.T / pace


def birth_summary(record: Record) -> list[str]:
    """One line a memory: when it was born, or that it was not."""
    lines = []
    for memory in memories(record.columns):
        born = {level: birth(record, memory.name, level) for level in LEVELS}
        words = [
            f"not above {level}" if step is None else f"above {level} at step {step}" for level, step in born.items()
        ]
        state = f"not born by step {record.last_step}: recall" if born[LEVELS[0]] is None else "born: recall"
        lines.append(f"{memory.title:<12} {state} {', '.join(words)}")
    return lines


def not_born(records: Sequence[Record]) -> list[str]:
    """Of a single training: a line for each memory that has not been born, since no birth was told of it."""
    if len(records) != 1 or not isinstance(records[0].spec, Train):
        return []
    (record,) = records
    unborn = [memory for memory in memories(record.columns) if birth(record, memory.name, LEVELS[0]) is None]
    by = f"is not born by step {record.last_step}"
    return [f"  ○ {one.title} {by} (recall {record.last(one.name):.2f}, not above {LEVELS[0]})" for one in unborn]


def clock(seconds: float | None) -> str:
    if seconds is None:
        return "…"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
