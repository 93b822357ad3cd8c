"""The kinds of capacity search: which task, model and plan belong together, and how one size is tried.

A kind is one entry of KINDS. The validator of `Search` and what runs it read this table and nothing else.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any

import torch

from engram.errors import Interrupted
from engram.learning.fact_search import train_on_facts
from engram.learning.paths import STORE_PATHS, choose_fact_path, choose_store_path, no_path
from engram.learning.plan import FreshBatch, FullBatch
from engram.learning.planted_steps import learn_planted_token
from engram.learning.stores import Stop, write_store
from engram.models.factual import Factual
from engram.models.stores import Learner, OneHead, Written
from engram.tasks.association import Association, Problem
from engram.tasks.facts import FactsOfSize
from engram.tasks.planted import PlantedToken

Outcomes = list[dict[str, float]]
Trial = Callable[[Any, int, Sequence[int], str, Stop], Outcomes]  # (search, size, seeds, path, stop)


@dataclass(frozen=True)
class SearchKind:
    """What belongs together, and one trial: at a size, an outcome with its accuracy for each seed.

    choose_path    how it is computed: (wanted, model) → fast, reference or none
    rises          whether the larger size is the better one
    averages       whether a vote may average over several codebooks (Search.draws)
    refuse         what is wrong with a model, in words; None if nothing is
    """

    task: type
    model: type
    plan: type
    trial: Trial
    choose_path: Callable[[str, Any], str] = no_path
    rises: bool = False
    averages: bool = False
    refuse: Callable[[Any], str | None] = lambda model: None

    def fits(self, task: object, model: object, plan: object) -> bool:
        return isinstance(task, self.task) and isinstance(model, self.model) and isinstance(plan, self.plan)

    def __str__(self) -> str:
        plan = "no plan" if self.plan is NoneType else self.plan.__name__
        return f"{self.task.__name__}, {self.model.__name__} and {plan}"


def kind_of(task: object, model: object, plan: object) -> SearchKind:
    """The kind that these three make, or ValueError with what belongs together."""
    for kind in KINDS:
        if kind.fits(task, model, plan):
            return kind
    given = f"{type(task).__name__}, {type(model).__name__} and {type(plan).__name__ if plan else 'no plan'}"
    raise ValueError(f"task: no search takes {given}; these belong together: {'; '.join(map(str, KINDS))}")


def _try_planted(spec: Any, n: int, seeds: Sequence[int], path: str, stop: Stop) -> Outcomes:
    return [learn_planted_token(spec.task, n, seed, spec.model) for seed in _until(stop, seeds)]


def _try_facts(spec: Any, n: int, seeds: Sequence[int], path: str, stop: Stop) -> Outcomes:
    task = spec.task.of(n)
    model = spec.model.model_copy(update={"answers": task.answers})
    found = [train_on_facts(model, spec.plan, task, seed, spec.target, stop, path) for seed in seeds]
    return [{"accuracy": one.accuracy, "steps": one.steps, "rate": one.rate} for one in found]


def _try_written(spec: Any, n: int, seeds: Sequence[int], path: str, stop: Stop) -> Outcomes:
    problems = _problems(spec, n, seeds)
    found = [
        write_store(spec.model, problem, seed) for problem, seed in zip(problems, _until(stop, seeds), strict=True)
    ]
    return [{"accuracy": outcome.accuracy} for outcome in found]


def _try_trained(spec: Any, n: int, seeds: Sequence[int], path: str, stop: Stop) -> Outcomes:
    """All votes in one batched training."""
    parts = zip(*((p.X, p.U, p.f) for p in _problems(spec, n, seeds)), strict=True)
    found = STORE_PATHS[path](spec.model, spec.plan, Problem(*map(torch.cat, parts)), seeds, spec.target, stop)
    return [{"accuracy": outcome.accuracy, "steps": outcome.steps} for outcome in found]


def _problems(spec: Any, n: int, seeds: Sequence[int]) -> list[Problem]:
    return [spec.task.problem(n, spec.model.d, seed, spec.draws) for seed in seeds]


def _until(stop: Stop, seeds: Sequence[int]) -> Iterator[int]:
    for seed in seeds:
        if stop():
            raise Interrupted([])
        yield seed


def _answers_are_given(model: Factual) -> str | None:
    return None if model.answers is None else "model.answers: follows from the size that is searched; leave it out"


KINDS = (
    SearchKind(PlantedToken, OneHead, NoneType, _try_planted, rises=True),
    SearchKind(FactsOfSize, Factual, FreshBatch, _try_facts, choose_fact_path, refuse=_answers_are_given),
    SearchKind(Association, Written, NoneType, _try_written, averages=True),
    SearchKind(Association, Learner, FullBatch, _try_trained, choose_store_path),
)
