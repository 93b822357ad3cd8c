"""The noise behind a trigger is learned from few samples, in-context recall from many: closed forms and counts."""

from itertools import product
from math import comb, exp, log

import numpy as np
import pytest
import torch
from torch import Tensor

from engram.errors import EngramError
from engram.theory.context_gradients import (
    Bags,
    draw_bags,
    feedforward_gradient,
    feedforward_moments,
    value_gradient,
    value_moments,
)
from engram.theory.context_samples import (
    LAST_COUNT,
    attention_limit,
    attention_samples,
    crossover,
    entry_law,
    feedforward_crossing,
    feedforward_samples,
    noise_learned,
    recalled_share,
)
from engram.theory.context_streams import attention, feedforward, noise_wins, recalled
from engram.values import generator


def autograd(bags: Bags, N: int, weights: Tensor | None = None) -> tuple[np.ndarray, np.ndarray]:
    """−∂L/∂W_F and −∂L/∂W_V at zero of softmax cross-entropy, with one-hot embeddings and uniform attention."""
    n, q = len(bags.labels), N - 1
    W_F, W_V = (torch.zeros(N + 1, N + 1, dtype=torch.float64, requires_grad=True) for _ in range(2))
    triggers = np.full((n, 1), q)
    tokens = torch.from_numpy(np.concatenate([triggers, bags.tokens, triggers], axis=1).astype(int))
    x = torch.nn.functional.one_hot(tokens, N + 1).double()
    logits = x[:, -1] @ W_F.T + x.mean(1) @ W_V.T
    losses = torch.nn.functional.cross_entropy(logits, torch.from_numpy(bags.labels), reduction="none")
    (losses.mean() if weights is None else losses @ weights).backward()
    assert W_F.grad is not None
    assert W_V.grad is not None
    return -W_F.grad.numpy(), -W_V.grad.numpy()


def all_bags(N: int, T: int, alpha: float) -> tuple[Bags, np.ndarray]:
    """Every bag with its label, and its probability."""
    labels, tokens, weights = [], [], []
    for output, noisy, hidden, *fillers in product(range(N - 1), (0, 1), (0, 1), *[range(N - 1)] * (T - 3)):
        labels.append(N if noisy else output)
        tokens.append([N if hidden else output, *fillers])
        coins = np.where([noisy, hidden], alpha, 1 - alpha).prod()
        weights.append(coins / (N - 1) ** (T - 2))
    return Bags(np.array(labels), np.array(tokens)), np.array(weights)


@pytest.mark.parametrize(("N", "T", "alpha"), [(3, 3, 0.5), (3, 5, 0.2), (4, 6, 0.7)])
def test_expected_gradients_are_those_of_autograd_on_every_bag(N: int, T: int, alpha: float) -> None:
    bags, weights = all_bags(N, T, alpha)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    W_F, W_V = autograd(bags, N, torch.from_numpy(weights))
    assert np.abs(feedforward_moments(N, alpha)[0] - W_F[:, N - 1]).max() < 1e-10
    assert np.abs(np.delete(W_F, N - 1, axis=1)).max() == 0  # the last token is always the trigger
    assert np.abs(value_moments(N, T, alpha)[0] - W_V).max() < 1e-10


@pytest.mark.parametrize(("N", "T", "alpha"), [(3, 5, 0.2), (4, 5, 0.7)])
def test_variances_are_those_of_single_samples(N: int, T: int, alpha: float) -> None:
    bags, weights = all_bags(N, T, alpha)
    singles = [Bags(bags.labels[i : i + 1], bags.tokens[i : i + 1]) for i in range(len(weights))]
    for gradient, (mean, variance) in (
        (lambda bag: feedforward_gradient(bag, N), feedforward_moments(N, alpha)),
        (lambda bag: value_gradient(bag, N), value_moments(N, T, alpha)),
    ):
        found = np.array([gradient(bag) for bag in singles])
        assert np.abs(np.tensordot(weights, (found - mean) ** 2, 1) - variance).max() < 1e-12


def test_gradients_from_counts_are_those_of_autograd() -> None:
    bags = draw_bags(generator(3, "test"), 50, 12, 8, 0.5)
    W_F, W_V = autograd(bags, 12)
    assert np.abs(feedforward_gradient(bags, 12) - W_F[:, 11]).max() < 1e-10
    assert np.abs(value_gradient(bags, 12) - W_V).max() < 1e-10


def test_noise_is_the_best_answer_to_every_token_until_it_is_left_out() -> None:
    mean, _ = value_moments(64, 16, 0.5)
    assert (mean[:, :63].argmax(0) == 64).all()
    assert (mean[:-1, :63].argmax(0) == np.arange(63)).all()


def test_bags_are_what_they_should_be() -> None:
    N, T, alpha, n = 6, 10, 0.3, 40_000
    bags = draw_bags(generator(0, "test"), n, N, T, alpha)
    assert bags.tokens.shape == (n, T - 2)
    noisy, hidden = bags.labels == N, bags.tokens[:, 0] == N
    assert abs(noisy.mean() - alpha) < 0.01
    assert abs((noisy & hidden).mean() - alpha**2) < 0.01  # two coins
    seen = ~noisy & ~hidden
    assert (bags.tokens[seen, 0] == bags.labels[seen]).all()
    assert set(np.unique(bags.tokens[:, 1:])) == set(range(N - 1))  # fillers are neither trigger nor noise


def margins(N: int, n: int) -> float:
    """P(noise has the most labels) for α = 1/2, by all sequences of labels."""
    hits = 0.0
    for labels in product(range(N), repeat=n):  # N − 1 stands for noise
        counts = np.bincount(labels, minlength=N)
        hits += (counts[-1] > counts[:-1].max()) * np.where(np.array(labels) == N - 1, 0.5, 0.5 / (N - 1)).prod()
    return hits


@pytest.mark.parametrize(("N", "n"), [(3, 5), (4, 4), (5, 5)])
def test_the_law_of_the_noise_margin_is_exact(N: int, n: int) -> None:
    assert noise_learned(N, 0.5, n)[1:] == pytest.approx([margins(N, m) for m in range(1, n + 1)], abs=1e-12)


def test_samples_of_the_feedforward_path_do_not_grow() -> None:
    """Without repeated labels two of noise are enough: (n + 1)/2ⁿ ≤ 0.05 first holds at n = 8."""
    assert [feedforward_samples(N, 0.5) for N in (64, 256, 10**6)] == [9, 8, 8]
    assert feedforward_samples(10**7, 0.1) == min(n for n in range(2, 99) if 0.9**n + n * 0.1 * 0.9 ** (n - 1) <= 0.05)


def test_entries_have_the_law_of_their_counts() -> None:
    """Mean and variance of the law of a count follow from those of the gradient's entry."""
    N, T, alpha, n = 24, 12, 0.4, 700
    for own in (True, False):
        law = entry_law(n, N, T, alpha, own)
        counts = np.arange(len(law))
        assert law.sum() == pytest.approx(1, abs=1e-10)
        p = (1 - alpha) / (N - 1)
        mean = n * p * ((T - 3) / (N - 1) + own * (1 - alpha))
        assert counts @ law == pytest.approx(mean, rel=1e-9)
    few = entry_law(3, 3, 3, 0.5, True)  # a hit is a label 0 and a successor 0: (1/4)·(1/2)
    assert few[:4] == pytest.approx([comb(3, c) * 0.125**c * 0.875 ** (3 - c) for c in range(4)], abs=1e-12)


@pytest.mark.parametrize(("N", "T", "alpha", "n"), [(16, 8, 0.5, 400), (24, 12, 0.3, 500)])
def test_recalled_tokens_are_as_many_as_the_law_says(N: int, T: int, alpha: float, n: int) -> None:
    streams = 200
    shares = [recalled(5, s, n, N, T, alpha) for s in range(streams)]
    assert abs(np.mean(shares) - recalled_share(n, N, T, alpha)) < 4 * np.std(shares) / streams**0.5 + 0.005


def test_counts_in_parts_are_the_argmax_of_the_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recall from counts is that of the gradient's columns, however many columns are counted at once."""
    N, T, n = 20, 8, 500
    whole = recalled(1, 0, n, N, T, 0.5)
    monkeypatch.setattr("engram.theory.context_streams.ENTRIES_AT_ONCE", 3 * N)
    assert recalled(1, 0, n, N, T, 0.5) == whole
    bags = draw_bags(generator(1, "context.attention.0"), 4096, N, T, 0.5)
    best = value_gradient(Bags(bags.labels[:n], bags.tokens[:n]), N)[: N - 1, : N - 1]
    others = np.where(np.eye(N - 1, dtype=bool), -np.inf, best).max(0)
    assert whole == pytest.approx(np.mean(np.diag(best) > others + 1e-12))
    assert 0.3 < whole < 1


def test_more_samples_begin_with_the_same() -> None:
    rng = [noise_wins(2, 50, steps, 16, 0.5) for steps in (20, 70)]
    assert (rng[0] == rng[1][:, :20]).all()


def test_noise_wins_where_its_labels_are_the_most() -> None:
    wins = noise_wins(4, 4000, 12, 8, 0.5).mean(0)
    assert np.abs(wins - noise_learned(8, 0.5, 12)[1:]).max() < 4 * 0.5 / 4000**0.5


def test_measured_samples_are_near_the_law() -> None:
    (row,) = attention(draws=40, seed=0, N=16, T=8, alpha=0.5)
    assert abs(log(row["crossing"] / attention_samples(16, 8, 0.5))) < 0.2
    assert row["below"] < 0.9 <= row["share"]
    (row,) = feedforward(draws=2000, seed=0, N=16, alpha=0.5)
    assert abs(row["n"] - feedforward_samples(16, 0.5)) <= 1
    assert abs(row["crossing"] - feedforward_crossing(16, 0.5)) < 1
    assert row["n"] - 1 < row["crossing"] <= row["n"]


def test_far_beyond_the_crossover_two_hits_are_enough() -> None:
    """1 − (1 + s)e^−s = 0.9, s = 3.89; and the exponent of n in N rises from below 0.6 to 1."""
    assert (1 + LAST_COUNT) * exp(-LAST_COUNT) == pytest.approx(0.1, abs=1e-9)
    ratios = [attention_samples(N, 8, 0.5) / attention_limit(N, 0.5) for N in (256, 2**14, 2**20)]
    assert ratios[0] > ratios[1] > ratios[2]
    assert ratios[2] == pytest.approx(1, abs=0.01)
    assert crossover(31, 0.5) == pytest.approx(crossover(17, 0.5) * (28 / 14) ** 2)
    n = [attention_samples(N, 16, 0.5) for N in (64, 512, 4096)]
    assert log(n[1] / n[0]) < log(n[2] / n[1])


@pytest.mark.parametrize(
    ("sizes", "field"),
    [((2, 8, 0.5), "N"), ((8, 2, 0.5), "T"), ((8, 8, 0.0), "alpha"), ((8, 8, 1.0), "alpha")],
)
def test_sizes_that_make_no_context_are_refused(sizes: tuple[int, int, float], field: str) -> None:
    with pytest.raises(EngramError, match=field):
        value_moments(*sizes)
    with pytest.raises(EngramError, match=field):
        next(attention(1, 0, *sizes))


def test_noise_that_is_too_rare_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("context_samples", "context_streams"):
        monkeypatch.setattr(f"engram.theory.{module}.LONGEST", 64)
    with pytest.raises(EngramError, match="alpha"):
        feedforward_samples(65, 0.02)
    with pytest.raises(EngramError, match="alpha"):
        next(feedforward(10, 0, 65, 0.02))


def test_a_search_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engram.theory.context_streams.MOST", 100)
    with pytest.raises(EngramError, match="alpha"):
        next(attention(1, 0, 16, 8, 0.5))
