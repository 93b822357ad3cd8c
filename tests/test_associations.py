"""The task of pairs and the memories that are written instead of trained."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.learning import stores
from engram.memory.rules import targets
from engram.models.stores import Outer, OuterLowRank, Written, lecun
from engram.tasks import Association


@settings(deadline=None, max_examples=30)
@given(n=st.integers(2, 40), M=st.integers(1, 50), seed=st.integers(0, 2**31))
def test_associations(n: int, M: int, seed: int) -> None:
    assert Association().answers(n, seed).tolist() == list(range(n))
    assert sorted(Association(kind="permutation").answers(n, seed).tolist()) == list(range(n))
    assert Association(kind="modulo", M=M).answers(n, seed).tolist() == [i % M for i in range(n)]
    floor = Association(kind="floor", M=M).answers(n, seed)
    assert floor.tolist() == [i * M // n for i in range(n)]
    drawn = Association(kind="random", M=M, inputs=2).answers(n, seed)
    assert len(drawn) == n * n
    assert drawn.min() >= 0
    assert drawn.max() < M


def test_a_seed_is_a_codebook() -> None:
    """A larger size only adds directions; two inputs are sums of two directions."""
    small, large = Association().problem(5, 8, 3, draws=2), Association().problem(9, 8, 3, draws=2)
    assert torch.equal(small.X, large.X[:, :5])
    two = Association(kind="random", M=4, inputs=2).problem(3, 8, 0)
    grid = two.X.view(3, 3, 8)
    assert torch.allclose(grid[0] - grid[1], (grid[0, 0] - grid[1, 0]).expand(3, 8), atol=1e-6)


@pytest.mark.parametrize("model", [Outer(d=64), OuterLowRank(d=64, m=64)])
def test_written_memories_store_a_few_pairs(model: Written) -> None:
    assert stores.write_store(model, Association().problem(5, 64, 0, draws=4), 0).accuracy == 1


def test_written_memory_of_orthonormal_keys_is_exact() -> None:
    X = torch.eye(8)[None]
    assert torch.allclose(Outer(d=8).answers(X, X.roll(1, 1), 0), X.roll(1, 1))
    f = torch.tensor([[2, 0, 1]])
    assert torch.equal(targets(X, f), X[:, f[0]])


def test_first_weights_have_the_published_law() -> None:
    """Variance 1/d, cut at two standard deviations of the uncut normal."""
    W = lecun(400, 100, 0, "W") * 10
    assert float(W.var()) == pytest.approx(1, rel=0.03)
    assert float(W.abs().max()) <= 2 / 0.8796 + 1e-3
