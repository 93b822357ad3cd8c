"""The facts bench: all facts of a run as its model believes them, one rewritten, and facts that join the training.

Numbers are those of `engram fact see` and `engram fact edit`. One thread works here, so that nothing needs a lock.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from engram.errors import EngramError
from engram.facts.ask import Asked
from engram.facts.bench import Bench, Measured
from engram.facts.edit import Editable, FactEdit, edit
from engram.lab.fact_messages import AddFacts, FactEdits, FactTable, FactWrite
from engram.lab.fact_words import columns_of, edit_in_words
from engram.lab.mailbox import Order
from engram.lab.run_reader import RunReader
from engram.lab.watched_run import Cache, WatchedRun
from engram.models import Weights
from engram.probes.facts import RULE
from engram.records.weights import initial_weights
from engram.tasks.book import Book
from engram.tasks.facts import FactTask
from engram.tasks.grown import drawn_facts

MOST_RUNS, MOST_TABLES, MOST_EDITS = 8, 32, 8


class RunFacts:
    """The facts of one run. The table is that of its last step: facts that join it are followed from the beginning."""

    def __init__(self, run: WatchedRun):
        self.run = run
        spec = run.spec
        task = spec.at(spec.steps).task
        if not isinstance(task, FactTask):
            raise EngramError(f"facts: run {run.id} is about {type(task).__name__}, not about facts")
        self.task: FactTask = task
        self.book: Book = task.book(spec.seed)
        self.names = task.names_of(spec.seed)
        self.bench = Bench(spec.model, self.book, spec.seed)
        self._tables = Cache()
        self._right: dict[int, np.ndarray] = {}  # by stored step
        self._first: Weights = initial_weights(spec)

    def table(self, step: int) -> list[Measured]:
        return self._tables.get_or(
            step, lambda: self.bench.measured(self.run.model(step).weights, self._first), most=MOST_TABLES
        )

    def look_back(self, seconds: float) -> int:
        """Which facts were right at stored steps, as far as the time goes; how many steps are left."""
        end, stored = time.monotonic() + seconds, list(self.run.stored)
        left = [step for step in _halving(stored) if step not in self._right]
        while left and time.monotonic() < end:
            step = left.pop(0)
            self._right[step] = self.bench.right(self.run.model(step).weights)
        return len(left)

    def learned(self) -> list[list[int | None] | None]:
        """By fact [a, b]: at b and at all known steps after it the fact was right, at a, the one before, it was not.

        a is None where it was right from the first; None: it is not right at the last step.
        """
        steps = sorted(self._right)
        if not steps:
            return [None] * len(self.book.known)
        right = np.stack([self._right[step] for step in steps])
        since = len(steps) - np.logical_and.accumulate(right[::-1]).sum(0)
        return [None if i == len(steps) else [steps[i - 1] if i else None, steps[i]] for i in since.tolist()]

    def frequency(self, step: int) -> np.ndarray:
        """How often each fact is asked for at this step; 0 before it joins."""
        now = self.run.spec.at(step).task
        assert isinstance(now, FactTask)
        p, (s, r, _) = now.book(self.run.spec.seed).p, self.book.known.T
        return np.where(s < len(p), p[np.minimum(s, len(p) - 1), r], 0.0)


def _halving(steps: list[int]) -> Iterator[int]:
    """The last, the first, then what lies between: bounds tighten evenly."""
    done = [len(steps) - 1, 0] if steps else []
    yield from (steps[i] for i in dict.fromkeys(done))
    gaps = [(0, len(steps) - 1)]
    for low, high in gaps:
        middle = (low + high) // 2
        if low < middle < high:
            yield steps[middle]
            gaps += [(low, middle), (middle, high)]


class FactReader:
    """Answers about the facts of the runs of a home."""

    def __init__(self, home: Path, computed: Callable[[str], dict[int, Weights]] = lambda run: {}):
        self._reader = RunReader(home, computed)
        self._known, self._edits = Cache(), Cache()

    def of(self, name: str) -> RunFacts:
        run = self._reader.seen(name)
        return self._known.get_or(name, lambda: RunFacts(run), most=MOST_RUNS)

    def answer(self, asked: FactTable | FactEdits) -> dict[str, Any]:
        return self.table(asked) if isinstance(asked, FactTable) else self.edit(asked)

    def order(self, asked: FactWrite | AddFacts) -> Order:
        return self.write(asked) if isinstance(asked, FactWrite) else self.add(asked)

    def table(self, asked: FactTable) -> dict[str, Any]:
        began, facts = time.monotonic(), self.of(asked.run)
        step = facts.run.stored_step(asked.step)
        rows, pending = facts.table(step), facts.look_back(asked.look_back)
        model = facts.run.spec.model
        told = {"t": "facts", "id": asked.id, "run": asked.run, "step": step, "pending": pending, "rule": RULE}
        told |= {"editable": isinstance(model, Editable), "model": type(model).__name__, "spare": facts.book.noise - 1}
        told |= columns_of(rows, facts.names, facts.book, facts.frequency(step), facts.learned())
        return told | {"seconds": round(time.monotonic() - began, 3)}

    def _edited(self, asked: FactEdits | FactWrite) -> tuple[Asked, int, FactEdit]:
        """At the last step that is stored up to the one that is looked at."""
        facts = self.of(asked.run)
        steps = [step for step in facts.run.stored if asked.step is None or step <= asked.step]
        if not steps:
            raise EngramError(f"step: run {asked.run} has no weights stored up to this step")
        about = Asked.of(facts.run.record, asked.subject, asked.relation)
        key = (asked.run, steps[-1], asked.subject, asked.relation, asked.answer)
        done = self._edits.get_or(key, lambda: edit(about, asked.answer, steps[-1]), most=MOST_EDITS)
        return about, steps[-1], done

    def edit(self, asked: FactEdits) -> dict[str, Any]:
        """What a rewrite would do; nothing is written."""
        began = time.monotonic()
        about, step, done = self._edited(asked)
        told = {"t": "fact_edit", "id": asked.id, "run": asked.run, "step": step, "answer": asked.answer}
        told |= {"subject": asked.subject, "relation": asked.relation, "right": about.answer}
        return told | edit_in_words(done, about.names) | {"seconds": round(time.monotonic() - began, 3)}

    def write(self, asked: FactWrite) -> Order:
        """The rewrite as an intervention."""
        _, step, done = self._edited(asked)
        fields = done.change.model_dump(exclude={"step"})
        return {"op": "intervene", "run": asked.run, "at": step, "kind": "rewrite", "fields": fields}

    def add(self, asked: AddFacts) -> Order:
        """Facts that join the training, as an intervention; those that are drawn are named in it."""
        facts = self.of(asked.run)
        spec = facts.run.spec
        if bool(asked.facts) == bool(asked.draw):
            raise EngramError("facts: say facts, or how many are to be drawn, and not both")
        before = spec.at(spec.steps if asked.at is None else asked.at).task
        assert isinstance(before, FactTask)
        chosen = asked.facts or drawn_facts(before, spec.seed, asked.draw)
        return {"op": "intervene", "run": asked.run, "at": asked.at, "kind": "addfacts", "fields": {"facts": chosen}}
