"""Memories that are one matrix: rules, edits, truncation, quantisation."""

from math import inf

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from engram.embeddings import LAWS
from engram.memory import (
    Linear,
    quantisation_bound,
)
from memories import close, few, seeds, shuffled


@few
@given(n=st.integers(1, 16), extra=st.integers(0, 8), seed=seeds)
def test_orthonormal_vectors_are_recalled_exactly(n: int, extra: int, seed: int) -> None:
    memory = Linear(n + extra, seed=seed, law="orthonormal")
    memory.store({f"key {i}": f"value {i}" for i in range(n)})
    assert close(memory.scores(), torch.eye(n, dtype=torch.float64))
    assert memory.accuracy() == 1
    assert memory.margin() == (inf if n == 1 else pytest.approx(1, abs=1e-10))


@few
@given(n=st.integers(2, 12), M=st.integers(1, 6), seed=seeds, data=st.data())
def test_an_edit_of_orthonormal_keys_changes_nothing_else(n: int, M: int, seed: int, data: st.DataObject) -> None:
    memory = Linear(12, seed=seed, law="orthonormal")
    memory.store(shuffled(n, M, seed))
    others = list(memory.pairs)
    key = others.pop(data.draw(st.integers(0, n - 1)))
    new = data.draw(st.sampled_from([*memory.values, "never heard"]))
    before = memory.scores(others)
    edit = memory.edit(key, new)
    assert close(memory.scores(others)[:, : before.shape[1]], before)
    assert memory.recall(key) == memory.pairs[key] == new
    assert (edit.key, edit.new, edit.changed) == (key, new, ())
    assert edit.largest < 1e-10
    assert memory.accuracy() == 1


@few
@given(seed=seeds, d=st.integers(4, 12), rule=st.sampled_from(["hebb", "one-step", "trained"]))
def test_an_edit_tells_what_it_disturbed(seed: int, d: int, rule: str) -> None:
    memory = Linear(d, seed=seed, rule=rule, steps=5)  # type: ignore[arg-type]
    memory.store(shuffled(2 * d, d, seed))
    old, target = memory.copy(), list(memory.values)[-1]
    edit = memory.edit(3, target)
    assert edit.old == old.pairs[3]
    assert memory.recall(3) == target  # unit values: u_y · u_y > u_y · u_k
    others = [key for key in memory.pairs if key != 3]
    assert set(edit.changed) == {key for key in others if old.recall(key) != memory.recall(key)}
    assert edit.largest == pytest.approx(float((old.scores(others) - memory.scores(others)).abs().max()), abs=1e-12)
    assert (edit.margin_before, edit.margin_after) == (old.margin(), memory.margin())
    assert old.pairs[3] == edit.old, "a copy does not see later edits"


@few
@given(seed=seeds, d=st.integers(2, 16), data=st.data())
def test_truncation_error_is_the_tail_of_the_spectrum(seed: int, d: int, data: st.DataObject) -> None:
    memory = Linear(d, seed=seed, law="gaussian")
    memory.store(shuffled(3 * d, d, seed))
    rank = data.draw(st.integers(1, d))
    cut = memory.truncate(rank)
    tail = memory.spectrum()[rank:].square().sum().sqrt()
    assert float((memory.W - cut.W).norm()) == pytest.approx(float(tail), abs=1e-10 * float(memory.W.norm()))
    assert torch.linalg.matrix_rank(cut.W) <= rank
    assert cut.pairs == memory.pairs
    if rank == d:
        assert close(cut.scores(), memory.scores(), 1e-10 * float(memory.scores().abs().max()))


@few
@given(seed=seeds, bits=st.integers(1, 12), law=st.sampled_from(LAWS), n=st.integers(2, 16))
def test_quantising_costs_no_more_margin_than_the_bound(seed: int, bits: int, law: str, n: int) -> None:
    memory = Linear(16, seed=seed, law=law)  # type: ignore[arg-type]
    memory.store({i: -i for i in range(n)})
    rounded = memory.quantise(bits)
    step = float(2 * memory.W.abs().max()) / (2**bits - 1)
    rounding = 1e-12 * float(memory.scores().abs().max())
    assert float((rounded.W - memory.W).abs().max()) <= step / 2 + rounding
    assert len(torch.unique((rounded.W / step).mul(2).round())) <= 2**bits
    assert rounded.margin() >= memory.margin() - quantisation_bound(memory, bits) - rounding


@pytest.mark.parametrize("rule", ["one-step", "trained"])
def test_a_matrix_of_zeros_can_be_quantised_and_edited(rule: str) -> None:
    memory = Linear(4, rule=rule)  # type: ignore[arg-type]
    memory.store({"a": 1, "b": 1})  # one value: p̂ = p and the gradient is zero
    assert close(memory.quantise(3).W, torch.zeros(4, 4))
    memory.edit("a", 2)
    assert memory.recall("a") == 2


@few
@given(seed=seeds, n=st.integers(1, 12), M=st.integers(1, 6), lr=st.floats(0.1, 10))
def test_one_step_is_the_gradient_step(seed: int, n: int, M: int, lr: float) -> None:
    memory = Linear(7, seed=seed, law="gaussian/d", rule="one-step", lr=lr)
    memory.store(shuffled(n, M, seed))
    E, U = memory.keys.vectors, memory.values.vectors
    W = torch.zeros(7, 7, dtype=torch.float64, requires_grad=True)
    cross_entropy(E @ W.T @ U.T, torch.tensor(memory.values.rows(memory.pairs.values()))).backward()
    assert W.grad is not None
    assert close(memory.W, -lr * W.grad, 1e-12)
