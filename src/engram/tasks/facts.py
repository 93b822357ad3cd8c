"""Facts to recall: random ones (`Facts`), and your own from a CSV file (`OwnFacts`).

Answer sets of different relations are disjoint. The answers of relation r come after those of relation r−1.
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from math import isqrt
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field, model_validator

from engram.errors import EngramError
from engram.tasks.batch import Batch
from engram.tasks.book import MISSING, Bags, Book
from engram.tasks.table import Fact, mistakes_in, read_facts, told, too_few
from engram.values import BadValue, Value, build, generator

Count = Annotated[int, Field(ge=1, le=2**16)]
Power = Annotated[float, Field(ge=0, le=8)]
MOST_TABLE = 64 << 20  # bytes of a CSV file
MOST_PAIRS = 2**24  # of subjects and relations: a table of them takes a few hundred megabytes


class FactTask(Value):
    """Prompts of T tokens about the facts of a book.

    T        length of a prompt
    noise    tokens that mean nothing; None: as many as subjects and relations together
    """

    T: Annotated[int, Field(ge=4, le=2**20)] = 32
    noise: Count | None = None

    @abstractmethod
    def _book(self, seed: int) -> Book:
        """The facts of this task."""

    def book(self, seed: int) -> Book:
        return _kept(self, seed)  # type: ignore[arg-type]  # frozen, so it has a hash

    @property
    def N(self) -> int:
        return self.book(0).N

    @property
    def answers(self) -> int:
        return self.book(0).answers

    @property
    def groups(self) -> tuple[str, ...]:
        return ("answer", "other")

    def names_of(self, seed: int) -> dict[str, list[str]]:
        """Subjects, relations and answers by name: s0, s1, …, r0, …, a0, … where facts are drawn."""
        book = self.book(seed)
        sizes = {"subject": ("s", book.S), "relation": ("r", book.R), "answer": ("a", book.answers)}
        return {kind: [f"{letter}{i}" for i in range(n)] for kind, (letter, n) in sizes.items()}

    def marks(self, seed: int) -> list[str]:
        names, noise = self.names_of(seed), self.book(seed).noise
        return [*names["subject"], *names["relation"], *(f"·{i}" for i in range(noise)), "EOS"]

    def sample(self, seed: int, step: int, batch: int) -> Batch:
        return self.book(seed).sample(seed, step, batch)

    def bags(self, seed: int, steps: Sequence[int], batch: int) -> Bags:
        return self.book(seed).bags(seed, steps, batch)


@lru_cache(maxsize=16)
def _kept(task: FactTask, seed: int) -> Book:
    return task._book(seed)


class Facts(FactTask, name="tasks.facts.Facts"):
    """S subjects, R relations, D answers per relation, each fact drawn from the answers of its relation.

    S                 number of subjects
    R                 number of relations
    D                 number of answers of a relation
    dictionary        random: a*(s, r) uniform in A_r; structured: neighbouring subjects share an answer
    facts             how many of the S·R facts there are, chosen at random; None: all
    *_power           p(s, r) ∝ s^−power r^−power, counted from 1; 0 is uniform
    """

    S: Count = 16
    R: Count = 16
    D: Count = 8
    dictionary: Literal["random", "structured"] = "random"
    facts: Annotated[int, Field(ge=1)] | None = None
    subject_power: Power = 0.0
    relation_power: Power = 0.0

    @property
    def N(self) -> int:
        return self.S + self.R + (self.noise or self.S + self.R) + 1

    @property
    def answers(self) -> int:
        return self.R * self.D

    @model_validator(mode="after")
    def _facts_exist(self) -> "Facts":
        if self.S * self.R > MOST_PAIRS:
            raise ValueError(f"S: S·R must be at most {MOST_PAIRS}; got {self.S * self.R}")
        if self.facts is not None and self.facts > self.S * self.R:
            raise ValueError(f"facts: must be at most S·R = {self.S * self.R}; got {self.facts}")
        return self

    def _book(self, seed: int) -> Book:
        table = self._answers(seed) + self.D * np.arange(self.R)
        if self.facts is not None:
            left_out = generator(seed, "facts.known").permutation(table.size)[self.facts :]
            table.ravel()[left_out] = MISSING
        p = np.outer(_power_law(self.S, self.subject_power), _power_law(self.R, self.relation_power))
        p[table == MISSING] = 0
        return Book(table, p / p.sum(), self.R * self.D, self.noise or self.S + self.R, self.T)

    def _answers(self, seed: int) -> Int[np.ndarray, "S R"]:
        """Which of its relation's answers each fact has."""
        if self.dictionary == "random":
            return generator(seed, "facts.dictionary").integers(self.D, size=(self.S, self.R))
        return np.repeat(np.arange(self.S)[:, None] * self.D // self.S, self.R, axis=1)


class FactsOfSize(Value, name="tasks.facts.FactsOfSize"):
    """Facts in the number that a Search varies: n subjects and as many relations, unless `scaling` says otherwise.

    scaling    R=S: n subjects, n relations · R=√S: n subjects, ⌊√n⌋ relations · D=S: n subjects, n relations, n answers
               per relation · subset: n facts about S subjects and S relations
    D          number of answers of a relation
    T          length of a prompt
    S          number of subjects and of relations of a subset
    """

    scaling: Literal["R=S", "R=√S", "D=S", "subset"] = "R=S"
    D: Count = 8
    T: Annotated[int, Field(ge=4, le=2**20)] = 32
    S: Count | None = None

    @model_validator(mode="after")
    def _subset_of_some(self) -> "FactsOfSize":
        if (self.scaling == "subset") == (self.S is None):
            raise ValueError("S: is required for scaling='subset', and not allowed otherwise")
        return self

    def of(self, n: int) -> Facts:
        """The task of size n."""
        if self.scaling == "subset":
            assert self.S is not None
            return Facts(S=self.S, R=self.S, D=self.D, T=self.T, facts=n)
        R = isqrt(n) if self.scaling == "R=√S" else n
        return Facts(S=n, R=R, D=n if self.scaling == "D=S" else self.D, T=self.T)


def _power_law(n: int, power: float) -> Float[np.ndarray, " n"]:
    return np.arange(1, n + 1.0) ** -power


class OwnFacts(FactTask, name="tasks.facts.OwnFacts"):
    """Your own facts, (subject, relation, answer) by name, all equally frequent.

    facts    (subject, relation, answer), …
    D        most answers that a relation may have; None: as many as it has
    """

    facts: Annotated[tuple[Fact, ...], Field(min_length=1)]
    D: Count | None = None

    @classmethod
    def read(cls, path: str | Path, skip_bad: bool = False, **settings: int) -> "OwnFacts":
        """From a file with the columns subject, relation, answer; BadTable tells all that is wrong with it, by line.

        With skip_bad these lines are left out, and a warning says which.
        """
        try:
            return build(cls, {"facts": read_facts(Path(path), MOST_TABLE, skip_bad), **settings})
        except BadValue as error:
            raise EngramError(f"{path}: {error}") from None

    @model_validator(mode="after")
    def _make_sense(self) -> "OwnFacts":
        senseless = mistakes_in(self.facts, lambda i: f"row {i + 1}", self.D)
        if mistakes := [why for _, why in senseless] or too_few(self.facts):
            raise ValueError("; ".join(told(mistakes)))
        return self

    @property
    def names(self) -> dict[str, list[str]]:
        """Subjects, relations and answers in the order of their ids."""
        return self.names_of(0)

    def names_of(self, seed: int) -> dict[str, list[str]]:
        subjects, relations = (list(dict.fromkeys(fact[i] for fact in self.facts)) for i in (0, 1))
        of = {r: list(dict.fromkeys(a for _, relation, a in self.facts if relation == r)) for r in relations}
        return {"subject": subjects, "relation": relations, "answer": [a for r in relations for a in of[r]]}

    def _book(self, seed: int) -> Book:
        ids = {kind: {name: i for i, name in enumerate(names)} for kind, names in self.names.items()}
        S, R = len(ids["subject"]), len(ids["relation"])
        table = np.full((S, R), MISSING)
        for s, r, a in self.facts:
            table[ids["subject"][s], ids["relation"][r]] = ids["answer"][a]
        return Book(table, (table != MISSING) / len(self.facts), len(ids["answer"]), self.noise or S + R, self.T)
