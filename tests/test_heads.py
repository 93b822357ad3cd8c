"""Scores of heads on a sequence that comes twice: planted patterns are the ceiling, uniform ones are chance."""

import numpy as np
import pytest
import torch

from engram.errors import EngramError
from engram.models import Layer, Model, Transformer, network_of
from engram.probes.heads import head_scores, induction_score, previous_token_score, twice


def uniform(T: int) -> torch.Tensor:
    return (torch.ones(T, T).tril() / torch.arange(1, T + 1)[:, None]).expand(3, 2, T, T)


@pytest.mark.parametrize("start", [0, 1, 3])
def test_planted_patterns_are_the_ceiling(start: int) -> None:
    """A head that looks at t − 1, and one that looks at t − n + 1 in the second copy."""
    n = 5
    T, pattern = start + 2 * n, torch.zeros(1, 2, start + 2 * n, start + 2 * n)
    for t in range(T):
        pattern[0, 0, t, max(0, t - 1)] = 1
        pattern[0, 1, t, t - n + 1 if t >= start + n else 0] = 1
    assert previous_token_score(pattern).tolist() == pytest.approx([1, float(start == 0 and n == 1) or 1 / (T - 1)])
    assert induction_score(pattern, n, start).tolist() == pytest.approx([0, 1])


def test_uniform_patterns_are_at_chance() -> None:
    n, T = 6, 12
    chance = np.mean([1 / (t + 1) for t in range(n, T)])
    assert induction_score(uniform(T), n).tolist() == pytest.approx([chance, chance])
    before = np.mean([1 / (t + 1) for t in range(1, T)])
    assert previous_token_score(uniform(T)).tolist() == pytest.approx([before, before])


def test_what_does_not_fit_is_refused() -> None:
    for period, start in ((7, 0), (6, 1), (1, 0), (2, -1)):
        with pytest.raises(EngramError, match="period: two copies"):
            induction_score(uniform(12), period, start)


def test_sequences_come_twice_and_depend_on_nothing_but_their_key() -> None:
    tokens = twice(50, 7, 4, seed=3)
    assert tokens.shape == (4, 14)
    assert np.array_equal(tokens[:, :7], tokens[:, 7:])
    assert np.array_equal(tokens, twice(50, 7, 4, seed=3))
    assert not np.array_equal(tokens, twice(50, 7, 4, seed=4))
    assert set(twice(50, 7, 4, 3, among=np.array([5, 9])).flat) <= {5, 9}


def test_every_head_of_a_network_is_scored_as_its_pattern_says() -> None:
    model = Transformer(d=12, layers=(Layer(heads=3), Layer(heads=2)), norm="pre")
    own = Model(model, model.init(20, 16, 0))
    tokens = twice(20, 8, 5, 0)
    found, trace = head_scores(network_of(own), tokens, 8), own(tokens)
    assert list(found) == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]
    for (layer, h), scores in found.items():
        pattern = trace.attention[layer - 1][:, h - 1 : h]
        expected = (float(previous_token_score(pattern)), float(induction_score(pattern, 8)))
        assert scores == pytest.approx(expected, abs=1e-6)
