"""Memories: what is refused, how it is told, and that nothing changes then."""

import json
import subprocess
import sys
from collections.abc import Callable
from math import inf, nan

import pytest
import torch

import engram.memory.check as check_module
import engram.memory.linear as linear_module
from engram.errors import EngramError
from engram.memory import (
    MLP,
    Dense,
    Exponential,
    Factorised,
    LayerNormed,
    Linear,
    LowRank,
    Memory,
    Sets,
    Softmax,
    Threshold,
    TwoInputs,
    quantisation_bound,
)
from engram.memory.memory import Name, list_pairs

FIVE: dict[Name, Name] = {"France": "Paris", "Japan": "Tokyo", "Peru": "Lima", "Kenya": "Nairobi", "Chad": "N'Djamena"}


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda: Linear(0), "d: must be a whole number of at least 1; got 0"),
        (lambda: Linear(4, seed=-1), "seed: must be a whole number from 0 to 9223372036854775807; got -1"),
        (lambda: Linear(4).recall("a"), "nothing is stored yet"),
        (lambda: Linear(4).margin(), "nothing is stored yet"),
        (lambda: Linear(4).accuracy(), "nothing is stored yet"),
        (lambda: Linear(4).store({}), "no pairs"),
        (lambda: Linear(4).store([("a", 1), ("a", 2)]), "conflicts"),
        (lambda: list_pairs(["ab"]), "not a pair"),
        (lambda: list_pairs([([1], 2)]), "cannot be hashed"),
        (lambda: list_pairs(7), "got 7"),
        (lambda: Linear(4, lr=nan), "lr: must be a finite number above 0; got nan"),
        (lambda: Linear(4, steps=0), "steps: must be a whole number of at least 1; got 0"),
        (lambda: LowRank(4, 0), "m: must be a whole number of at least 1; got 0"),
        (lambda: Factorised(4, 0), "d_inner: must be a whole number of at least 1; got 0"),
        (lambda: LowRank(4, 5), "m: must be at most d=4, the largest rank of a d×d matrix; got 5"),
        (lambda: Factorised(4, 5), "d_inner: must be at most d=4, the largest rank of a d×d matrix; got 5"),
        (lambda: MLP(4, 0), "m: must be a whole number of at least 1; got 0"),
        (lambda: MLP(4, 4, rule="hermite", degree=3), "1 or an even number"),
        (lambda: MLP(4, 4, rule="hermite", degree=0), "1 or an even number"),
        (lambda: MLP(4, 4, rule="ntk", degree=4), "1, 2 or 3"),
        (lambda: MLP(4, 4, rule="trained", degree=2), "no degree"),
        (lambda: MLP(64, 4, rule="hermite", law="signs").store({1: 2}), "length 8"),
        (lambda: Dense(4, 0), "degree: must be a whole number of at least 1; got 0"),
        (lambda: Softmax(4, 0.0), "beta: must be a finite number above 0; got 0.0"),
        (lambda: Exponential(4, inf), "beta: must be a finite number above 0; got inf"),
        (lambda: TwoInputs(4, 4).store({"a": 1}), "keys (z1, z2)"),
        (lambda: Sets(4).store({frozenset(): 1}), "frozenset"),
        (lambda: Linear(4, law="orthonormal").store({i: i for i in range(5)}), "do not fit"),
        (lambda: Linear(4).give(torch.eye(4), torch.eye(3)), "shape (3, 3)"),
        (lambda: Linear(4).give(torch.tensor(1.0), torch.eye(4)), "shape ()"),
        (lambda: Linear(2).give(torch.full((2, 2), nan), torch.eye(2)), "NaN"),
        (lambda: Linear(2).give(torch.eye(2), torch.eye(2) * inf), "NaN"),
        (lambda: Linear(2).give(torch.eye(2), torch.eye(2), "aa"), "repeat"),
        (lambda: Linear(2).give(torch.eye(2), torch.eye(2)).store({0: 2}), "no vector"),
        (lambda: Linear(2).give(torch.eye(2), torch.eye(2), [nan, 1]), "not equal to itself"),
        (lambda: Linear(4).store({nan: 1}), "not equal to itself"),
        (lambda: Linear(4).store({1: nan}), "not equal to itself"),
        (lambda: Linear(4).store({torch.ones(2, 2): 1}), "a Tensor, which cannot be hashed by its content"),
        (lambda: quantisation_bound(Linear(4), 2), "nothing is stored yet"),
        (lambda: Linear(4, rule="one-step").strength(), "nothing is stored yet"),
        (
            lambda: Linear(4, seed=2**63),
            "seed: must be a whole number from 0 to 9223372036854775807; got 9223372036854775808",
        ),
        (lambda: Threshold(4, bias=nan), "bias: must be a finite number; got nan"),
        (lambda: Linear(10**30), "GB"),
        (lambda: Linear(10**7), "GB"),
        (lambda: Dense(10**10).store({i: i for i in range(100)}), "GB"),
    ],
)
def test_bad_input_is_told_in_one_line(act: Callable[[], object], told: str) -> None:
    with pytest.raises(EngramError) as error:
        act()
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda m: m.recall("Frnace"), "did you mean France?"),
        (lambda m: m.margin("Mars"), "nothing is stored under 'Mars'"),
        (lambda m: m.edit("Mars", "Paris"), "nothing is stored under 'Mars'"),
        (lambda m: m.store({"France": "Lyon"}), "conflicts"),
        (lambda m: m.truncate(0), "rank: must be a whole number of at least 1; got 0"),
        (lambda m: m.truncate(65), "rank: must be at most d=64, .* got 65"),
        (lambda m: m.quantise(0), "bits: must be a whole number from 1 to 32; got 0"),
        (lambda m: m.quantise(33), "bits: must be a whole number from 1 to 32; got 33"),
        (lambda m: quantisation_bound(m, 0), "bits: .* got 0"),
        (lambda m: m.edit("France", nan), "not equal to itself"),
        (lambda m: m.scores([]), "scores: no names were given"),
        (lambda m: m.give(torch.eye(64), torch.eye(64)), "already stored"),
    ],
)
def test_a_full_memory_refuses_and_stays_as_it_was(act: Callable[[Linear], object], told: str) -> None:
    memory = Linear(64)
    memory.store(FIVE)
    before = memory.scores()
    with pytest.raises(EngramError, match=told.replace("?", r"\?")):
        act(memory)
    assert memory.pairs == FIVE
    assert torch.equal(memory.scores(), before)


def test_a_known_key_without_a_pair_is_told() -> None:
    memory = Linear(2).give(torch.tensor([[1.0, 0.0], [0.0, 0.0]]), torch.eye(2))
    memory.store({0: 1})
    for act in (lambda: memory.edit(1, 1), lambda: memory.margin(1)):
        with pytest.raises(EngramError, match="no pair is stored for 1"):
            act()
    memory.store({1: 0})
    with pytest.raises(EngramError, match="is zero"):
        memory.edit(1, 1)


@pytest.mark.parametrize("fails", [KeyboardInterrupt, EngramError])
@pytest.mark.parametrize("kind", [Linear, LayerNormed, Threshold, lambda d: TwoInputs(d, 4, steps=2)])
def test_a_write_that_fails_leaves_no_trace(
    kind: Callable[[int], Memory], fails: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even a name that was heard: later names have the vectors they would have had."""
    once, failed = kind(8), kind(8)
    once.store({("a", "b"): 1})
    failed.store({("a", "b"): 1})

    def breaks(pairs: dict[Name, Name]) -> None:
        write(pairs)
        raise fails

    write = failed._write
    with monkeypatch.context() as patch:
        patch.setattr(failed, "_write", breaks)
        with pytest.raises(fails):
            failed.store({("c", "d"): 2, ("a", "d"): 3})
    assert failed.pairs == once.pairs
    for memory in (once, failed):
        memory.store({("e", "f"): 4, ("a", "f"): 5})
    assert list(failed.values) == [1, 4, 5]
    assert list(failed.keys) == list(once.keys)
    assert torch.equal(failed.scores(), once.scores())


def test_what_fails_halfway_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Linear(64)
    with pytest.raises(EngramError, match="shape"):
        memory.give(torch.eye(64), torch.eye(3))
    memory.store(FIVE)
    before = memory.scores()
    monkeypatch.setattr(linear_module, "compare", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        memory.edit("France", "Lyon")
    assert memory.pairs == FIVE
    assert torch.equal(memory.scores(), before)


def test_no_bound_where_scores_are_not_linear() -> None:
    memory = LayerNormed(8)
    memory.store(FIVE)
    with pytest.raises(EngramError, match="the scores of LayerNormed are not linear in W"):
        quantisation_bound(memory, 4)


WRONG_TYPES = {
    'Linear("8")': "d: must be a whole number of at least 1; got '8'",
    "Linear(2.5)": "d: must be a whole number of at least 1; got 2.5",
    "Linear(True)": "got True",
    "Linear(8, seed='a')": "seed: must be a whole number from 0 to 9223372036854775807; got 'a'",
    "Linear(8, steps=2.5)": "steps: must be a whole number of at least 1; got 2.5",
    "Linear(8, lr='fast')": "lr: must be a finite number above 0; got 'fast'",
    "Linear(8, rule=['hebb'])": "did you mean hebb?",
    "MLP(8, 8, rule=['ntk'])": "did you mean ntk?",
    "MLP(8, 8, rule='ntk', degree='2')": "degree: rule='ntk' allows 1, 2 or 3; got '2'",
    "MLP(8, 2.5)": "m: must be a whole number of at least 1; got 2.5",
    "Dense(8, 2.5)": "degree: must be a whole number of at least 1; got 2.5",
    "Softmax(8, 'sharp')": "beta: must be a finite number above 0; got 'sharp'",
    "LowRank(8, 2.5)": "m: must be a whole number of at least 1; got 2.5",
    "linear.recall([1])": "name: [1] is a list, which cannot be hashed",
    "linear.edit('a', ['x'])": "name: ['x'] is a list",
    "linear.edit(['a'], 'x')": "name: ['a'] is a list",
    "linear.margin(['a', 'b'])": "name: ['a', 'b'] is a list",
    "linear.scores(5)": "scores: got 5, which is not a list of names; write scores([name, …])",
    "linear.scores('a')": "scores: got 'a', which is not a list of names",
    "linear.truncate(2.5)": "rank: must be a whole number of at least 1; got 2.5",
    "linear.quantise(1.5)": "bits: must be a whole number from 1 to 32; got 1.5",
    "sets.scores([])": "scores: no names were given",
    "sets.recall('a')": "key: a memory of sets has keys such as frozenset({'a', 'b'}); got 'a'",
    "sets.recall(['a'])": "key: a memory of sets has keys such as frozenset({'a', 'b'}); got ['a']",
    "Hopfield(8, seed=-1)": "seed: must be a whole number from 0 to 9223372036854775807; got -1",
    "Hopfield('8')": "d: must be a whole number of at least 2; got '8'",
    "Hopfield(8, 2.5)": "degree: must be 'exp' or, for d=8, from 2 to 260; got 2.5",
    "hopfield.store(5)": "store: got 5, which is not a list of names; write store([name, …])",
    "hopfield.store([['a']])": "name: ['a'] is a list",
    "hopfield.recall([1, 2])": "pattern: must be a vector of d=8 entries ±1; got shape (2,)",
    "hopfield.recall({1: 2})": "name: {1: 2} is a dict",
    "hopfield.scores(5)": "scores: got 5, which is not a list of names",
    "hopfield.noisy('a', 2.5)": "flips: must be a whole number from 0 to 8; got 2.5",
}
ASK = """
import json, sys
from engram.errors import EngramError
from engram.memory import *

linear, sets, hopfield = Linear(8), Sets(8), Hopfield(8)
linear.store({"a": 1, "b": 2})
sets.store({frozenset("ab"): 1})
hopfield.store(["a"])
for expression in json.load(sys.stdin):
    try:
        print(json.dumps(repr(eval(expression))))
    except EngramError as error:
        print(json.dumps(f"EngramError {error}"))
    except Exception as error:
        print(json.dumps(repr(error)))
"""


def test_wrong_types_are_told_in_one_line() -> None:
    """In a Python of its own: here every annotation is checked, which a user's program does not do."""
    asked = json.dumps(list(WRONG_TYPES))
    answer = subprocess.run([sys.executable, "-c", ASK], input=asked, capture_output=True, text=True, check=True)
    answers = dict(zip(WRONG_TYPES, map(json.loads, answer.stdout.splitlines()), strict=True))
    for expression, told in WRONG_TYPES.items():
        assert answers[expression].startswith("EngramError "), expression
        assert told in answers[expression], expression
        assert "\n" not in answers[expression], expression


def test_scores_that_do_not_fit_the_machine_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Linear(8)
    memory.store({i: i for i in range(1000)})
    monkeypatch.setattr(check_module, "machine_bytes", lambda: 1e6)
    with pytest.raises(EngramError, match=r"scores .* GB; lower"):
        memory.scores()
    assert memory.scores([0, 1]).shape == (2, 1000)
