"""Spec: what to run. Frozen, JSON, its hash is its identity."""

import inspect
import re
from collections.abc import Sequence
from functools import reduce
from math import log, log1p, log2
from typing import Annotated, Any

from pydantic import Field, InstanceOf, model_validator

from engram.errors import EngramError, did_you_mean
from engram.learning import Plan
from engram.learning.searches import SearchKind, kind_of
from engram.models.trace import Architecture, Head
from engram.probes.probe import Probe, probes_by_name
from engram.specs.encode import TAGS, digest_of
from engram.specs.events import Event
from engram.tasks import Task
from engram.tasks.corpus import unread
from engram.tasks.facts import FactTask
from engram.values import LAWS, LawFunction, Value, law_named

Seed = Annotated[int, Field(ge=0, lt=2**63)]
NOUNS: dict[Any, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}


class Train(Value, name="records.spec.Train"):
    """One training of a model on a task, by a plan.

    task      what is learned: a class of engram.tasks, or your own
    model     what learns: a class of engram.models, or your own
    plan      how it is trained, and what is measured
    seed      of data and initial weights; --seeds sets it
    tests     by name, tasks on which it is tested but never trained
    events    interventions (engram.specs.events) in the order of their steps
    """

    task: InstanceOf[Task]
    model: InstanceOf[Architecture]
    plan: Plan
    seed: Seed = 0
    tests: dict[str, InstanceOf[Task]] = {}
    events: tuple[InstanceOf[Event], ...] = ()

    @model_validator(mode="after")
    def _parts_fit(self) -> "Train":
        for field, part in {"task": self.task, "model": self.model}.items():
            if not isinstance(part, Value):
                raise ValueError(f"{field}: {type(part).__name__} must be a frozen engram.Value to be stored")
        unsaid = "" if "loss" in self.plan.model_fields_set else ", which Plan(loss=…) has unless said"
        _known("plan.loss", self.plan.loss, (*self.task.groups, "all"), unsaid)
        for name, test in self.tests.items():
            if name in TAGS or not re.fullmatch(r"[A-Za-z0-9_-]+", name):
                raise ValueError(f"tests: {name!r} is not a name; use letters, digits, _, -, but not {', '.join(TAGS)}")
            self._check_size("tests", name, test)
            _known(f"tests.{name}", self.plan.loss, (*test.groups, "all"))
        for name in self.plan.trained:
            _known("plan.trained", name, self.model.names)
        self._check_stages()
        self._check_probes()
        answers = _answers(self.task)
        if getattr(self.model, "answers", None) != answers:
            given = getattr(self.model, "answers", "none")
            raise ValueError(f"model.answers: the task has {answers or 'no'} answers to choose from; got {given}")
        if isinstance(self.task, FactTask) and self.plan.loss != "answer":
            raise ValueError(f"plan.loss: a task of facts needs loss='answer'; got {self.plan.loss!r}")
        self._check_events()
        return self

    def _check_size(self, field: str, name: str, task: Task) -> None:
        """Whether the model can be shown another task than its own."""
        unknown = unread(self.task) or unread(task)  # a text that a record names is not read to look at the record
        if not isinstance(task, Value) or not (unknown or task.N == self.task.N) or task.T > self.task.T:
            size = "the same N" if unknown else f"N={self.task.N}"
            raise ValueError(f"{field}: {name!r} must be a frozen task with {size} and T ≤ {self.task.T}")

    def _check_stages(self) -> None:
        """Every stage has a task that this model can be trained on by this plan."""
        for i, stage in enumerate(self.plan.stages):
            if stage.task is not None:
                self._check_size(f"plan.stages.{i}", type(stage.task).__name__, stage.task)
                if (tuple(stage.task.groups), _answers(stage.task)) != (tuple(self.task.groups), _answers(self.task)):
                    same = f"the answers and groups of the Spec's: {', '.join(self.task.groups)}"
                    raise ValueError(f"plan.stages.{i}: its task must have {same}")

    def _check_probes(self) -> None:
        """Every probe of the plan suits the task and the model."""
        for name in self.plan.at_end:
            _known("plan.at_end", name, tuple(probes_by_name()))
            self._check_suits("plan.at_end", name, probes_by_name()[name]())
        for probe in self.plan.probes:
            name = type(probe).__name__
            if not isinstance(probe, Probe) or not probe.columns:
                raise ValueError(f"plan.probes: {name} must be a Probe that says how its columns begin")
            self._check_suits("plan.probes", name, probe)

    def _check_events(self) -> None:
        """Every event makes sense where it comes."""
        steps = [event.step for event in self.events]
        if steps != sorted(steps):
            raise ValueError(f"events: they come in the order of their steps; got steps {', '.join(map(str, steps))}")
        stages = {step: self._in_stage(step) for step in (0, *(stage.step for stage in self.plan.stages))}
        heads = frozenset[Head]()
        for i, event in enumerate(self.events):
            if event.step > self.steps:
                raise ValueError(f"events.{i}: at: step {event.step} is beyond the end, {self.steps}")
            begun = max(step for step in stages if step <= event.step)
            try:
                event.refuse(stages[begun], heads)
                stages |= {step: event.steer(now) for step, now in stages.items() if step >= begun}
                heads = event.silence(heads)
                _ = event.sentence  # what cannot be told is refused, too
            except (EngramError, ValueError) as error:
                raise ValueError(f"events.{i}: {error}") from None

    def _check_suits(self, field: str, name: str, probe: Probe) -> None:
        for task in (self.task, *(stage.task for stage in self.plan.stages if stage.task is not None)):
            missing = probe.missing(task, self.model)
            if missing is not None:
                raise ValueError(f"{field}: {name!r} needs {missing}")

    @property
    def without_events(self) -> "Train":
        return self.model_copy(update={"events": ()})

    def at(self, step: int) -> "Train":
        """What is trained at this step: the Spec in its stage with the changes up to it, without stages and events."""
        done = (event for event in self.events if event.step <= step)
        return reduce(lambda now, event: event.steer(now), done, self._in_stage(step))

    def _in_stage(self, step: int) -> "Train":
        task = self.plan.stage_at(step).task or self.task
        return self.model_copy(update={"task": task, "plan": self.plan.at(step), "events": ()})

    def silent(self, step: int) -> frozenset[Head]:
        """The heads that are ablated at this step."""
        done = (event for event in self.events if event.step <= step)
        return reduce(lambda heads, event: event.silence(heads), done, frozenset[Head]())

    @property
    def steps(self) -> int:
        return self.plan.steps

    @property
    def title(self) -> str:
        return f"{type(self.task).__name__}-{type(self.model).__name__}".lower()


class Check(Value, name="records.spec.Check"):
    """A measurement without training: the rows of law(draws=…, seed=…, **sizes).

    law      the name of a function marked with @law (engram.values)
    sizes    its other arguments, of the types in its signature
    draws    the size of the measurement, as the law's docstring says: problems, sequences, points in time
    seed     of all that is drawn; --seeds sets it
    """

    law: str
    sizes: dict[str, Any] = {}
    draws: Annotated[int, Field(ge=1)] = 1
    seed: Seed = 0

    @model_validator(mode="after")
    def _law_exists(self) -> "Check":
        allowed = dict(inspect.signature(self.function).parameters)
        del allowed["draws"], allowed["seed"]
        for name, size in self.sizes.items():
            _known("sizes", name, tuple(allowed))
            wanted = allowed[name].annotation
            if type(size) is not wanted and not (wanted is float and type(size) is int):
                raise ValueError(f"sizes.{name}: {self.law} needs {NOUNS[wanted]}; got {size!r}")
        for name, parameter in allowed.items():
            if parameter.default is parameter.empty and name not in self.sizes:
                raise ValueError(f"sizes: {self.law} needs {name}")
        return self

    @property
    def function(self) -> LawFunction:
        """The function of this name."""
        found = law_named(self.law)
        if found is None:
            hint = did_you_mean(self.law, LAWS)
            raise ValueError(f"law: no law is called {self.law!r}; {hint}see engram.values.LAWS")
        return found

    @property
    def steps(self) -> int:
        return self.draws

    @property
    def title(self) -> str:
        return f"check-{self.law}"


class Search(Value, name="records.spec.Search"):
    """How much a memory holds: the size n at which its accuracy falls to `target`, by bisection.

    With PlantedToken and OneHead, the width at which accuracy rises to the target; with FactsOfSize and Factual, the
    size that the task's scaling names. engram.learning.searches.KINDS lists which tasks, models and plans go together.

    task         what is stored, in the number that is searched
    model        the memory that stores it
    plan         how the memory is trained; None if it is written by a formula
    target       the accuracy that a size must exceed
    bracket      the sizes between which the search starts; it is widened where the answer lies outside
    tolerance    the search ends when the sizes that passed and failed differ by this share, or by one
    votes        codebooks (seeds) tried at each size; the majority decides
    draws        codebooks that each vote averages over (written memories only)
    seed         of all that is drawn; --seeds sets it
    """

    task: InstanceOf[Value]
    model: InstanceOf[Value]
    plan: InstanceOf[Value] | None = None
    target: Annotated[float, Field(gt=0, lt=1)] = 0.99
    bracket: tuple[Annotated[int, Field(ge=1, lt=2**31)], Annotated[int, Field(ge=2, lt=2**31)]]
    tolerance: Annotated[float, Field(ge=0)] = 0.01
    votes: Annotated[int, Field(ge=1)] = 1
    draws: Annotated[int, Field(ge=1)] = 1
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0

    @model_validator(mode="after")
    def _parts_fit(self) -> "Search":
        low, high = self.bracket
        if low >= high:
            raise ValueError(f"bracket: its first size must be the smaller one; got {low}, {high}")
        wrong = self.kind.refuse(self.model)
        if wrong is not None:
            raise ValueError(wrong)
        if self.draws > 1 and not self.kind.averages:
            raise ValueError("draws: a training has one codebook; set more votes instead")
        return self

    @property
    def kind(self) -> SearchKind:
        """The kind of search that task, model and plan make."""
        return kind_of(self.task, self.model, self.plan)

    @property
    def rises(self) -> bool:
        """Whether the larger size is the better one."""
        return self.kind.rises

    def passed(self, accuracies: Sequence[float]) -> bool:
        """Whether most votes at a size are above the target."""
        return 2 * sum(accuracy > self.target for accuracy in accuracies) > len(accuracies)

    @property
    def steps(self) -> int:
        """About how many rows there will be."""
        low, high = self.bracket
        halvings = log2(max(2.0, log(high / low) / log1p(max(self.tolerance, 1 / low))))
        return self.votes * (2 + round(halvings))

    @property
    def title(self) -> str:
        names = ("N", "T") if self.rises else ("d", "m")
        parts = {name: getattr(self.task if self.rises else self.model, name, None) for name in names}
        sizes = "".join(f"-{name}{size}" for name, size in parts.items() if size is not None)
        return f"search-{type(self.model).__name__}{sizes}".lower()


Spec = Train | Check | Search


def _answers(task: Task) -> int | None:
    return task.answers if isinstance(task, FactTask) else None


def _known(field: str, given: str, allowed: tuple[str, ...], why: str = "") -> None:
    if given not in allowed:
        hint = did_you_mean(given, allowed)
        raise ValueError(f"{field}: unknown {given!r}{why}; {hint}allowed: {', '.join(allowed)}")


def run_id(spec: Spec) -> str:
    """A readable name that ends in the first ten digits of the hash."""
    return f"{spec.title}-s{spec.seed}-{digest_of(spec)[:10]}"
