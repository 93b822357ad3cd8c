"""Truncation by rank and by share: the nearest matrix, its error, and layers that are truncated for a while."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from engram.errors import EngramError
from engram.memory import Linear
from engram.memory.stored import Stored, truncated
from engram.memory.truncation import Factors, rank_of_share, truncate_layer, truncated_layer
from engram.models import Simplified
from engram.models.memories import memories_of
from engram.specs import Check
from engram.tasks import Bigram
from engram.theory import truncation
from engram.values import law_named
from memories import few, seeds, shuffled

sides = st.integers(1, 12)
shares = st.floats(0, 1)


def matrix(m: int, n: int, seed: int) -> Tensor:
    return torch.randn(m, n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@few
@given(m=sides, n=sides, share=shares, seed=seeds)
def test_the_error_is_the_tail_of_the_spectrum(m: int, n: int, share: float, seed: int) -> None:
    W = matrix(m, n, seed)
    factors, rank = Factors.of(W), rank_of_share(share, (m, n))
    tail = float(torch.linalg.svdvals(W)[rank:].square().sum().sqrt())
    assert float((W - factors.keep_share(share)).norm()) == pytest.approx(tail, abs=1e-10)
    assert factors.tail(rank) == pytest.approx(tail, abs=1e-10)
    assert torch.linalg.matrix_rank(factors.keep(rank)) <= rank


@few
@given(m=sides, n=sides, one=shares, two=shares, seed=seeds)
def test_truncations_are_nested(m: int, n: int, one: float, two: float, seed: int) -> None:
    """The smaller rank decides, in either order; so the same truncation twice is one."""
    factors, (r, s) = Factors.of(matrix(m, n, seed)), (rank_of_share(share, (m, n)) for share in (one, two))
    for first, second in ((r, s), (s, r), (r, r)):
        again = Factors.of(factors.keep(first)).keep(second)
        assert float((again - factors.keep(min(first, second))).norm()) < 1e-10


@few
@given(m=sides, n=sides, rank=st.integers(0, 12), seed=seeds)
def test_no_matrix_of_that_rank_is_nearer(m: int, n: int, rank: int, seed: int) -> None:
    """Neither a random one, nor one beside the truncation itself."""
    W = matrix(m, n, seed)
    left, right = matrix(m, rank, seed + 1), matrix(rank, n, seed + 2)
    kept = Factors.of(W).keep(rank)
    beside = (kept if rank else left @ right) @ (torch.eye(n) + 0.01 * matrix(n, n, seed + 3))
    for other in (left @ right, beside):
        assert float((W - kept).norm()) <= float((W - other).norm()) + 1e-12


@few
@given(m=sides, n=sides, seed=seeds, dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]))
def test_everything_kept_is_the_matrix_itself_and_nothing_kept_is_zero(
    m: int, n: int, seed: int, dtype: torch.dtype
) -> None:
    W = matrix(m, n, seed).to(dtype)
    assert torch.equal(Factors.of(W).keep_share(1.0), W)
    assert torch.equal(Factors.of(W).keep_share(0.0), torch.zeros_like(W))
    assert Factors.of(W).keep_share(0.5).dtype == dtype


@pytest.mark.parametrize("n", [1, 7, 10, 64, 100, 256, 1000])
def test_a_share_in_hundredths_keeps_what_is_written(n: int) -> None:
    """0.29 · 100 is 28.999999999999996 for a machine: 29 values are meant."""
    for percent in range(101):
        assert rank_of_share(percent / 100, (n, n + 3)) == percent * n // 100
        assert rank_of_share(percent * 0.01, (n + 3, n)) == percent * n // 100
    assert [rank_of_share(share, (1024, 256)) for share in (0, 0.1, 0.2)] == [0, 25, 51]


@few
@given(m=sides, n=sides, rows=st.integers(1, 4), seed=seeds, ranks=st.sets(st.integers(0, 12), min_size=1))
def test_products_with_every_rank_are_sums_of_the_same_terms(
    m: int, n: int, rows: int, seed: int, ranks: set[int]
) -> None:
    W, x = matrix(m, n, seed), matrix(rows, n, seed + 1)
    allowed = sorted(rank for rank in ranks if rank <= min(m, n))
    found = [(rank, y.clone()) for rank, y in Factors.of(W).products(x, allowed)]
    assert [rank for rank, _ in found] == allowed
    for rank, y in found:
        assert torch.allclose(y, x @ truncated(W, rank).T, rtol=0, atol=1e-10)


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: rank_of_share(1.5, (3, 3)), r"share: must be a number from 0 to 1; got 1\.5"),
    (lambda: rank_of_share(-0.1, (3, 3)), r"share: must be a number from 0 to 1; got -0\.1"),
    (lambda: rank_of_share(float("nan"), (3, 3)), "share: must be a number from 0 to 1; got nan"),
    (lambda: Factors.of(torch.zeros(3)), r"W: a matrix is needed; got a tensor of shape \(3,\)"),
    (lambda: Factors.of(torch.full((2, 2), torch.nan)), "W: an entry is not finite, so it has no singular values"),
    (lambda: Factors.of(torch.eye(3)).keep(-1), "rank: must be a whole number of at least 0; got -1"),
    (lambda: Linear(4).truncate_share(2), "share: must be a number from 0 to 1; got 2"),
]


@pytest.mark.parametrize(("call", "says"), WRONG, ids=[says for _, says in WRONG])
def test_what_is_no_share_is_refused(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(EngramError, match=f"^{says}"):
        call()


def stored_memories() -> list[Stored]:
    model, task = Simplified(d=10, blocks=("attention", "attention", "linear")), Bigram(K=3, T=12)
    return memories_of(model, model.init(task.N, task.T, 0), task)


def test_every_memory_of_a_model_is_truncated_by_share() -> None:
    for stored in stored_memories():
        for share in np.linspace(0, 1, 11).tolist():
            cut, rank = stored.truncate_share(share), rank_of_share(share, (10, 10))
            assert torch.equal(cut.W, stored.W if rank == 10 else truncated(stored.W, rank))
            assert cut.labels == stored.labels


def test_a_linear_memory_is_truncated_by_share() -> None:
    memory = Linear(12, seed=0)
    memory.store(shuffled(12, 5, 0))
    assert torch.equal(memory.truncate_share(0.5).W, memory.truncate(6).W)
    assert torch.equal(memory.truncate_share(1).W, memory.W)
    assert not memory.truncate_share(0).W.any()
    assert memory.truncate_share(0.5).pairs == memory.pairs


@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_of_torch_is_truncated_without_its_bias(bias: bool) -> None:
    layer, x = nn.Linear(6, 9, bias=bias), torch.randn(4, 6)
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    cut = truncated_layer(layer, 0.5)
    expected = x @ truncated(layer.weight.detach(), 3).T + (layer.bias.detach() if bias else 0)
    assert torch.allclose(cut(x).detach(), expected, atol=1e-6)
    cut.weight.detach().zero_()
    assert all(torch.equal(layer.state_dict()[name], value) for name, value in before.items()), "it is another layer"


@few
@given(m=sides, n=sides, share=shares, seed=seeds, fails=st.booleans())
def test_a_layer_truncated_for_a_while_is_restored_to_the_bit(
    m: int, n: int, share: float, seed: int, fails: bool
) -> None:
    torch.manual_seed(seed)
    layer = nn.Linear(n, m)
    before, parameter = layer.weight.detach().clone(), layer.weight
    try:
        with truncate_layer(layer, share):
            assert layer.weight is parameter, "an optimiser and tied layers still hold it"
            assert torch.equal(layer.weight, Factors.of(before).keep_share(share))
            if fails:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        assert fails
    assert layer.weight is parameter
    assert torch.equal(layer.weight, before)


def test_the_law_of_truncation_holds() -> None:
    law = law_named("truncation.identity")
    assert law is not None
    rows = list(law(draws=3, seed=0, m=9, n=14))
    assert [set(row) for row in rows] == [{"draw", "error", "again", "whole"}] * 3
    assert max(row[name] for row in rows for name in ("error", "again")) < 1e-10
    assert {row["whole"] for row in rows} == {0.0}
    assert Check(law="truncation.identity", sizes={"m": 9, "n": 14}, draws=3)


def test_the_law_of_truncation_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounded factors, as a library that truncates in float32 has them, are far outside 1e-10."""
    exact = Factors.product
    monkeypatch.setattr(Factors, "product", lambda self, rank: exact(self, rank).float().double())
    (row,) = truncation.identity(draws=1, seed=0, m=9, n=14)
    assert row["error"] > 1e-10
    assert row["whole"] == 0
