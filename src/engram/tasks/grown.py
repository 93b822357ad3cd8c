"""A table of facts that has grown: a model cannot have more tokens, so new subjects are tokens that were noise.

E and U have a row for each token and for each answer. A fact that joins a training therefore has a known relation and
one of its answers, and a subject that is known, or that takes the place of a noise token: for the model, a word that
meant nothing comes to mean something.
"""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from jaxtyping import Int
from pydantic import Field, InstanceOf

from engram.errors import did_you_mean
from engram.tasks.book import MISSING, Book
from engram.tasks.facts import Facts, FactTask
from engram.tasks.table import Fact
from engram.values import generator

Names = dict[str, list[str]]
MOST_ADDED = 4096


class GrownFacts(FactTask, name="tasks.grown.GrownFacts"):
    """The facts of another task and some more by name, each as frequent as the mean of the others.

    base     the task whose facts there were; it says T and noise, which are the same here
    added    (subject, relation, answer), …; a known question with another answer takes the place of the old one
    """

    base: InstanceOf[FactTask]
    added: Annotated[tuple[Fact, ...], Field(min_length=1, max_length=MOST_ADDED)]

    @property
    def N(self) -> int:
        return self.base.N

    @property
    def answers(self) -> int:
        return self.base.answers

    def names_of(self, seed: int) -> Names:
        known = self.base.names_of(seed)
        more = dict.fromkeys(s for s, _, _ in self.added if s not in known["subject"])
        return known | {"subject": [*known["subject"], *more]}

    def marks(self, seed: int) -> list[str]:
        """By the token that a model sees."""
        book, found = self.book(seed), [""] * self.N
        for token, mark in zip(book.wired(np.arange(book.N)), super().marks(seed), strict=True):
            found[token] = mark
        return found

    def _book(self, seed: int) -> Book:
        old, names = self.base.book(seed), self.names_of(seed)
        new = len(names["subject"]) - old.S
        more = ((0, new), (0, 0))
        table, p = np.pad(old.table, more, constant_values=MISSING), np.pad(old.p, more)
        mean = old.p.sum() / len(old.known)
        for fact in self.added:
            s, r, a = (names[kind].index(name) for kind, name in zip(names, fact, strict=True))
            table[s, r], p[s, r] = a, p[s, r] or mean
        return Book(table, p / p.sum(), old.answers, old.noise - new, old.T, _wire(old, new))


def _wire(old: Book, new: int) -> Int[np.ndarray, " N"]:
    """Ids are subjects, relations, noise, EOS: new subjects are seen as the last tokens of the noise."""
    first_noise = old.S + old.R
    last = np.arange(old.N - 1 - new, old.N - 1)[
        ::-1
    ]  # the first new subject takes the last one: later ones move nothing
    kept = [np.arange(old.S), last, np.arange(old.S, first_noise), np.arange(first_noise, old.N - 1 - new), [old.N - 1]]
    return old.wired(np.concatenate(kept).astype(np.int64))


def grown(task: FactTask, facts: Sequence[Fact]) -> GrownFacts:
    """The task with more facts; those that had joined before stay, and of two answers the later one counts."""
    base, before = (task.base, task.added) if isinstance(task, GrownFacts) else (task, ())
    questions = {(s, r): (s, r, a) for s, r, a in (*before, *facts)}
    return GrownFacts(base=base, added=tuple(questions.values()), T=task.T, noise=task.noise)


def refuse_added(task: FactTask, facts: Sequence[Fact], seed: int) -> None:
    """ValueError, in words, if these facts cannot join the task."""
    names, book, asked = task.names_of(seed), task.book(seed), set[tuple[str, str]]()
    for fact in facts:
        s, r, a = (name.strip() for name in fact)
        if not (s and r and a):
            raise ValueError(f"facts: ({', '.join(fact)}) lacks its subject, relation or answer")
        for kind, name in (("relation", r), ("answer", a)):
            _refuse_unknown(kind, name, names[kind])
        _refuse_answer(task, book, names, (s, r, a))
        if (s, r) in asked:
            raise ValueError(f"facts: ({s}, {r}) comes twice")
        asked.add((s, r))
    room, new = book.noise - 1, len({s for s, _, _ in facts} - set(names["subject"]))
    if new > room:
        raise ValueError(
            f"facts: {new} new subjects do not fit: each takes the place of a noise token, and {room} are to spare"
        )


def _refuse_unknown(kind: str, name: str, known: list[str]) -> None:
    if name not in known:
        shown = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
        raise ValueError(
            f"facts: unknown {kind} {name!r:.60}; {did_you_mean(name, known)}the model has no row for another one; "
            f"allowed: {shown}"
        )


def _refuse_answer(task: FactTask, book: Book, names: Names, fact: Fact) -> None:
    """Answer sets of relations are disjoint; what is in the table already is not new."""
    s, r, answer = fact
    relation, a = names["relation"].index(r), names["answer"].index(answer)
    if a not in answers_to(task, book, relation):
        raise ValueError(f"facts: {answer!r:.60} is not an answer of {r!r:.60}; relations may not share answers")
    if s in names["subject"] and book.table[names["subject"].index(s), relation] == a:
        raise ValueError(f"facts: ({s}, {r}) is {answer} already")


def answers_to(task: FactTask, book: Book, r: int) -> Int[np.ndarray, " D"]:
    """The answers that a relation may have: those that its facts have; of drawn facts, all D."""
    base = task.base if isinstance(task, GrownFacts) else task
    if isinstance(base, Facts):
        return base.D * r + np.arange(base.D)
    column = book.table[:, r]
    return np.unique(column[column != MISSING])


def drawn_facts(task: FactTask, seed: int, number: int) -> tuple[Fact, ...]:
    """So many facts that are not among those of the task: questions about known subjects first, then new subjects.

    Of drawn facts (Facts), those that had been left out come with their own answers; other answers are drawn.
    """
    names, book = task.names_of(seed), task.book(seed)
    rng = generator(seed, "facts.added", len(book.known))
    missing = np.argwhere(book.table == MISSING)
    chosen = [(int(s), int(r)) for s, r in rng.permutation(missing)[:number]]
    chosen += [(book.S + i // book.R, i % book.R) for i in range(number - len(chosen))]
    subjects = [*names["subject"], *_new_names(names["subject"], max(s for s, _ in chosen) + 1 - book.S)]
    whole = _whole_table(task, seed)
    found = []
    for s, r in chosen:
        known = whole is not None and s < len(whole)
        a = int(whole[s, r] if known else rng.choice(answers_to(task, book, r)))  # type: ignore[index]
        found.append((subjects[s], names["relation"][r], names["answer"][a]))
    return tuple(found)


def _whole_table(task: FactTask, seed: int) -> Int[np.ndarray, "S R"] | None:
    base = task.base if isinstance(task, GrownFacts) else task
    return base.model_copy(update={"facts": None}).book(seed).table if isinstance(base, Facts) else None


def _new_names(known: list[str], number: int) -> list[str]:
    """new1, new2, …, as far as they are free."""
    free = (f"new{i}" for i in range(1, len(known) + number + 1))
    return [name for name in free if name not in known][: max(0, number)]
