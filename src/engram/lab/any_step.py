"""The weights of a step that is not stored, computed again for a page: in a thread of its own, while nothing trains.

What is computed is kept, the last of all runs up to MOST_BYTES, and counts as stored while it is.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from engram.engines.ahead import in_words
from engram.errors import EngramError
from engram.models import Weights
from engram.records import Record
from engram.records.follow import Follower
from engram.records.forward import approach, state_before

LONGEST = 20.0  # seconds that a person waits for; meanwhile the nearest stored step is shown
FIRST_SECONDS = 2.0  # after so many it is known how long it will take: the first steps are slow
LOOKS = 0.2  # seconds between two looks at whether a training has begun
MOST_BYTES = 2**28


class GivenUp(EngramError):
    """Nobody waits for it any longer."""


class AnyStep:
    """Computed weights by run and step. `trains` says whether a training is running here, which is not slowed down."""

    def __init__(self, trains: Callable[[], bool]):
        self._trains = trains
        self._known: dict[str, dict[int, Weights]] = {}
        self._order: OrderedDict[tuple[str, int], int] = OrderedDict()  # bytes of each
        self.worker = ThreadPoolExecutor(1, thread_name_prefix="forward")

    def of(self, run: str) -> dict[int, Weights]:
        """By step; readers in other threads keep this dict, which only grows and shrinks by whole entries."""
        return self._known.setdefault(run, {})

    def compute(self, run: Follower, step: int, gone: Event) -> None:
        """Until it is there, or refused with the reason; in the thread of `worker`."""
        name = run.folder.name
        if step not in self.of(name):
            self._keep(name, step, self._computed(run.record, step, gone))

    def _computed(self, record: Record, step: int, gone: Event) -> Weights:
        self._refuse_while_training()
        steps = step - state_before(record, record.train, step).step
        begun = looked = time.monotonic()
        found: Weights = {}
        for done, found in enumerate(approach(record, step)):  # noqa: B007 (the last ones)
            now = time.monotonic()
            if gone.is_set():
                raise GivenUp(f"step {step} is no longer wanted")
            if now - looked > LOOKS:
                looked = now
                self._refuse_while_training()
                _refuse_long(step, now - begun, done, steps)
        return {name: value.clone() for name, value in found.items()}

    def _refuse_while_training(self) -> None:
        if self._trains():
            raise EngramError("steps between stored ones are computed when no training is running: pause it")

    def _keep(self, run: str, step: int, weights: Weights) -> None:
        self.of(run)[step] = weights
        self._order[run, step] = sum(value.nbytes for value in weights.values())
        while sum(self._order.values()) > MOST_BYTES and len(self._order) > 1:
            (other, old), _ = self._order.popitem(last=False)
            self.of(other).pop(old, None)


def _refuse_long(step: int, seconds: float, done: int, of: int) -> None:
    """What takes longer is for a script, which may wait."""
    whole = seconds * of / max(1, done)
    if seconds > LONGEST or (seconds > FIRST_SECONDS and whole > LONGEST):
        raise EngramError(
            f"step {step} takes {in_words(whole)} to compute, too long for a page; in Python: record.model({step})"
        )
