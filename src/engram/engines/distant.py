"""A worker on a node of a Ray cluster, as the driver sees it."""

import re
import time
from typing import TYPE_CHECKING, Any

from engram.engines.build import Build, build
from engram.engines.guest import Job, Tidings
from engram.engines.manner import Manner
from engram.engines.parcels import Landing
from engram.engines.pool import Died
from engram.errors import EngramError
from engram.specs import Spec

if TYPE_CHECKING:
    from engram.engines.ray_cluster import Nodes

PATIENCE = 1.0  # seconds after which a worker says that there is nothing new
SILENCE = 120.0  # seconds after which one that says nothing is given up
GONE = {  # errors of Ray that users meet, in words
    "ActorUnschedulableError": "it has left the cluster",
    "ActorDiedError": "its process has ended, without a word",
    "WorkerCrashedError": "its process has ended, without a word",
}


class Distant:
    """A worker on a node: one question at a time is under way to it (`asked`), and its answer is looked at later."""

    def __init__(self, engine: Manner, crew: "Nodes", node: str, actor: Any):
        self.engine, self.crew, self.node, self._actor = engine, crew, node, actor
        self._arrived = self._over = self._stopping = False
        self._landing: Landing | None = None
        self._heard, self._leaving = time.monotonic(), None
        self.asked: Any = actor.build.remote()

    def give(self, spec: Spec, threads: int) -> None:
        self._landing, engine = Landing(spec, self.engine.home), self.engine
        try:
            parcel = self._landing.all()
        except (EngramError, OSError):
            self._landed()
            raise
        self._ask(Job(self._landing.folder.name, parcel, threads, engine.device, engine.path, engine.snapshots))

    def _ask(self, job: Job | None) -> None:
        self.asked, self._heard = self._actor.news.remote(job, PATIENCE), time.monotonic()

    def failures(self) -> dict[str, Exception]:
        ray, found = self.crew.ray, dict[str, Exception]()
        if self.asked is None:
            return found
        ready, _ = ray.wait([self.asked], timeout=0, fetch_local=False)
        if not ready:
            return self._died("it has said nothing for two minutes") if self._is_silent() else found
        try:
            answer = ray.get(self.asked)
        except (ray.exceptions.RayError, ImportError) as error:
            if _cannot_import(error):
                self.crew.give_up(self.node, _in_words(error))
            return self._died(_in_words(error))
        return self._welcome(answer) if isinstance(answer, Build) else self._hear(answer)

    def _is_silent(self) -> bool:
        """A worker that is on its way may have to wait for its place."""
        return self._arrived and time.monotonic() - self._heard > SILENCE

    def _welcome(self, there: Build) -> dict[str, Exception]:
        """It can only be used if it computes what would be computed here."""
        self.asked, self._arrived = None, True
        if different := build().differences(there, self.engine.path):
            self.crew.give_up(self.node, f"it has {', '.join(different)}; install the same there")
            self._over = True
        elif build().kernel != there.kernel:
            self.crew.note(self.node, "its kernel was compiled for another processor: last digits may differ")
        return {}

    def _hear(self, news: list[Tidings]) -> dict[str, Exception]:
        found: dict[str, Exception] = {}
        for one in news:
            if self._landing is None or one.run != self._landing.folder.name:
                continue
            try:
                self._landing.take(one.parcel)
            except EngramError as error:  # at home, where a new worker finds the same
                self._over, found[one.run] = True, error
                self._landed()
                continue
            if one.over:
                found |= self._end(one)
        if self._landing is not None:
            self._ask(None)
        else:
            self.asked = None
        return found

    def _end(self, last: Tidings) -> dict[str, Exception]:
        self._landed()
        if last.error is None:
            return {}
        if last.unfit:
            self._over = True
            self.crew.give_up(self.node, last.error)
            return {last.run: Died(last.error)}
        return {last.run: EngramError(last.error)}

    def _died(self, why: str) -> dict[str, Exception]:
        self._over, landing = True, self._landing
        self._landed()
        if not self._arrived:
            self.crew.lose(self.node, why)
        if landing is None or self._stopping:
            return {}
        return {landing.folder.name: Died(f"a worker on {self.crew.name_of(self.node)} was lost ({why})")}

    def _landed(self) -> None:
        if self._landing is not None:
            self._landing.close()
        self._landing = None

    def alive(self) -> bool:
        """Nobody is given more to do on a node that was given up."""
        return not self._over and (self._landing is not None or self.node not in self.crew.unusable)

    def busy(self) -> bool:
        return not self._over and self._landing is not None

    def idle(self) -> bool:
        return self.alive() and self._arrived and self._landing is None

    def stop(self) -> None:
        self._stopping = True
        self._actor.stop.remote()

    def close(self) -> None:
        """It ends with the command, and leaves nothing behind."""
        self._leaving = self._actor.leave.remote()

    def wait(self) -> None:
        while self.busy():
            self.crew.wait([self])
            self.failures()

    def kill(self) -> None:
        self._landed()
        if self._leaving is not None:
            self.crew.ray.wait([self._leaving], timeout=PATIENCE)
        self.crew.ray.kill(self._actor)


def _cause(error: BaseException) -> BaseException:
    return getattr(error, "cause", None) or error


def _cannot_import(error: BaseException) -> bool:
    return isinstance(_cause(error), ImportError)


def _in_words(error: BaseException) -> str:
    """In a line: Ray explains itself on many, and ends with the error where it shows a traceback."""
    if _cannot_import(error):
        return f"Engram cannot be imported there ({' '.join(str(_cause(error)).split()):.150}); install it"
    lines = [line.strip() for line in re.sub(r"\x1b\[\d*m", "", str(error)).splitlines() if line.strip()]
    said = lines[-1 if any("Traceback" in line or ' File "' in f" {line}" for line in lines) else 0] if lines else ""
    if type(error).__name__ in GONE:
        return GONE[type(error).__name__]
    return f"{type(error).__name__}: {said:.200}" if said else type(error).__name__
