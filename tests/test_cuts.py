"""A transformer with one matrix truncated: all matrices and shares at once are the model run once for each of them."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.errors import EngramError
from engram.memory.truncation import Factors
from engram.models import Layer, Simplified, Transformer, Weights
from engram.models.construct import plant
from engram.models.factual import Factual
from engram.models.trace import Architecture
from engram.probes.answers import recall_in_context
from engram.probes.truncation import SHARES, Map, Products, sorted_map, sweep, unseen_map
from engram.tasks import Batch, Bigram, NoisyRecall

TASK = Bigram(K=2, T=12)
IDENTITY = Layer(queries="identity", feed_forward="mlp")


def weights(model: Architecture, seed: int, dtype: torch.dtype = torch.float64) -> Weights:
    """Biases drawn, too: zero ones would hide that they are missing."""
    rng = torch.Generator().manual_seed(seed)
    w = {name: value.to(dtype) for name, value in model.init(TASK.N, TASK.T, seed).items()}
    return {n: torch.randn(len(W), dtype=dtype, generator=rng) if W.ndim == 1 else W for n, W in w.items()}


def plain(
    model: Architecture, w: Weights, batch: Batch, name: str, share: float, group: str, noise: int | None
) -> dict[str, float]:
    """Truncate, then run the whole model."""
    cut = w | {name: Factors.of(w[name]).keep_share(share)}
    rows = torch.from_numpy(batch.groups[group])
    logits = model.forward(cut, torch.from_numpy(batch.tokens)).logits[rows]
    return recall_in_context(logits, torch.from_numpy(batch.targets)[rows], noise)


layers = st.lists(
    st.one_of(
        st.builds(Layer, heads=st.sampled_from([1, 2]), feed_forward=st.sampled_from(["none", "linear", "mlp"])),
        st.builds(Layer, queries=st.just("identity"), feed_forward=st.sampled_from(["none", "linear", "mlp"])),
    ),
    min_size=1,
    max_size=2,
)


@settings(max_examples=10)
@given(
    layers=layers,
    norm=st.sampled_from(["none", "pre"]),
    scale=st.sampled_from(["standard", "unit"]),
    sizes=st.tuples(st.sampled_from([2, 4, 8]), st.integers(1, 10)),
    group=st.sampled_from(["in_context", "global"]),
    seed=st.integers(0, 99),
    biases=st.sampled_from([(), ("K", "F"), ("Q", "K", "V", "O", "I", "F")]),
)
def test_the_sweep_is_the_plain_way(
    layers: list[Layer], norm: Any, scale: Any, sizes: tuple[int, int], group: str, seed: int, biases: Any
) -> None:
    """To 1e-10 in float64: every metric of a matrix and a share that are drawn, of any shape of transformer."""
    turns = seed % 2 and all(sizes[0] // layer.heads % 2 == 0 for layer in layers)
    more: Any = {"positions": "rotary" if turns else "embedded", "biases": biases}
    model = Transformer(d=sizes[0], hidden=sizes[1], layers=tuple(layers), norm=norm, scale=scale, **more)
    w, batch, draw = weights(model, seed), TASK.sample(seed, 0, 6), np.random.default_rng(seed)
    found = sweep(model, w, batch, group, (0.0, 0.3, 0.5, 1.0), noise=3)
    assert found.matrices == tuple(name for name in model.names if name.startswith("W_"))
    for name in found.matrices:
        share = float(draw.choice(found.shares))
        expected = plain(model, w, batch, name, share, group, 3)
        assert found.at(name, share) == pytest.approx(expected, abs=1e-10, nan_ok=True), "NaN without a position"


@pytest.mark.parametrize("blocks", [("attention", "attention"), ("attention", "attention", "linear")])
def test_the_sweep_of_simplified_is_the_plain_way(blocks: Any) -> None:
    model = Simplified(d=8, blocks=blocks)
    w, batch = weights(model, 0), TASK.sample(0, 0, 6)
    found = sweep(model, w, batch)
    assert found.matrices == model.names[3:]
    for name in found.matrices:
        for share in (0.0, 0.4, 1.0):
            expected = plain(model, w, batch, name, share, "in_context", None)
            assert found.at(name, share) == pytest.approx(expected, abs=1e-10)


def test_in_single_precision_the_sweep_is_the_plain_way_to_1e_5() -> None:
    model = Transformer(d=16, hidden=64, layers=(IDENTITY, IDENTITY))
    w, batch = weights(model, 0, torch.float32), TASK.sample(0, 0, 16)
    found = sweep(model, w, batch)
    for name in found.matrices:
        for share in (0.0, 0.2, 0.7, 1.0):
            expected = plain(model, w, batch, name, share, "in_context", None)
            for metric in ("loss", "p_correct"):
                assert found.at(name, share)[metric] == pytest.approx(expected[metric], abs=1e-5)


def test_a_whole_map_takes_at_most_forty_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two layers, ten matrices, eleven shares: the plain way takes 110. Portions of the batch change nothing."""
    task, model = Bigram(K=1, T=32), Transformer(d=32, hidden=128, layers=(IDENTITY, IDENTITY))
    w, batch = model.init(task.N, task.T, 0), task.sample(0, 0, 12)
    found = sweep(model, w, batch)
    assert (len(found.matrices), len(found.shares), found.plain_passes) == (10, 11, 110)
    assert 5 < found.passes <= 40
    monkeypatch.setattr("engram.probes.truncation.TOKENS_AT_ONCE", 5 * task.T)
    parts = sweep(model, w, batch)
    assert parts.passes <= found.passes, "sequences are filled up to the longest of a portion only"
    for name in found.matrices:
        assert parts.at(name, 0.3) == pytest.approx(found.at(name, 0.3), abs=1e-5)


def test_a_map_of_sorted_sequences_is_the_same_and_takes_fewer_passes() -> None:
    """Among clean sequences there are some of nothing but triggers: each fills up all others of its portion."""
    task, model = NoisyRecall(T=64), Transformer(d=16, hidden=64, layers=(IDENTITY, IDENTITY))
    w = model.init(task.N, task.T, 0)
    drawn, found = (make(task, model, w, 0, "in_context", 512) for make in (unseen_map, sorted_map))
    assert found.passes < 40 < drawn.passes
    assert found.positions == drawn.positions
    for name in found.matrices:
        assert found.at(name, 0.3) == pytest.approx(drawn.at(name, 0.3), abs=1e-5)


def test_a_pass_is_what_the_model_multiplies() -> None:
    """Attention: keys, values and outputs, scores and mixtures; feed-forward: in and out; at last U. Nothing else."""
    B, T, d, hidden = 3, TASK.T, 8, 16
    model = Transformer(d=d, hidden=hidden, layers=(IDENTITY, IDENTITY), norm="pre")
    with Products() as products:
        model.forward(weights(model, 0), torch.from_numpy(TASK.sample(0, 0, B).tokens))
    assert products.multiplications == B * T * (2 * (3 * d * d + 2 * T * d + 2 * d * hidden) + TASK.N * d)


def test_passes_are_counted_while_they_are_made() -> None:
    """More matrices, shares or positions are more multiplications; none but the whole model are about one pass."""
    model = Transformer(d=16, hidden=32, layers=(IDENTITY, IDENTITY))
    w, batch = weights(model, 0), TASK.sample(0, 0, 8)
    nothing = sweep(model, w, batch, shares=(1.0,)).passes
    assert 0.5 < nothing <= 1
    few, more = (sweep(model, w, batch, shares=(0.0, 0.5, 1.0), matrices=names) for names in (("W_F2",), ("W_K1",)))
    assert nothing < few.passes < more.passes < sweep(model, w, batch).passes
    assert sweep(model, w, batch, "global").passes > sweep(model, w, batch, "in_context").passes


def test_planted_memories_are_lost_when_they_are_cut() -> None:
    """Without W_V2 or W_O2 an induction head writes nothing; without its keys it finds less."""
    task, model = Bigram(K=3, T=48), Simplified(d=512, scale="unit")
    w = plant(model, task.N, task.T, seed=0, sharpness=100.0)
    found = sweep(model, w, task.sample(0, 0, 8), shares=(0.0, 1.0))
    assert found.full["accuracy"] > 0.95
    accuracy = {name: found.at(name, 0.0)["accuracy"] for name in found.matrices}
    assert accuracy["W_V2"] == accuracy["W_O2"] < 0.1
    assert max(accuracy["W_K1"], accuracy["W_K2"]) < found.full["accuracy"] - 0.1
    assert all(found.at(name, 1.0) == found.full for name in found.matrices)


def test_the_map_says_what_it_holds() -> None:
    model = Transformer(d=8, hidden=16)
    found = sweep(model, weights(model, 0), TASK.sample(0, 0, 4), shares=(0.0, 0.5, 1.0), noise=2)
    assert isinstance(found, Map)
    assert found.metrics == ("accuracy", "loss", "p_correct", "p_noise")
    table = found.table()
    assert len(table) == len(found.matrices) * 3
    assert table[1] == {"matrix": "W_Q1", "share": 0.5, "rank": 4} | found.at("W_Q1", 0.5)
    assert "W_I2.50%.p_noise" in found.columns()
    assert found.columns()["W_I2.50%.p_noise"] == found.at("W_I2", 0.5)["p_noise"]
    assert len(SHARES) == 11


def test_weights_stay_as_they_are() -> None:
    model = Transformer(d=8, hidden=16, norm="pre")
    w = weights(model, 0)
    before = {name: value.clone() for name, value in w.items()}
    sweep(model, w, TASK.sample(0, 0, 4))
    assert all(torch.equal(w[name], before[name]) for name in before)


def test_what_cannot_be_truncated_is_told_in_one_line() -> None:
    model, batch = Transformer(d=8), TASK.sample(0, 0, 4)
    w = weights(model, 0)
    with pytest.raises(EngramError, match=r"^matrices: unknown 'W_I3'; did you mean W_I\d\?.*allowed: W_Q1, W_K1, "):
        sweep(model, w, batch, matrices=("W_I3",))
    with pytest.raises(EngramError, match=r"^group: unknown 'incontext'; did you mean in_context"):
        sweep(model, w, batch, "incontext")
    with pytest.raises(EngramError, match=r"^share: must be a number from 0 to 1; got 1\.2"):
        sweep(model, w, batch, shares=(1.2,))
    with pytest.raises(EngramError, match=r"^noise: must be a token in 0 … 64; got 65"):
        sweep(model, w, batch, noise=65)
    with pytest.raises(EngramError, match=r"^model: a Transformer or Simplified is needed; got Factual"):
        sweep(Factual(d=8, answers=4), w, batch)


def test_without_a_position_there_is_no_number() -> None:
    model, batch = Transformer(d=8), TASK.sample(0, 0, 4)
    none = Batch(batch.tokens, batch.targets, {"in_context": np.zeros_like(batch.tokens, dtype=bool)})
    found = sweep(model, weights(model, 0), none, shares=(0.0, 1.0))
    assert found.positions == 0
    assert np.isnan(found.at("W_I2", 0.0)["accuracy"])
