"""Stages of one fact: named against what is likely without any knowledge, and by the answer that is given."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.probes.facts import Belief, Chance, shared_out
from engram.tasks.facts import OwnFacts

COUNTRIES = OwnFacts(
    facts=tuple(
        fact
        for name, capital, money in (
            ("France", "Paris", "euro"), ("Italy", "Rome", "euro"), ("Spain", "Madrid", "euro"),
            ("Japan", "Tokyo", "yen"), ("Peru", "Lima", "sol"), ("India", "Delhi", "rupee"),
        )
        for fact in ((name, "capital", capital), (name, "currency", money))
    )
)  # fmt: skip


def stage(probabilities: np.ndarray, subject: str, relation: str, task: OwnFacts = COUNTRIES) -> str:
    names, book = task.names, task.book(0)
    s, r = names["subject"].index(subject), names["relation"].index(relation)
    return shared_out(torch.from_numpy(probabilities), book, s, r).words


def said_by(token: str, task: OwnFacts = COUNTRIES) -> np.ndarray:
    return task.book(0).said[task.marks(0).index(token)]


def mixed(*parts: tuple[float, np.ndarray]) -> np.ndarray:
    return np.sum([weight * part for weight, part in parts], axis=0)


def test_half_of_all_answers_are_capitals_and_that_is_no_idea() -> None:
    """Six of ten answers are capitals: a model that guesses blindly says one more often than not."""
    uniform = np.full(10, 0.1)
    assert stage(uniform, "France", "capital") == "no idea"
    assert stage(uniform, "France", "currency") == "no idea"
    assert stage(mixed((0.9, uniform), (0.1, said_by("capital"))), "France", "capital") == "no idea"


def test_the_stages_of_a_capital() -> None:
    certain = np.eye(10)[COUNTRIES.names["answer"].index("Paris")]
    other = np.eye(10)[COUNTRIES.names["answer"].index("Rome")]
    of_relation = said_by("capital")
    assert stage(mixed((0.9, of_relation), (0.1, other)), "France", "capital") == "right relation, wrong subject"
    assert stage(mixed((0.8, of_relation), (0.2, certain)), "France", "capital") == "right relation, unsure"
    assert stage(certain, "France", "capital") == "right"
    assert stage(other, "France", "capital") == "right relation, wrong subject"
    assert stage(np.eye(10)[COUNTRIES.names["answer"].index("euro")], "France", "capital") == "no idea"


def test_the_commonest_answer_is_not_known_only_because_it_is_common() -> None:
    """Half of the currencies are euro: who knows the relation alone says euro of France, and half believes it."""
    of_relation, certain = said_by("currency"), np.eye(10)[COUNTRIES.names["answer"].index("euro")]
    assert stage(of_relation, "France", "currency") == "right relation, unsure"
    assert stage(mixed((0.8, of_relation), (0.2, certain)), "France", "currency") == "right relation, unsure"
    assert stage(mixed((0.2, of_relation), (0.8, certain)), "France", "currency") == "right"
    assert stage(of_relation, "Peru", "currency") == "right relation, wrong subject"


def test_with_one_relation_there_is_no_relation_to_learn() -> None:
    task = OwnFacts(facts=(("a", "is", "x"), ("b", "is", "y"), ("c", "is", "y")))
    assert stage(np.array([0.5, 0.5]), "a", "is", task) == "no idea"
    assert stage(np.array([0.1, 0.9]), "a", "is", task) == "no idea"
    assert stage(np.array([0.9, 0.1]), "a", "is", task) == "right"


def test_a_relation_with_one_answer_is_known_with_its_relation() -> None:
    task = OwnFacts(facts=(("a", "is", "x"), ("b", "is", "x"), ("a", "has", "u"), ("b", "has", "v")))
    assert stage(np.array([0.5, 0.25, 0.25]), "a", "is", task) == "no idea"
    assert stage(np.array([0.9, 0.05, 0.05]), "a", "is", task) == "right"


WORDS = st.integers(0, 5)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(st.tuples(WORDS, st.integers(0, 3)), WORDS, min_size=2, max_size=16))
def test_what_knows_nothing_is_never_called_knowledge(drawn: dict[tuple[int, int], int]) -> None:
    """Neither the uniform guess nor how often each answer comes is a stage, of any fact of any table."""
    facts = tuple((f"s{s}", f"r{r}", f"a{r}.{a}") for (s, r), a in drawn.items())
    if len({a for _, _, a in facts}) < 2:
        return
    book = OwnFacts(facts=facts).book(0)
    often = np.bincount(book.known[:, 2], minlength=book.answers) / len(book.known)
    for s, r, a in book.known.tolist():
        for blind in (np.full(book.answers, 1 / book.answers), often):
            assert shared_out(torch.from_numpy(blind), book, s, r).words == "no idea"
        assert shared_out(torch.eye(book.answers, dtype=torch.float64)[a], book, s, r).words == "right"


def test_shares_add_up_and_chance_is_said() -> None:
    found = shared_out(torch.full((10,), 0.1, dtype=torch.float64), COUNTRIES.book(0), 0, 0)
    assert isinstance(found, Belief)
    assert (found.right, found.relation, found.rest) == pytest.approx((0.1, 0.5, 0.4))
    assert isinstance(found.chance, Chance)
    assert (found.chance.relation, found.chance.right) == pytest.approx((0.6, 1 / 6))
