"""Pointer doubling: the algorithm under hard attention, and the same as weights of a transformer."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.errors import EngramError
from engram.laws.hops import composition, doubling
from engram.models.doubling import plant_composition, plant_hops
from engram.models.trace import Model
from engram.tasks import Batch, Composition, Hops
from engram.tasks.hops import found, strings
from engram.theory import hops as theory
from engram.theory.hops import (
    bits_of,
    hop_depth,
    index_bits,
    most_hops,
    one_layer_error,
    one_layer_width,
    pointer_doubling,
)


def wrong(model: Model, batch: Batch) -> int:
    """Positions that are answered wrongly."""
    return int((model(batch.tokens).logits.argmax(dim=2).numpy() != batch.targets).sum())


def test_depth_is_that_of_the_theorem() -> None:
    for k in range(1, 200):
        assert hop_depth(k) == int(np.floor(np.log2(k))) + 2
        assert most_hops(hop_depth(k) - 1) < k <= most_hops(hop_depth(k))
        assert sum(bit << i for i, bit in enumerate(reversed(bits_of(k)))) == k
        assert len(bits_of(k)) == hop_depth(k) - 1


@pytest.mark.parametrize("k", range(32))
def test_hard_attention_finds_every_hop(k: int) -> None:
    """Check E2 of the literature's theorem: ⌊log₂k⌋ + 2 layers, on strings in which k hops often exist."""
    letters = strings(np.random.default_rng(k), 20, 120, 4)
    assert np.array_equal(pointer_doubling(letters, bits_of(k)), found(letters, k))
    assert (found(letters, k) >= 0).any()


@given(data=st.data(), A=st.integers(2, 6), n=st.integers(1, 30), k=st.integers(0, 12))
@settings(max_examples=40, deadline=None)
def test_hard_attention_on_any_string(data: st.DataObject, A: int, n: int, k: int) -> None:
    """Equal neighbours too, which the task never draws."""
    letters = np.array([data.draw(st.lists(st.integers(0, A - 1), min_size=n, max_size=n))])
    assert np.array_equal(pointer_doubling(letters, bits_of(k)), found(letters, k))


@pytest.mark.parametrize("k", [0, 1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 21, 31])
def test_planted_weights_hop(k: int) -> None:
    task = Hops(length=98, most=31, hops=(k,))
    planted, batch = plant_hops(task, k), task.sample(k, 0, 6)
    assert len(planted.architecture.layers) == hop_depth(k)  # type: ignore[attr-defined]
    assert wrong(planted, batch) == 0
    assert k > 20 or batch.groups[f"hop{k}"].any()


@pytest.mark.parametrize("letters", [2, 3, 9])
def test_planted_weights_hop_on_every_short_string(letters: int) -> None:
    """All strings of length 6 without equal neighbours over three letters, and some over others."""
    task = Hops(letters=letters, length=6, most=5)
    every = np.array([X for X in product(range(min(letters, 3)), repeat=6) if all(a != b for a, b in pairwise(X))])
    for k in range(6):
        assert wrong(plant_hops(task, k), task.ask(every, np.full(len(every), k))) == 0


def test_planted_weights_attend_where_the_algorithm_does() -> None:
    """Round r looks at find^(c+b): for k = 6 the hops 1, 1 + 1 and 3."""
    task = Hops(length=40, hops=(6,))
    batch = task.sample(0, 0, 4)
    trace, letters = plant_hops(task, 6)(batch.tokens), batch.tokens[:, 1:]
    assert float(trace.attention[0].diagonal(-1, 2, 3).min()) > 1 - 1e-12
    for attention, hops in zip(trace.attention[1:], (1, 2, 3), strict=True):
        where = attention[:, 0, 1:].argmax(dim=2).numpy() - 1
        assert np.array_equal(where, found(letters, hops))
        assert float(attention.max(dim=3).values.min()) > 1 - 1e-12


def test_a_layer_less_does_not_suffice() -> None:
    """At k = 2^j no number of hops that one layer less reaches gives hop_k; k − 2 comes nearest, half of the time."""
    letters = strings(np.random.default_rng(0), 50, 98, 4)
    for k in (1, 2, 4, 8, 16):
        right, at = found(letters, k), np.take_along_axis
        for fewer in range(most_hops(hop_depth(k) - 1) + 1):
            other = found(letters, fewer)
            same = at(letters, np.maximum(right, 0), 1) == at(letters, np.maximum(other, 0), 1)
            assert same[right >= 0].mean() < 0.6


@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 2), (5, 4), (5, 8), (7, 4), (4, 16)])
@pytest.mark.parametrize("hidden", [0, 1])
def test_planted_weights_compose(n: int, k: int, hidden: int) -> None:
    for hops in Composition(n=n, k=k).powers:
        task = Composition(n=n, k=k, hops=(hops,), hidden=hidden)
        planted = plant_composition(task, hops)
        assert len(planted.architecture.layers) == int(np.log2(hops)) + 1  # type: ignore[attr-defined]
        assert wrong(planted, task.sample(7, 0, 20)) == 0


def test_planted_compositions_look_where_the_theorem_says() -> None:
    """Layer i from (a, b) to (a + 2^(i−2), hop(b)); layer 1 to (a + 1, π_{a+1}(b))."""
    task = Composition(n=5, k=4)
    batch = task.sample(0, 0, 3)
    first, second, third = (a[:, 0].argmax(dim=2).numpy() for a in plant_composition(task, 4)(batch.tokens).attention)

    def place(a: int, b: int) -> int:
        return 1 + (task.k - a) * task.n + b

    for row, sigma in enumerate(task.sigma(batch.tokens)):
        for a, b in product(range(4), range(5)):
            one = sigma[a][task.permutations[a][b]]
            assert first[row, place(a, b)] == place(a + 1, task.permutations[a][b])
            assert second[row, place(a, b)] == place(a + 1, one)
            if a <= 2:
                two = sigma[a + 1][task.permutations[a + 1][one]]
                assert third[row, place(a, b)] == place(a + 2, two)


def test_a_planted_composition_knows_its_hidden_permutations_only() -> None:
    task, other = Composition(n=5, k=2, hidden=1), Composition(n=5, k=2, hidden=2)
    planted = plant_composition(task, 2)
    assert wrong(planted, task.sample(0, 0, 50)) == 0
    assert wrong(planted, other.sample(0, 0, 50)) > 100


def test_planted_weights_in_single_precision_too() -> None:
    task = Hops(length=98, hops=(7,))
    planted = plant_hops(task, 7)
    single = Model(planted.architecture, {name: value.to(torch.float32) for name, value in planted.weights.items()})
    assert wrong(single, task.sample(0, 0, 6)) == 0


def test_what_cannot_be_planted_is_refused() -> None:
    with pytest.raises(EngramError, match=r"k: a string of 10 letters has 0 … 10 hops; got 11"):
        plant_hops(Hops(length=10), 11)
    with pytest.raises(EngramError, match=r"hops: must be one of 1, 2, 4; got 3"):
        plant_composition(Composition(), 3)


def test_index_is_hidden_in_strings_of_the_task() -> None:
    """The hop from the last letter of _x₁?x₂_x₃? is the bit that is asked for, and no two neighbours are equal."""
    x_0, x_1, nothing, here = range(4)
    for length in (3, 4, 7):
        m = index_bits(length)
        for bits in product((x_0, x_1), repeat=m):
            for i in range(m):
                marks = [here if j == i else nothing for j in range(m)]
                string = [letter for pair in zip(marks, bits, strict=True) for letter in pair] + [here]
                assert all(a != b for a, b in pairwise(string))
                assert len(string) <= length
                assert string[found(np.array([string]), 1)[0, -1]] == bits[i]


def test_widths_of_one_layer() -> None:
    """Linear in the length; the product of heads, width and bits counts."""
    assert [one_layer_width(n, heads=1, bits=8) for n in (33, 65, 129)] == [1, 3, 7]
    assert one_layer_width(129, heads=2, bits=8) == one_layer_width(129, heads=1, bits=16) == 3
    assert one_layer_width(5, heads=4, bits=32) == 0
    for n in range(3, 200):
        d = one_layer_width(n, heads=2, bits=4)
        assert 2 * (d + 1) * 4 >= index_bits(n)
        assert d == 0 or 2 * d * 4 < index_bits(n)
    assert one_layer_error(64, heads=1, d=11, bits=8) == pytest.approx((384 - 96) / (3 * 384))
    assert one_layer_error(8, heads=8, d=64, bits=16) == 0


def test_nothing_less_than_all_permutations_says_anything() -> None:
    """For n = 3, k = 2: uniform as soon as one of them is averaged over, and certain if none is."""
    rows = list(theory.no_correlation(draws=1, seed=0, n=3, k=2))
    assert [(row["averaged"], row["first"]) for row in rows] == [(0, 0), (1, 0), (1, 1), (2, 1)]
    assert [row["off"] for row in rows] == pytest.approx([2 / 3, 0, 0, 0], abs=1e-12)
    assert [row["uncertain"] for row in rows] == pytest.approx([0, 2 / 3, 2 / 3, 2 / 3], abs=1e-12)
    assert next(theory.no_correlation(draws=1, seed=0, n=2, k=1))["off"] == pytest.approx(1 / 2)


def test_rows_of_the_laws() -> None:
    rows = list(doubling(draws=6, seed=3, most=5, length=30))
    assert [(row["k"], row["layers"]) for row in rows] == [(1, 2), (2, 3), (3, 3), (4, 4), (5, 4)]
    assert {row["wrong"] for row in rows} == {row["hard"] for row in rows} == {0.0}
    assert rows[0]["shallower"] == 0  # hop_1 is never the letter itself
    assert all(0.3 < row["shallower"] < 0.8 for row in rows[1:])
    assert rows == list(doubling(draws=6, seed=3, most=5, length=30))
    (row,) = composition(draws=30, seed=1, n=4, k=4)
    assert row == {"layers": 3.0, "wrong": 0.0, "wrong.answers": 0.0}
