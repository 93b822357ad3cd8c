"""Laws of the bigram task: its data are what the paper describes, and depend on nothing but their key."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from engram.errors import EngramError
from engram.tasks import Bigram
from engram.tasks.bigram import occurrences
from engram.tasks.corpus import Sampler, random_bits
from engram.theory.bigram import global_floor, previous_visits
from engram.values import generator
from test_odd_files import forget_texts

bigram_tasks = st.builds(
    Bigram,
    K=st.integers(1, 8),
    T=st.integers(2, 60),
    triggers=st.sampled_from(["random", "fixed"]),
    outputs=st.sampled_from(["uniform", "bigram"]),
    no_repeat=st.booleans(),
)


def test_table_is_the_text() -> None:
    table = Bigram().table
    assert len(table.alphabet) == 65
    assert table.alphabet == "".join(sorted(table.alphabet))
    assert np.count_nonzero(table.bigram) == 1403
    assert -np.sum(table.unigram * np.log(table.unigram)) == pytest.approx(3.3128, abs=5e-5)
    assert table.unigram @ table.row_entropies == pytest.approx(2.4526, abs=5e-5)
    assert [table.alphabet[i] for i in table.ranks[:6]] == [" ", "e", "t", "o", "a", "h"]
    assert round(table.unigram.min() * 1115394) == 1  # '$' stands once in the text


@given(task=bigram_tasks, seed=st.integers(0, 2**40), step=st.integers(0, 2**41))
@settings(max_examples=40, deadline=None)
def test_sequences_follow_their_law(task: Bigram, seed: int, step: int) -> None:
    batch = task.sample(seed, step, 5)
    again = task.sample(seed, step, 5)
    assert np.array_equal(batch.tokens, again.tokens)
    assert batch.tokens.shape == batch.targets.shape == (5, task.T)
    assert np.array_equal(batch.tokens[:, 1:], batch.targets[:, :-1])
    assert np.sum(list(batch.groups.values()), axis=0).tolist() == np.ones((5, task.T)).tolist()
    forced = batch.groups["in_context"] | batch.groups["first"]
    seen = task.table.bigram[batch.tokens, batch.targets]
    assert (seen[~forced] > 0).all()
    for b in range(5):  # a trigger has one output a sequence
        pairs = set(zip(batch.tokens[b][forced[b]].tolist(), batch.targets[b][forced[b]].tolist(), strict=True))
        assert len(pairs) == len({q for q, _ in pairs}) <= task.K
        if task.no_repeat:
            assert all(q != o for q, o in pairs)
        if task.fixed_triggers is not None:
            assert {q for q, _ in pairs} <= set(task.fixed_triggers.tolist())


@pytest.mark.parametrize("task", [Bigram(K=3, T=60), Bigram(K=2, T=60, triggers="fixed")])
def test_groups_count_visits_of_triggers(task: Bigram) -> None:
    """By hand: a token is a trigger of a sequence if it is among the pairs drawn first from the same stream."""
    batch, (triggers, outputs) = task.sample(5, 2, 30), task.draw_pairs(generator(5, "data", 2), 30)
    for b, tokens in enumerate(batch.tokens.tolist()):
        output = dict(zip(triggers[b].tolist(), outputs[b].tolist(), strict=True))
        for t, z in enumerate(tokens):
            visit = tokens[: t + 1].count(z) if z in output else 0
            group = {0: "global", 1: "first"}.get(visit, "in_context")
            assert [name for name, mask in batch.groups.items() if mask[b, t]] == [group]
            assert visit == 0 or batch.targets[b, t] == output[z]


def test_batches_of_different_steps_and_seeds_differ() -> None:
    task = Bigram()
    base = task.sample(0, 0, 4).tokens
    assert not np.array_equal(base, task.sample(0, 1, 4).tokens)
    assert not np.array_equal(base, task.sample(1, 0, 4).tokens)


def _p_value(counts: np.ndarray, law: np.ndarray) -> float:
    """Chi-square with cells of expectation below 5 pooled."""
    expected = law * counts.sum()
    big = expected >= 5
    observed = np.r_[counts[big], counts[~big].sum()]
    wanted = np.r_[expected[big], expected[~big].sum()]
    keep = wanted > 0
    return chisquare(observed[keep], wanted[keep]).pvalue


def test_frequencies_match_the_table() -> None:
    task = Bigram(K=1, T=64)
    batch = task.sample(3, 0, 4000)
    assert _p_value(np.bincount(batch.tokens[:, 0], minlength=65), task.table.unigram) > 1e-4
    free = batch.groups["global"]
    for token in task.table.ranks[:5]:
        here = free & (batch.tokens == token)
        assert _p_value(np.bincount(batch.targets[here], minlength=65), task.table.bigram[token]) > 1e-4


@pytest.mark.parametrize("outputs", ["uniform", "bigram"])
@pytest.mark.parametrize("no_repeat", [False, True])
def test_triggers_and_outputs_match_their_laws(outputs: str, no_repeat: bool) -> None:
    task = Bigram.model_validate({"K": 1, "outputs": outputs, "no_repeat": no_repeat})
    triggers, drawn = task.draw_pairs(generator(0, "test"), 60_000)
    assert _p_value(np.bincount(triggers[:, 0], minlength=65), task.table.unigram) > 1e-4
    q = task.table.ranks[1]  # 'e', which the text doubles
    law = task.table.bigram[q].copy() if outputs == "bigram" else np.full(65, 1 / 65)
    law[q] = 0 if no_repeat else law[q]
    assert _p_value(np.bincount(drawn[triggers == q], minlength=65), law / law.sum()) > 1e-4


def test_random_triggers_are_distinct_draws_in_order() -> None:
    """P(b is among two draws without replacement) = p_b + Σ_{a≠b} p_a p_b/(1−p_a)."""
    task = Bigram(K=2)
    p = task.table.unigram
    triggers = task.draw_triggers(generator(1, "test"), 100_000)
    assert (triggers[:, 0] != triggers[:, 1]).all()
    wanted = p + p * ((p / (1 - p)).sum() - p / (1 - p))
    assert _p_value(np.bincount(triggers.ravel(), minlength=65), wanted / 2) > 1e-4


def test_fixed_triggers_are_the_ranks_after_the_offset() -> None:
    task = Bigram(K=5, triggers="fixed", offset=5)
    assert task.fixed_triggers is not None
    assert [task.table.alphabet[i] for i in task.fixed_triggers] == ["h", "s", "r", "n", "i"]


@given(st.integers(1, 6), st.integers(1, 30), st.integers(1, 5), st.integers(0, 1000))
def test_occurrences_count_visits(B: int, T: int, N: int, seed: int) -> None:
    tokens = np.random.default_rng(seed).integers(0, N, (B, T))
    counted = [[row[: t + 1].count(row[t]) for t in range(T)] for row in tokens.tolist()]
    assert occurrences(tokens, N).tolist() == counted


def test_sampler_never_draws_what_has_no_probability() -> None:
    laws = np.array([[0.0, 1e-12, 1.0 - 1e-12, 0.0], [1.0, 0.0, 0.0, 0.0]])
    sampler = Sampler.of(laws)
    edges = np.array([0, 1, 2**31, 2**32 - 1])
    assert set(sampler.draw(np.zeros(4, dtype=int), edges).tolist()) <= {1, 2}
    assert set(sampler.draw(np.ones(4, dtype=int), edges).tolist()) == {0}
    assert random_bits(generator(0, "x"), (1000,)).max() < 2**32


@pytest.mark.parametrize("task", [Bigram(), Bigram(K=1, triggers="fixed"), Bigram(K=3, outputs="bigram")])
def test_what_followed_is_right_in_context_and_chance_when_shuffled(task: Bigram) -> None:
    batch = task.sample(0, 0, 60)
    asked, before = batch.groups["in_context"], np.maximum(previous_visits(batch.tokens), 0)
    guess = np.take_along_axis(batch.targets, before, axis=1)
    assert (guess == batch.targets)[asked].all()
    shuffled = np.random.default_rng(0).permutation(65)[guess]
    assert (shuffled == batch.targets)[asked].mean() < 0.1


def test_previous_visits_by_definition() -> None:
    assert previous_visits(np.array([[3, 1, 3, 3, 2]])).tolist() == [[-1, -1, 0, 2, -1]]


@pytest.mark.parametrize(
    "task",
    [
        Bigram(K=1, triggers="fixed", T=40),
        Bigram(K=1, T=40, no_repeat=True),
        Bigram(K=3, T=40, outputs="bigram"),
        Bigram(K=5),
    ],
)
def test_global_floor_equals_brute_force(task: Bigram) -> None:
    """The loss of the oracle π_b on sampled global positions, within 4 standard errors."""
    floor = global_floor(task)
    batch = task.sample(7, 0, 4000)
    mask = batch.groups["global"]
    loss = np.where(mask, -np.log(np.where(mask, task.table.bigram[batch.tokens, batch.targets], 1)), 0)
    sums, positions = loss.sum(axis=1), mask.sum(axis=1)
    estimate = sums.sum() / positions.sum()
    error = np.std(sums - estimate * positions) / positions.mean() / np.sqrt(len(sums))
    assert abs(floor.value - estimate) < 4 * np.hypot(error, floor.error)
    assert np.hypot(error, floor.error) < 0.02
    assert (floor.error == 0) == (task.K == 1)


def test_own_text(tmp_path) -> None:
    path = tmp_path / "own.txt"
    path.write_text("abracadabra")
    task = Bigram.model_validate({"corpus": str(path), "K": 2, "T": 30})
    assert task.table.alphabet == "abcdr"
    assert task.table.bigram[0].tolist() == [0, 0.5, 0.25, 0.25, 0]  # a is followed by b twice, by c, by d
    assert task.table.unigram[0] == pytest.approx(5 / 11)
    assert task.sample(0, 0, 3).tokens.max() < 5
    path.write_text("changed now")
    forget_texts()
    with pytest.raises(EngramError, match="changed"):
        Bigram.model_validate({"corpus": task.corpus.model_dump(), "K": 2}).sample(0, 0, 3)  # type: ignore[union-attr]


@pytest.mark.parametrize(("text", "says"), [("", "empty"), ("aaaa", "one letter"), (None, "cannot read")])
def test_bad_texts(tmp_path, text, says) -> None:
    path = tmp_path / "bad.txt"
    if text is not None:
        path.write_text(text)
    with pytest.raises(EngramError, match=says):
        Bigram.model_validate({"corpus": str(path)})
