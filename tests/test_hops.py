"""Laws of hop_k strings and of compositions of permutations: oracles against loops, and what a batch may depend on."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engram
from engram.errors import EngramError
from engram.learning import SGD, Plan
from engram.models import Transformer
from engram.specs import Train
from engram.specs.encode import decode, encode
from engram.tasks import Batch, Composition, Hops, Task
from engram.tasks.batch import as_text, marks_of
from engram.tasks.composition import WORDS, story
from engram.tasks.hops import found

hop_tasks = st.integers(0, 9).flatmap(
    lambda most: st.builds(
        Hops,
        letters=st.integers(2, 7),
        length=st.integers(1, 40),
        most=st.just(most),
        hops=st.sets(st.integers(0, most)).map(lambda hops: tuple(sorted(hops))),
    )
)
compositions = st.integers(0, 3).flatmap(
    lambda i: st.builds(
        Composition,
        n=st.integers(2, 6),
        k=st.just(2**i),
        hops=st.sets(st.sampled_from([2**j for j in range(i + 1)])).map(lambda hops: tuple(sorted(hops))),
        hidden=st.integers(0, 99),
    )
)
tasks = hop_tasks | compositions


def find_by_hand(X: list[int], i: int) -> int | None:
    for j in reversed(range(i)):
        if X[j] == X[i]:
            return j + 1
    return None


def hop_by_hand(X: list[int], i: int, k: int) -> int | None:
    at: int | None = i
    for _ in range(k):
        at = None if at is None else find_by_hand(X, at)
    return at


@given(task=hop_tasks, seed=st.integers(0, 2**40), step=st.integers(0, 2**41))
@settings(max_examples=40, deadline=None)
def test_hops_are_what_loops_find(task: Hops, seed: int, step: int) -> None:
    batch = task.sample(seed, step, 4)
    for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
        k, X = tokens[0], tokens[1:]
        places = [hop_by_hand(X, i, k) for i in range(len(X))]
        assert targets == [task.blank, *(task.undefined if at is None else X[at] for at in places)]
        assert k in task.asked
        assert all(X[i] != X[i + 1] for i in range(len(X) - 1))
        assert all(task.first_letter <= z < task.undefined for z in X)


def test_places_that_are_found_with_equal_neighbours_too() -> None:
    """Pages and other tasks may ask for strings that the task never draws."""
    for X in product(range(3), repeat=6):
        for k in range(4):
            by_hand = [hop_by_hand(list(X), i, k) for i in range(len(X))]
            assert found(np.array([X]), k)[0].tolist() == [-1 if at is None else at for at in by_hand]


def test_hops_of_a_batch_may_differ() -> None:
    letters, k = Hops().sample(0, 0, 5).tokens[:, 1:], np.array([3, 0, 1, 16, 2])
    for row, hops in enumerate(k):
        assert np.array_equal(found(letters, k)[row], found(letters[row : row + 1], int(hops))[0])


def test_the_published_ids_and_the_example_of_the_module() -> None:
    task = Hops()
    assert (task.T, task.N, task.first_letter, task.undefined, task.blank) == (99, 23, 17, 21, 22)
    assert task.asked == tuple(range(17))
    small = Hops(letters=4, length=8, most=2)
    batch = small.ask(np.array([[0, 1, 2, 0, 3, 1, 2, 1]]), np.array([2]))
    assert as_text(small, batch) == "2 a b c a d b c b\n_ ~ ~ ~ ~ ~ ~ b a"
    assert (engram.Hops, engram.Composition) == (Hops, Composition)


def by_arithmetic(task: Composition, sigma: np.ndarray, a: int, hops: int) -> list[int]:
    """The composition as a product of permutation matrices, the first map rightmost."""
    whole = np.eye(task.n, dtype=int)
    for j in range(a + 1, a + hops + 1):
        for permutation in (task.permutations[j - 1], sigma[j - 1]):
            whole = np.eye(task.n, dtype=int)[permutation].T @ whole
    return whole.argmax(axis=0).tolist()


@given(task=compositions, seed=st.integers(0, 2**40), step=st.integers(0, 2**41))
@settings(max_examples=40, deadline=None)
def test_compositions_are_products_of_permutations(task: Composition, seed: int, step: int) -> None:
    batch = task.sample(seed, step, 4)
    for b, sigma in enumerate(task.sigma(batch.tokens)):
        assert [sorted(row) for row in sigma.tolist()] == [list(range(task.n))] * task.k
        hops = task.powers[batch.tokens[b, 0]]
        assert hops in task.asked
        blocks = batch.targets[b, 1:].reshape(task.k + 1, task.n)[::-1]
        for a, answers in enumerate(blocks.tolist()):
            right = by_arithmetic(task, sigma, a, hops) if a + hops <= task.k else None
            assert answers == ([task.blank] * task.n if right is None else [y + task.first_value for y in right])
        assert batch.targets[b, 0] == task.blank


def test_the_hardest_hop_is_the_published_function() -> None:
    """f(σ, x) = (σ_k ∘ π_k ∘ … ∘ σ_1 ∘ π_1)(x) stands at slot (0, x), and only there."""
    task = Composition(n=4, k=4, hidden=3)
    batch = task.sample(5, 0, 20)
    for targets, sigma in zip(batch.targets, task.sigma(batch.tokens), strict=True):
        for x in range(4):
            y = x
            for pi_a, sigma_a in zip(task.permutations, sigma, strict=True):
                y = sigma_a[pi_a[y]]
            assert targets[-4 + x] == task.first_value + y
    assert np.array_equal(batch.groups["hop4"].sum(axis=1), np.full(20, 4))


@pytest.mark.parametrize("task", [Hops(length=30, most=4), Composition(n=4, k=4, hops=(1, 2, 4))], ids=["hops", "perm"])
def test_targets_depend_on_what_came_before_only(task: Any) -> None:
    """The oracle is causal: other tokens after t do not change the target at t."""
    one, two = task.sample(0, 0, 16), task.sample(1, 0, 16)
    tokens = two.tokens.copy()
    tokens[:, 0] = one.tokens[:, 0]
    for t in range(1, task.T, task.n if isinstance(task, Composition) else 1):  # at the end of a block
        mixed = np.concatenate([one.tokens[:, : t + 1], tokens[:, t + 1 :]], axis=1)
        assert np.array_equal(task.oracle(mixed)[:, : t + 1], one.targets[:, : t + 1])


@given(task=tasks, seed=st.integers(0, 2**40), step=st.integers(0, 2**41))
@settings(max_examples=40, deadline=None)
def test_batches_depend_on_seed_and_step_only(task: Task, seed: int, step: int) -> None:
    batch, again = task.sample(seed, step, 5), task.sample(seed, step, 5)
    assert np.array_equal(batch.tokens, again.tokens)
    assert np.array_equal(batch.targets, again.targets)
    batch.check(task, 5, "all")
    assert tuple(batch.groups) == task.groups
    assert len(set(marks_of(task))) == task.N


def test_other_steps_seeds_and_hidden_permutations_give_other_data() -> None:
    for task in (Hops(), Composition()):
        first = task.sample(0, 0, 4).tokens
        assert not np.array_equal(first, task.sample(0, 1, 4).tokens)
        assert not np.array_equal(first, task.sample(1, 0, 4).tokens)
    assert not np.array_equal(Composition(hidden=1).permutations, Composition().permutations)
    assert np.array_equal(Composition(hidden=1).sample(0, 0, 4).tokens, Composition().sample(0, 0, 4).tokens)


def test_what_is_asked_changes_neither_strings_nor_columns() -> None:
    """Stages of a curriculum share their strings' law and the columns of their rows."""
    for all_hops, one in ((Hops(), Hops(hops=(2,))), (Composition(hops=(1, 2, 4)), Composition(hops=(2,)))):
        assert np.array_equal(all_hops.sample(3, 7, 6).tokens[:, 1:], one.sample(3, 7, 6).tokens[:, 1:])
        assert all_hops.groups == one.groups
        asked = one.sample(3, 7, 6).groups
        assert [name for name, mask in asked.items() if name.startswith("hop") and mask.any()] == ["hop2"]


def test_strings_are_uniform_and_hops_equally_frequent() -> None:
    """Letters by position, pairs of neighbours and hop tokens: within five standard deviations of their laws."""
    tokens, n = Hops(letters=4, length=6, most=4).sample(0, 0, 20_000).tokens, 20_000
    for counts, p in ((np.bincount(tokens[:, 0], minlength=5), 1 / 5), (np.bincount(tokens[:, 6] - 5), 1 / 4)):
        assert np.abs(counts - n * p).max() < 5 * np.sqrt(n * p * (1 - p))
    pairs = np.bincount((tokens[:, 3] - 5) * 4 + tokens[:, 4] - 5, minlength=16).reshape(4, 4)
    assert not pairs.diagonal().any()
    assert np.abs(pairs[~np.eye(4, dtype=bool)] - n / 12).max() < 5 * np.sqrt(n / 12)
    sigma = Composition(n=3, k=1).sigma(Composition(n=3, k=1).sample(0, 0, 6_000).tokens)[:, 0]
    orders = np.unique(sigma, axis=0, return_counts=True)[1]
    assert len(orders) == 6
    assert np.abs(orders - 1000).max() < 5 * np.sqrt(6000 * 5 / 36)


def share(batch: Batch, answers: np.ndarray, group: str) -> float:
    """How many of the targets of a group are answered rightly."""
    return float((batch.targets == answers)[batch.groups[group]].mean())


def test_an_oracle_of_other_sequences_is_at_chance() -> None:
    """The same question asked of the next sequence of the batch: no better than a guess among letters or values."""
    hops, perm = Hops(hops=(1, 2)), Composition(hops=(1, 2, 4))
    for task, groups, chance in ((hops, ("hop1", "hop2"), 1 / 4), (perm, ("hop1", "hop2", "hop4"), 1 / 5)):
        batch = task.sample(0, 0, 2000)
        other = np.concatenate([batch.tokens[:, :1], np.roll(batch.tokens, 1, axis=0)[:, 1:]], axis=1)
        for group in groups:
            assert share(batch, task.oracle(batch.tokens), group) == 1
            assert share(batch, task.oracle(other), group) == pytest.approx(chance, abs=0.025)


def test_two_hops_as_a_story() -> None:
    """The answer follows from the sentences: who owns what, who holds it, what they are, and where."""
    task = Composition(n=5, k=2)
    for seed, x in product(range(3), range(5)):
        told = story(task, seed, x)
        told_of = {words[-1]: words for words in (s.split() for s in f"{told.known} {told.told}".split(".")) if words}
        owner = told.question.removesuffix(" owns?").split()[-1]
        thing = next(s.split()[-1] for s in told.known.split(".") if s.split()[:2] == [owner, "owns"])
        holder = told_of[thing][0] if told_of[thing][1] == "holds" else ""
        role = next(s.split()[-1] for s in told.known.split(".") if s.split()[:2] == [holder, "is"])
        assert f"The {role} is in the {told.answer}." in told.told
        assert owner == WORDS["owner"][x]
    with pytest.raises(EngramError, match=r"story: needs k=2, n of at most 5 and x below n; got k=4, n=5, x=0"):
        story(Composition())


BAD: list[tuple[Task, dict[str, Any], str]] = [
    (Hops(), {"letters": 1}, r"task\.letters: .*greater than or equal to 2; got 1"),
    (Hops(), {"length": 0}, r"task\.length: must be positive; got 0"),
    (Hops(), {"hops": [1, 17]}, r"task\.hops: must be increasing numbers within 0 … most = 16; got \[1, 17\]"),
    (Hops(), {"hops": [2, 1]}, r"task\.hops: must be increasing .*got \[2, 1\]"),
    (Hops(), {"hops": [1, 1]}, r"task\.hops: must be increasing .*got \[1, 1\]"),
    (Hops(), {"k": 3}, r"task\.k: no such field in Hops"),
    (Composition(), {"k": 3}, r"task\.k: must be a power of two; got 3"),
    (Composition(), {"n": 1}, r"task\.n: .*greater than or equal to 2; got 1"),
    (Composition(), {"hops": [3]}, r"task\.hops: must be increasing numbers among 1, 2, 4; got \[3\]"),
    (Composition(), {"hops": [4, 2]}, r"task\.hops: must be increasing .*got \[4, 2\]"),
    (Composition(), {"hidden": -1}, r"task\.hidden: .*greater than or equal to 0; got -1"),
]


@pytest.mark.parametrize(("task", "fields", "says"), BAD, ids=[says for *_, says in BAD])
def test_bad_input_is_told_in_one_line(task: Any, fields: dict[str, Any], says: str) -> None:
    plan = Plan(optimiser=SGD(lr=0.1), steps=2, batch=2, trained=("U",), loss="all")
    spec = encode(Train(task=task, model=Transformer(d=8, hidden=8), plan=plan))
    spec["task"] |= fields
    with pytest.raises(EngramError, match=says) as error:
        decode(spec)
    assert "\n" not in str(error.value)
