"""The queue: every experiment on its registered seeds, the cheapest first, until nothing is left.

It keeps no list of what is done: the records say it. So it goes on wherever it was killed, and on any machine.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import Any

from filelock import FileLock, Timeout

from engram.claims.experiment import Experiment, Scale
from engram.claims.ledger import Index
from engram.claims.registration import forms_at, registration
from engram.engines import OnRow
from engram.engines.ahead import seconds_so_far
from engram.engines.local import Local, cores
from engram.errors import EngramError, explain_crash
from engram.records import Record, files
from engram.records.bundle import add_to_bundle
from engram.records.index import being_written
from engram.registered import in_force
from engram.specs import Spec
from engram.specs.spec import run_id

Say = Callable[[str], None]
LOCK, RAISED = "queue.lock", "queue.json"
PATIENCE = 60.0  # seconds for workers of a queue that was killed: they finish their step and save
SECONDS_BETWEEN_LINES, SECONDS_BETWEEN_LOOKS = 60.0, 2.0
STATES = ("done", "running", "left", "failed")


@dataclass(frozen=True)
class Job:
    """One seed of an experiment: its Specs by their ids."""

    experiment: Experiment
    scale: Scale
    seed: int
    specs: dict[str, Spec]

    @property
    def name(self) -> tuple[str, Scale]:
        return self.experiment.name, self.scale

    def seconds_of(self, id: str) -> float:
        """Of one core, as far as is known; what all seeds share is not part of a seed."""
        own = sum(spec.seed == self.seed for spec in self.specs.values()) or len(self.specs)
        return self.experiment.seconds_of(self.specs[id], self.scale, own)


def seeds_of(experiment: Experiment, scale: Scale) -> Sequence[int]:
    """The fixed seeds under which the claims of an experiment are registered; smoke decides nothing and needs none."""
    smoke = range(experiment.least_seeds(scale)) if scale == "smoke" else ()
    return experiment.registered_seeds(scale) or smoke


def jobs_of(experiment: Experiment, scale: Scale) -> list[Job]:
    """A job for each registered seed."""
    specs = {seed: experiment.specs(scale, [seed]) for seed in seeds_of(experiment, scale)}
    return [Job(experiment, scale, seed, {run_id(spec): spec for spec in own}) for seed, own in specs.items()]


def in_order(experiments: Iterable[Experiment], scales: Sequence[Scale]) -> Iterator[tuple[Experiment, Scale]]:
    """Scale by scale, the cheapest first."""
    known = sorted(experiments, key=lambda experiment: experiment.name)
    for scale in scales:
        minutes = {one.name: one.minutes(scale) for one in known}
        for experiment in sorted(known, key=lambda one, minutes=minutes: minutes[one.name]):
            yield experiment, scale


def planned(
    experiments: Iterable[Experiment], scales: Sequence[Scale], below_minutes: float
) -> tuple[list[Job], list[dict[str, Any]]]:
    """The jobs in their order, and what is left out: where a seed takes so long or longer, or nothing is registered."""
    jobs, left_out = list[Job](), list[dict[str, Any]]()
    for experiment, scale in in_order(experiments, scales):
        same, minutes = jobs_of(experiment, scale), experiment.minutes(scale)
        why = f"a seed takes {minutes:.0f} min" if minutes >= below_minutes else unregistered(experiment, scale, same)
        jobs += [] if why else same
        left_out += [{"experiment": experiment.name, "scale": scale, "why": why}] if why else []
    return jobs, left_out


def unregistered(experiment: Experiment, scale: Scale, jobs: Sequence[Job]) -> str | None:
    """Why records made now would not count as made under the registration, and would spoil fresh seeds."""
    form = registration().get(experiment.name)
    if scale == "smoke":
        return None
    if form is None or not jobs:
        return "not registered"
    now, known = form.forms(scale, {id for job in jobs for id in job.specs}), forms_at(in_force()["file"])
    same = all(known.get(claim, {}).get(scale) == digest for claim, digest in now.items())
    return None if same else "not registered in its present form: engram register"


@dataclass(frozen=True)
class Queue:
    """Jobs in their order. Runs are kept in the first of the homes; a record in any of them counts."""

    jobs: Sequence[Job]
    homes: Sequence[Path]

    @property
    def home(self) -> Path:
        return self.homes[0]

    @cached_property
    def owners(self) -> dict[str, Job]:
        """Each Spec once, with the first job that has it: experiments share some."""
        return {id: job for job in reversed(self.jobs) for id in reversed(job.specs)}

    def look(self) -> "Look":
        """What every Spec has come to."""
        index, raised = Index.of(self.homes), self._raised()
        damaged = {broken.record: broken.why for broken in index.unreadable if self._has_ended(broken.record)}
        return Look(self, {id: self._state(id, index, raised | damaged) for job in self.jobs for id in job.specs})

    def _has_ended(self, id: str) -> bool:
        return (self.home / id / "digest.json").exists()

    def _state(self, id: str, index: Index, wrong: Mapping[str, str]) -> tuple[str, str]:
        """Its state, and why it failed."""
        found = index.found.get(id)
        if found is not None and not found.stale:
            return ("done", "") if found.finished else ("failed", str(found.line.end))
        if being_written(Record(self.home / id)):
            return "running", ""
        return ("failed", wrong[id]) if id in wrong else ("left", "")

    def _raised(self) -> dict[str, str]:
        """Runs that ended in an error, which is in no record; the next sitting tries them again."""
        path = self.home / RAISED
        try:
            return dict(json.loads(path.read_bytes())) if path.exists() else {}
        except (ValueError, TypeError):
            raise EngramError(f"{path} cannot be read; remove it: what fails again is listed again") from None

    def is_running(self) -> bool:
        return files.is_held(self.home / LOCK, patience=0.1)

    def run(self, say: Say) -> None:
        """Runs what is left, one worker for each core, until nothing is; what fails is noted and does not stop it."""
        with self._only_one():
            files.write_json(self.home / RAISED, {})
            look = self._after_others(PATIENCE)
            while left := look.ids("left"):
                say(look.summary)
                specs = [self.owners[id].specs[id] for id in left]
                Local(self.home, threads=1, on_failure=self._note(say)).run(specs, self._progress(specs, say))
                look = self._after_others(0.0)
                if look.ids("left") == left:
                    raise EngramError(f"nothing came of {left[0]} and all that follows; `engram runs show` may say why")

    @contextmanager
    def _only_one(self) -> Iterator[None]:
        with files.writing_to(self.home):
            files.make_folder(self.home)
        try:
            with FileLock(self.home / LOCK, timeout=1, poll_interval=0.01):  # a look at the state holds it briefly
                yield
        except Timeout:
            raise EngramError(f"a queue is running in {self.home}; `engram queue state` says how far it is") from None

    def _after_others(self, patience: float) -> "Look":
        """What is left once nothing is written by others, or their time is over while there is other work to do."""
        limit, look = time.monotonic() + patience, self.look()
        while look.ids("running") and (time.monotonic() < limit or not look.ids("left")):
            time.sleep(SECONDS_BETWEEN_LOOKS)
            look = self.look()
        return look

    def _note(self, say: Say) -> Callable[[str, Exception], None]:
        def note(id: str, error: Exception) -> None:
            if not being_written(Record(self.home / id)):  # else another command runs it: nothing is wrong with it
                why = explain_crash(error)
                files.write_json(self.home / RAISED, self._raised() | {id: why})
                with suppress(OSError):
                    say(f"failed: {id}: {why}")

        return note

    def _progress(self, specs: Sequence[Spec], say: Say) -> OnRow:
        spoke = [time.monotonic()]

        def see(spec: Spec, row: files.Row) -> None:
            if time.monotonic() - spoke[0] > SECONDS_BETWEEN_LINES:
                spoke[0], job = time.monotonic(), self.owners[run_id(spec)]
                over = sum(self._has_ended(run_id(one)) for one in specs)
                with suppress(OSError):  # the terminal may be gone
                    say(f"{over} of {len(specs)} runs over; {' '.join(job.name)}, seed {job.seed}")

        return see

    def pack(self, into: Path) -> dict[str, int]:
        """Adds what is finished in the home to a bundle for each experiment and scale; returns how many to which."""
        known, own, new = Index.of([into]).found, Index.of([self.home]).found, dict[str, list[Record]]()
        for job in self.jobs:
            for id in (id for id in job.specs if self.owners[id] is job and id in own):
                there = id in known and not known[id].stale
                if own[id].finished and not own[id].stale and not there:
                    new.setdefault(f"{'-'.join(job.name)}.zip", []).append(own[id].record)
        for name, records in new.items():
            add_to_bundle(records, into / name)
        return {name: len(records) for name, records in new.items()}


@dataclass(frozen=True)
class Look:
    """What had come of each Spec when it was looked at: its state, and why it failed."""

    queue: Queue
    states: Mapping[str, tuple[str, str]]

    def ids(self, state: str) -> list[str]:
        return [id for id, (found, _) in self.states.items() if found == state]

    @cached_property
    def seconds_left(self) -> dict[str, float]:
        """Of one core, by Spec: what the same Spec took on other seeds, if it is known, else what the file says."""
        home, took = self.queue.home, dict[Any, list[float]]()
        unfinished = {*self.ids("left"), *self.ids("running")}
        for job in self.queue.jobs:
            for place, id in enumerate(job.specs):
                if self.states[id][0] == "done" and (seconds := seconds_so_far(home / id)):
                    took.setdefault((job.name, place), []).append(seconds)
        return {
            id: max(0.0, mean(took.get((job.name, place), [job.seconds_of(id)])) - seconds_so_far(home / id))
            for job in reversed(self.queue.jobs)
            for place, id in enumerate(job.specs)
            if id in unfinished
        }

    def _counts(self, ids: Iterable[str]) -> dict[str, Any]:
        chosen = list(ids)
        counts = {state: sum(self.states[id][0] == state for id in chosen) for state in STATES}
        seconds = sum(self.seconds_left.get(id, 0.0) for id in chosen)
        return counts | {"hours": round(seconds / cores() / 3600, 2)}

    def to_json(self) -> dict[str, Any]:
        """By experiment and scale, and in all; what experiments share counts in each of them, and once in all."""
        by_name = dict[tuple[str, Scale], dict[int, Job]]()
        for job in self.queue.jobs:
            by_name.setdefault(job.name, {})[job.seed] = job
        rows = [
            {"experiment": name, "scale": scale, "seeds": len(same)}
            | self._counts(dict.fromkeys(id for job in same.values() for id in job.specs))
            for (name, scale), same in by_name.items()
        ]
        failed = [{"run": id, "why": why} for id, (state, why) in self.states.items() if state == "failed"]
        return {"queue": rows, "total": self._counts(self.states), "failed": failed}

    @property
    def summary(self) -> str:
        told = self._counts(self.states)
        states = ", ".join(f"{told[state]} {state}" for state in STATES)
        return f"{len(self.states)} runs: {states}; about {told['hours']:.1f} hours left on {cores()} cores"
