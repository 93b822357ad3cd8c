"""Storage schemes as memories: pairs stored with weights q(z)."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from engram.errors import EngramError
from engram.memory import LayerNormed, Linear
from memories import close

PAIRS = {"a": 0, "b": 1, "c": 0}


def test_weights_scale_the_outer_products() -> None:
    """W = Σ q(z) u_{f(z)} e_zᵀ, pair by pair; a mapping, a list and an array say the same."""
    q = [0.5, 2.0, 0.0]
    memory = Linear(8, seed=1)
    memory.store(PAIRS, weights=q)
    u, e = memory.values, memory.inputs
    loop = sum(w * torch.outer(u[[y]][0], e([z])[0]) for w, (z, y) in zip(q, PAIRS.items(), strict=True))
    assert isinstance(loop, torch.Tensor)
    assert close(memory.W, loop)
    for same in (dict(zip(PAIRS, q, strict=True)), np.array(q), torch.tensor(q)):
        other = Linear(8, seed=1)
        other.store(PAIRS, weights=same)
        assert torch.equal(other.W, memory.W)


def test_a_scheme_is_a_memory() -> None:
    """With orthonormal keys the score of the right value is q(z), and what has weight 0 is not recalled."""
    memory = Linear(4, law="orthonormal")
    memory.store({0: "x", 1: "y", 2: "y"}, weights=[1.0, 0.25, 0.0])
    assert memory.margin(0) == pytest.approx(1)
    assert memory.margin(1) == pytest.approx(0.25)
    assert memory.margin(2) == pytest.approx(0)
    assert memory.recall(1) == "y"
    assert memory.strength() == pytest.approx(1.25 / 3)
    assert memory.edit(1, "x").changed == ()


def test_without_weights_everything_is_as_it_was() -> None:
    plain, ones = Linear(8), Linear(8)
    plain.store(PAIRS)
    ones.store(PAIRS, weights=np.ones(3))
    assert torch.equal(plain.W, ones.W)
    assert plain.strength() == 1


def test_pairs_may_come_in_portions_and_copies_stay_apart() -> None:
    memory, whole = Linear(8), Linear(8)
    memory.store({"a": 0}, weights=[3.0])
    before = memory.copy()
    memory.store(PAIRS, weights={"a": 3.0, "b": 2.0})  # c has weight 1
    whole.store(PAIRS, weights=[3.0, 2.0, 1.0])
    assert close(memory.W, whole.W)
    assert before.weights == {"a": 3.0}


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda m: m.store(PAIRS, weights=[1.0]), "weights: 3 pairs need 3 of them; got 1"),
        (lambda m: m.store(PAIRS, weights={"a": 1.0, "z": 1.0}), "weights: 'z' is no key of these pairs"),
        (lambda m: m.store(PAIRS, weights=[1.0, float("nan"), 1.0]), "weights: must be a finite number; got nan"),
        (lambda m: m.store(PAIRS, weights=3), "weights: got 3, which is neither"),
        (lambda m: m.store({"old": 1}, weights=[2.0]), "weights: 'old' is stored with weight 1; got 2"),
    ],
)
def test_bad_weights_are_told_in_one_line(act: Callable[[Linear], object], told: str) -> None:
    memory = Linear(8)
    memory.store({"old": 1})
    before = memory.W
    with pytest.raises(EngramError) as error:
        act(memory)
    assert told in str(error.value)
    assert "\n" not in str(error.value)
    assert memory.W is before
    assert list(memory.pairs) == ["old"]
    assert memory.weights == {}


@pytest.mark.parametrize("rule", ["one-step", "trained"])
def test_rules_that_choose_their_own_weights_refuse_them(rule: str) -> None:
    with pytest.raises(EngramError, match=f"weights: rule='{rule}' chooses its own; use rule='hebb'"):
        Linear(8, rule=rule).store(PAIRS, weights=[1.0, 1.0, 1.0])  # type: ignore[arg-type]


def test_a_layer_norm_takes_weights_too() -> None:
    memory = LayerNormed(64)
    memory.store(PAIRS, weights=[1.0, 1.0, 1.0])
    assert memory.accuracy() == 1
