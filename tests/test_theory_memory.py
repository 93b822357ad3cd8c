"""Laws of storing and recall: closed forms against autograd, bounds against all codebooks, experiments that run."""

from itertools import product
from math import lgamma, log, log2

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.embeddings import directions
from engram.errors import EngramError
from engram.memory.rules import rounded, thresholded
from engram.theory import architectures, bounds, capacity, lemmas, margins, one_step, precision
from engram.theory.one_step import extreme_scores, noisy

sizes = st.integers(2, 9)
seeds = st.integers(0, 2**32 - 1)
law = settings(deadline=None, max_examples=25)


@law
@given(A=sizes, M=sizes, d=sizes, seed=seeds)
def test_closed_forms_are_the_gradients(A: int, M: int, d: int, seed: int) -> None:
    (row,) = lemmas.matrix_closed_forms(1, seed, A=A, M=M, d=d)
    assert max(row.values()) < 1e-10


@law
@given(N=sizes, M=sizes, d=sizes, seed=seeds)
def test_lemma_2_on_single_tokens_is_lemma_1(N: int, M: int, d: int, seed: int) -> None:
    problem = lemmas.matrix_problem(N, M, d, seed, 0)
    torch.testing.assert_close(lemmas.lemma1_gradient(*problem), lemmas.lemma2_gradient(*problem), rtol=0, atol=1e-12)


@law
@given(N=st.integers(1, 5), M=st.integers(1, 5), seed=seeds)
def test_descent_stays_in_the_span(N: int, M: int, seed: int) -> None:
    for row in lemmas.descent_span(2, seed, N=N, M=M, d=8, steps=5):  # without and with weight decay
        assert row["distance"] < 1e-10 < row["distance.W0"]


@law
@given(N=st.integers(1, 4), M=st.integers(1, 4), seed=seeds)
def test_distance_to_span_is_zero_on_outer_products_only(N: int, M: int, seed: int) -> None:
    W, E, U, alpha = lemmas.matrix_problem(N, M, 6, seed, 0)
    inside = U.T @ alpha.T @ E
    assert lemmas.distance_to_span(inside, E, U) < 1e-10
    assert lemmas.distance_to_span(inside + W, E, U) == pytest.approx(lemmas.distance_to_span(W, E, U), abs=1e-8)


@law
@given(N=st.integers(2, 8), T=st.integers(1, 6), seed=seeds)
def test_one_step_scores(N: int, T: int, seed: int) -> None:
    (row,) = one_step.clean(1, seed, N=N, d=16)
    assert row["error"] < 1e-10
    for at_t in one_step.noisy(1, seed, N=N, T=T, d=16):
        assert max(at_t["error.scores"], at_t["error.W1"]) < 1e-10


def test_margin_and_low_rank_margin_have_the_derived_variance() -> None:
    (full,) = margins.hebb_margins(4000, 0, d=8, N=12)
    (low,) = margins.low_rank_margins(8000, 0, d=8, N=12, m=4)
    assert full["mean"] == pytest.approx(1, abs=0.02)
    assert full["variance"] == pytest.approx(capacity.margin_variance(12, 8), rel=0.03)
    assert low["variance"] == pytest.approx(capacity.low_rank_margin_variance(12, 8, 4), rel=0.06)


@law
@given(d=st.integers(2, 300), N=st.integers(2, 10_000))
def test_many_ranks_make_full_rank(d: int, N: int) -> None:
    assert capacity.low_rank_margin_variance(N, d, 10**9) == pytest.approx(capacity.margin_variance(N, d), rel=1e-6)


@law
@given(d=st.integers(4, 500))
def test_capacity_laws_solve_their_equations(d: int) -> None:
    for N, x in ((capacity.linear_trained_capacity(d), d**2 / 1.3), (capacity.mlp_capacity(d), d / 0.35)):
        assert N * log(N) == pytest.approx(x, rel=1e-12)
    assert capacity.sharp_capacity(d) < capacity.linear_trained_capacity(d)


def test_printed_variance_is_short_by_the_pairs_it_leaves_out() -> None:
    for d in (4, 64, 1000):
        lacking = margins.OVERLAPS["x·Wx"][1](d) - margins.printed_variance(d)
        assert lacking == pytest.approx(d * (d - 1) / 2 / d**3)


@law
@given(N=st.integers(1, 12), M=st.integers(2, 6), seed=seeds)
def test_top_k_reaches_the_bound(N: int, M: int, seed: int) -> None:
    for row in bounds.top_k(3, seed, N=N, M=M):
        assert abs(row["gap"]) < 1e-12


@law
@given(N=st.integers(1, 12), M=st.integers(2, 6), seed=seeds, B=st.floats(0, 40), more=st.floats(0, 40))
def test_bound_falls_with_bits_to_zero_at_the_information(N: int, M: int, seed: int, B: float, more: float) -> None:
    p = bounds.decreasing_law(N, seed)
    assert bounds.loss_lower_bound(p, M, 0) == pytest.approx(log(M))
    assert bounds.loss_lower_bound(p, M, B + more) <= bounds.loss_lower_bound(p, M, B) + 1e-15
    assert bounds.loss_lower_bound(p, M, N * log2(M)) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("N", "M", "B"), [(3, 2, 1), (3, 2, 2), (2, 3, 1), (2, 4, 1)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_codebook_beats_the_bound(N: int, M: int, B: int, seed: int) -> None:
    (row,) = bounds.best_codebook(1, seed, N=N, M=M, B=B)
    assert row["gap"] > -1e-12
    if log2(M) % 1 == 0:  # whole bits can be given to the likeliest input
        assert row["gap"] < 1e-12


def test_best_codebook_is_what_a_plain_search_finds() -> None:
    p, functions = bounds.decreasing_law(2, 5), list(product(range(2), repeat=2))

    def loss(codes: tuple[int, ...]) -> float:
        groups = [[f for f, code in zip(functions, codes, strict=True) if code == c] for c in (0, 1)]
        return sum(len(g) / 4 * p[x] * entropy([f[x] for f in g]) for g in groups if g for x in (0, 1))

    def entropy(values: list[int]) -> float:
        shares = [values.count(v) / len(values) for v in set(values)]
        return -sum(q * log(q) for q in shares)

    (row,) = bounds.best_codebook(1, 5, N=2, M=2, B=1)
    assert row["least"] == pytest.approx(min(loss(codes) for codes in product((0, 1), repeat=4)))


def test_permutation_bits_count_permutations_and_errors() -> None:
    assert bounds.permutation_bits(10) == pytest.approx(lgamma(11) / log(2))
    found = [bounds.permutation_bits(100, error) for error in (0.0, 0.01, 0.1)]
    assert found == sorted(found, reverse=True)


@law
@given(levels=st.integers(1, 20).map(lambda n: 2 * n), seed=seeds)
def test_rounding_moves_no_entry_by_more_than_half_a_step(levels: int, seed: int) -> None:
    W = directions("gaussian", 7, 7, seed, "W", torch.float64)[None]
    found = rounded(W, levels)
    top = float(W.abs().max())
    assert float((found - W).abs().max()) <= top / (levels - 1) * (1 + 1e-12)
    assert len(np.unique(found.numpy().round(9))) <= levels
    assert float(found.abs().max()) == pytest.approx(top)


@law
@given(seed=seeds)
def test_certified_levels_keep_every_margin_within_a_half(seed: int) -> None:
    E, U = (directions("sphere", 6, 8, seed, name, torch.float64)[None] for name in "EU")
    W = U.mT @ E
    levels = 2 * int(np.ceil(precision.certified_levels(E, U, W) / 2))
    scores, kept = (E @ matrix.mT @ U.mT for matrix in (W, rounded(W, levels)))
    moved = (scores - kept)[0]
    assert float((moved[:, :, None] - moved[:, None, :]).abs().max()) <= 0.5 + 1e-12


def test_too_many_pairs_are_refused() -> None:
    with pytest.raises(EngramError, match=r"^N: .* d=8"):
        list(precision.bits_needed(100, 0, smallest=8, largest=8, load=0.9))


@law
@given(N=st.integers(2, 60), d=st.integers(6, 20), seed=seeds)
def test_threshold_mlp_answers_with_the_stored_value(N: int, d: int, seed: int) -> None:
    E, U = (directions("sphere", N, d, seed, name, torch.float64) for name in "EU")
    b = architectures.threshold_bias(E)
    torch.testing.assert_close(thresholded(E @ E.T, U, b), (1 - b) * U, rtol=0, atol=1e-12)


def test_least_squares_leaves_what_does_not_fit_into_its_rank() -> None:
    (row,) = architectures.sets(1, 0, d=64, names=16)
    assert row["residual"] == pytest.approx(1 - 16 / 120, abs=0.03)
    assert row["threshold"] == 1


def test_factorised_scores_spread_as_derived() -> None:
    (row,) = architectures.factorised_scores(400, 0, d=64, m=16, n=10)
    assert row["right.mean"] == pytest.approx(1, abs=0.03)
    assert row["wrong.std"] == pytest.approx(architectures.factorised_std(10, 64, 16), rel=0.03)


def test_overlaps_of_random_embeddings_move_the_extreme_scores_of_one_step() -> None:
    """The mean keeps to the law for embeddings that do not overlap; the least and the largest score do not."""
    N, d = 16, 128
    rows = [row for seed in range(60) for row in noisy(1, seed, N=N, T=4, d=d)]
    least, most = extreme_scores(N, d)
    means = {name: sum(row[name] for row in rows) / len(rows) for name in ("right.mean", "right.least", "wrong.most")}
    assert means["right.mean"] == pytest.approx(1 - 1 / N, abs=0.02)
    assert means["right.least"] == pytest.approx(least, abs=0.03)
    assert means["wrong.most"] == pytest.approx(most, abs=0.03)
