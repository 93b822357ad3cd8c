"""Workers take Specs one after another. Who they are and where they work is up to the engine; they communicate by
records: whatever a worker does appears in the home of runs."""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from engram.engines import OnRow
from engram.engines.manner import Manner
from engram.errors import EngramError, Interrupted
from engram.records import Record
from engram.records.follow import Follower
from engram.specs import Spec
from engram.specs.spec import run_id

SECONDS_BETWEEN_LOOKS = 0.05
TRIES = 3  # for a run whose worker dies: it goes on from its last state, each time with a new worker


class Died(EngramError):
    """A worker ended in the middle of a run; the run itself may be sound."""


@runtime_checkable
class Worker(Protocol):
    """Someone who runs Specs one after another, as the engine sees it."""

    def give(self, spec: Spec, threads: int) -> None:
        """The next Spec, for a worker that is idle."""
        ...

    def failures(self) -> dict[str, Exception]:
        """What failed since the last look: runs that it gave up, and the one that it died of, by their ids."""
        ...

    def alive(self) -> bool: ...

    def busy(self) -> bool:
        """Whether it still works on what it was given."""
        ...

    def idle(self) -> bool:
        """Whether it can be given a Spec; one that is on its way is neither busy nor idle."""
        ...

    def stop(self) -> None:
        """Let it finish its step and save; then there is nothing more to do."""
        ...

    def close(self) -> None:
        """There is nothing more to do."""
        ...

    def wait(self) -> None:
        """Until it has done what it is doing."""
        ...

    def kill(self) -> None: ...


@runtime_checkable
class Crew(Protocol):
    """Where workers come from."""

    def hire(self, workers: Sequence[Worker]) -> Worker | None:
        """One more besides these; None while there is no room for it."""
        ...

    def wait(self, workers: Sequence[Worker]) -> None:
        """Until one of them may have something to say, and no longer than SECONDS_BETWEEN_LOOKS."""
        ...


def threads_for(spec: Spec, home: Path, wanted: int, most: int) -> int:
    """A resumed run keeps the threads it began with, so that its numbers stay the same to the byte."""
    record = Record(home / run_id(spec))
    begun = (record.folder / "env.json").exists()
    return min(record.env["sittings"][0]["threads"], most) if begun else wanted


@dataclass
class Pool:
    """Hands out Specs to the workers of a crew, tells every row once, and gives what died to another worker.

    most    the threads that a worker can have
    """

    manner: Manner
    crew: Crew
    specs: Sequence[Spec]
    on_row: OnRow
    stopped: Callable[[], bool]
    most: int
    failed: dict[str, Exception] = field(default_factory=dict)

    def run(self) -> dict[str, Exception]:
        self._waiting, self._followed = deque(self.specs), dict[str, tuple[Spec, Follower]]()
        self._begun, self._told = Counter[str](), Counter[str]()  # by run: how often it began, rows told
        self._workers: list[Worker] = []
        try:
            while (self._any_busy() or self._waiting) and not self.stopped():  # in this order: what died waits again
                self._hand_out()
                self.crew.wait(self._workers)
                self._tell_new_rows()
            for worker in self._workers:
                worker.stop() if self.stopped() else worker.close()
            for worker in self._workers:
                worker.wait()
        finally:
            for worker in self._workers:
                with suppress(OSError):
                    worker.kill()
        self._tell_new_rows()
        if self.stopped():
            home = self.manner.home
            raise Interrupted([run_id(spec) for spec in self.specs if Record(home / run_id(spec)).ended is None])
        return self.failed

    def _any_busy(self) -> bool:
        """Also takes down what failed; a worker that died is replaced while there is work, and its run tried again."""
        for worker in self._workers:
            for id, error in worker.failures().items():
                if isinstance(error, Died) and id not in self._followed:
                    continue  # its record was complete before the worker could say so
                if isinstance(error, Died) and self._begun[id] < TRIES:
                    self._waiting.append(self._followed[id][0])
                else:
                    self._fail(id, error)
            if not worker.alive():
                worker.kill()  # closes what it held
        self._workers = [worker for worker in self._workers if worker.alive()]
        return any(worker.busy() for worker in self._workers)

    def _fail(self, id: str, error: Exception) -> None:
        self.failed[id] = error
        self.manner.on_failure(id, error)

    def _hand_out(self) -> None:
        """The next Specs to idle workers; new workers while there are more Specs than those that are free."""
        self._any_busy()
        free = [worker for worker in self._workers if not worker.busy()]
        while len(free) < len(self._waiting) and (new := self.crew.hire(self._workers)):
            self._workers.append(new)
            free.append(new)
        for worker in filter(lambda worker: worker.idle(), free):
            while self._waiting and not worker.busy():
                self._give(self._waiting.popleft(), worker)

    def _give(self, spec: Spec, worker: Worker) -> None:
        id = run_id(spec)
        try:
            worker.give(spec, threads_for(spec, self.manner.home, self.manner.threads or 1, self.most))
        except (EngramError, OSError) as error:  # what was begun of it is damaged, or another process writes it
            self._fail(id, error)
            return
        self._begun[id] += 1
        self._followed[id] = spec, Follower(self.manner.home / id)

    def _tell_new_rows(self) -> None:
        """Every row once; a run that has ended is looked at for the last time."""
        home = self.manner.home
        over = {id for id in self._followed if (home / id / "digest.json").exists() or id in self.failed}
        for id, (spec, follower) in self._followed.items():
            for row in follower.poll():
                if row["step"] >= self._told[id]:  # a run that was tried again repeats some
                    self._told[id] = row["step"] + 1
                    self.on_row(spec, row)
        for id in over:
            del self._followed[id], self._told[id]
