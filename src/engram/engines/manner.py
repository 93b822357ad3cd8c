"""How Specs are run, wherever that is: what every engine is told."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engram.records.files import home
from engram.text import printable


def _say(words: str) -> None:
    print(f"engram: {printable(words)}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Manner:
    """Records are kept in `home`, which is ./runs or $ENGRAM_HOME unless said.

    device       where tensors lie: cpu, cuda or mps
    path         how gradients are computed: auto, fast or reference
    threads      of a run; None: all for a run that is alone here, one where several run side by side
    on_failure   hears at once of a run that fails, by its id; the outcome names it again
    snapshots    weights are stored every so many steps, besides those that the plan names
    memory       bytes that a run may need: no more of them run side by side than there is room for; None: not counted
    workers      how many runs are computed at a time, at most; None: as many as there is room for
    tell         is told, in a sentence, what a person should know while it runs
    """

    home: Path = field(default_factory=home)
    device: str = "cpu"
    path: str = "auto"
    threads: int | None = None
    on_failure: Callable[[str, Exception], None] = lambda id, error: None
    snapshots: int | None = None
    memory: int | None = None
    workers: int | None = None
    tell: Callable[[str], None] = _say

    def side_by_side(self) -> int | None:
        """How many runs are computed at a time, as things stand; None: not known."""
        return self.workers

    def wall(self, seconds: Sequence[float], at_once: int | None = None) -> float | None:
        """Seconds until runs are over that take so many seconds of one core each; None: not known.

        No run is spread over machines, so the longest is the least that it takes.
        """
        if not seconds:
            return 0.0
        at_once = at_once or self.side_by_side()
        return max([*seconds, sum(seconds) / at_once]) if at_once else None
