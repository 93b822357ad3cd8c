"""Closed forms of gradients equal automatic differentiation, and the backward vectors are those of the models."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.models import Simplified
from engram.theory import backward, lemmas

sizes = st.integers(2, 7)


@settings(max_examples=25, deadline=None)
@given(A=sizes, T=sizes, N=sizes, d=sizes, seed=st.integers(0, 2**31))
def test_lemmas_4_and_5_equal_autograd(A: int, T: int, N: int, d: int, seed: int) -> None:
    (row,) = lemmas.attention_closed_forms(1, seed, A, T, N, d)
    assert max(row.values()) < 1e-10


@settings(max_examples=25, deadline=None)
@given(A=sizes, T=sizes, N=sizes, d=sizes, seed=st.integers(0, 2**31))
def test_every_gradient_is_a_sum_of_outer_products(A: int, T: int, N: int, d: int, seed: int) -> None:
    (row,) = backward.outer_products(1, seed, A, T, N, d)
    assert max(row.values()) < 1e-10
    assert set(row) == set(backward.MATRICES)


def test_backward_speaks_of_the_simplified_model() -> None:
    model = Simplified(d=8, blocks=("attention", "attention", "linear"), scale="unit")
    w, tokens, _ = backward.model_problem(3, 6, 7, 8, seed=0, index=0)
    assert torch.allclose(model.forward(w, tokens).logits, backward.forward(w, tokens).logits, atol=1e-12, rtol=0)


@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_the_gradient_vanishes_where_the_lemma_says(scale: float) -> None:
    """Without Φ2 no attention can help; without W2 the first layer cannot."""
    v = lemmas.attention_problem(4, 5, 6, 7, seed=1, index=0)
    X, P, U, p = (v[name] for name in ("X", "P", "U", "p_joint"))
    assert (lemmas.lemma4_gradient(X, v["Z"], U, scale * v["Phi2"], p).abs().max() > 0) == bool(scale)
    found = lemmas.lemma5_gradient(X, P, U, v["Phi1"], v["Phi2"], scale * v["W2"], p)
    assert (found.abs().max() > 0) == bool(scale)
