"""What can be predicted in context: laws of the predictors that a trained model is held against."""

import numpy as np
import pytest

from engram.tasks import Batch, Bigram
from engram.theory.bigram import bag_guess, best_guess, chance_of_trigger, counts, in_context_levels, stands_out

A, B, RARE = 39, 41, 5  # 'a', 'c' and a token that is hardly ever seen


def test_counts_are_counts() -> None:
    tokens = np.array([[3, 1, 3, 3]])
    assert counts(tokens, 4)[0, -1].tolist() == [0, 1, 0, 3]
    assert counts(tokens, 4)[0, 1].tolist() == [0, 1, 0, 1]


def test_fixed_triggers_are_predicted_without_error() -> None:
    """Who knows the triggers and has seen their outputs knows what comes."""
    task = Bigram(K=4, T=48, triggers="fixed", offset=3)
    batch = task.sample(0, 0, 32)
    read = batch.groups["in_context"]
    assert (best_guess(task, batch) == batch.targets)[read].all()


def test_global_positions_with_fixed_triggers_get_the_favourite_of_the_bigram() -> None:
    task = Bigram(K=4, T=48, triggers="fixed")
    batch = task.sample(0, 0, 16)
    read = batch.groups["global"]
    assert (best_guess(task, batch) == task.table.bigram.argmax(axis=1)[batch.tokens])[read].all()


def test_a_token_with_two_successors_is_no_trigger() -> None:
    """After a → x, a → y the best guess falls back on the bigram; after a → x, a → x (x unlikely) it is x."""
    task = Bigram(K=3, T=5)
    favourite = int(task.table.bigram[A].argmax())
    for second, expected in ((RARE, RARE), (B, favourite)):
        z = np.array([[A, RARE, A, second, A, 0]])
        batch = Batch(z[:, :-1], z[:, 1:], {})
        assert best_guess(task, batch)[0, 4] == expected


def test_the_bag_finds_what_came_as_often_as_the_trigger() -> None:
    """a came twice before, and so did a rare token: it must be the output; the common space does not stand out."""
    task = Bigram(K=3, T=7)
    z = np.array([[A, RARE, A, RARE, 1, 1, A, 0]])
    batch = Batch(z[:, :-1], z[:, 1:], {})
    assert bag_guess(task, batch)[0, 6] == RARE
    assert stands_out(Bigram(K=3, T=7), Batch(z[:, 1:], z[:, 1:], {}))[0, 3] == RARE


def test_chance_of_a_trigger() -> None:
    """It sums to K; fixed triggers are certain."""
    assert chance_of_trigger(Bigram(K=3)).sum() == pytest.approx(3, rel=1e-6)
    fixed = Bigram(K=2, triggers="fixed")
    assert fixed.fixed_triggers is not None
    assert chance_of_trigger(fixed)[fixed.fixed_triggers] == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize("triggers", ["random", "fixed"])
def test_who_sees_more_predicts_better(triggers: str) -> None:
    """The token that stands out ≤ the best guess from the bag ≤ the best predictor ≤ 1, and all far above chance."""
    (row,) = in_context_levels(draws=64, seed=1, K=3, T=64, triggers=triggers)
    assert 0.3 < row["stands_out"] < row["bag"] < row["ceiling"] <= 1
