"""The compiled path of the general transformer gives the numbers of the readable one, and records keep their path."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.api import recheck
from engram.bench import hops
from engram.errors import EngramError, Interrupted
from engram.learning import PATHS, SGD, Plan, choose_path, fast_layers, fast_transformer, reference
from engram.models import Layer, Transformer, Weights
from engram.native import kernel
from engram.records import Record
from engram.runner.execute import execute
from engram.specs import Train
from engram.tasks import Batch, Bigram

pytestmark = pytest.mark.skipif(kernel() is None, reason="no C++ compiler on PATH")
HEADS = {1: 1, 6: 3, 20: 5, 66: 2, 136: 8}  # of each width, several heads; 66 and 136 are more than a panel of columns
PRE = {"d": 12, "norm": "pre", "hidden": 20}


@st.composite
def models(draw: st.DrawFn) -> Transformer:
    d = draw(st.sampled_from(sorted(HEADS)))
    kinds = st.sampled_from(["none", "linear", "mlp"])
    several = st.builds(Layer, heads=st.sampled_from([1, HEADS[d]]), feed_forward=kinds)
    one = st.builds(Layer, queries=st.just("identity"), feed_forward=kinds)
    layers = tuple(draw(st.lists(several | one, min_size=1, max_size=3)))
    choices: dict[str, Any] = {"scale": ["standard", "unit"], "norm": ["none", "pre"], "hidden": [3, 70]}
    drawn = {name: draw(st.sampled_from(values)) for name, values in choices.items()}
    drawn["biases"] = tuple(letter for letter in "QKVOIF" if draw(st.booleans())) if draw(st.booleans()) else ()
    even = all(d // layer.heads % 2 == 0 for layer in layers)
    drawn["positions"] = draw(st.sampled_from(["embedded", "rotary"])) if even else "embedded"
    return Transformer(d=d, layers=layers, **drawn)


def random_batch(seed: int, N: int, B: int, T: int, share: float) -> Batch:
    """Two groups, `read` and `also`, and the rest."""
    rng = np.random.default_rng(seed)
    tokens, which = rng.integers(0, N, (B, T + 1)), rng.random((B, T))
    groups = {"read": which < share, "also": which > 1 - share / 4, "rest": (which >= share) & (which <= 1 - share / 4)}
    return Batch(tokens[:, :-1], tokens[:, 1:], groups)


def weights(model: Transformer, N: int, T: int, seed: int, dtype: torch.dtype = torch.float64) -> Weights:
    """Biases drawn, too: zero ones would hide that they are missing."""
    draw = torch.Generator().manual_seed(seed)
    w = {name: value.to(dtype) for name, value in model.init(N, T, seed).items()}
    return {n: torch.randn(len(W), dtype=dtype, generator=draw) if W.ndim == 1 else W for n, W in w.items()}


def assert_equal(model: Transformer, w: Weights, batch: Batch, loss: str, names: tuple[str, ...], to: float) -> None:
    one, two = (path.gradients(model, w, batch, loss, names) for path in (reference, fast_layers))
    assert one.positions == two.positions
    assert two.metrics == pytest.approx(one.metrics, rel=to, abs=to, nan_ok=True)
    assert list(two.gradients) == list(names)
    largest = max((float(g.abs().max()) for g in one.gradients.values()), default=0.0)
    for name in names:
        assert two.gradients[name].shape == w[name].shape
        assert (one.gradients[name] - two.gradients[name]).abs().max() <= to * max(1.0, largest), name


@settings(max_examples=120, deadline=None)
@given(
    models(), st.data(), st.integers(0, 99), st.sampled_from([2, 7, 70]), st.integers(1, 3), st.sampled_from([1, 23]),
    st.integers(1, 3), st.sampled_from([0.0, 0.1, 0.4, 0.8]), st.sampled_from(["read", "all"]),
)  # fmt: skip
def test_gradients_are_those_of_the_reference(
    model: Transformer, data: st.DataObject, seed: int, N: int, B: int, T: int, threads: int, share: float, loss: str
) -> None:
    """Every shape and every trained subset, to 1e-10 in float64; the model may have more positions than sequences."""
    names = tuple(sorted(data.draw(st.sets(st.sampled_from(model.names)) | st.just(set(model.names)))))
    torch.set_num_threads(threads)
    w = weights(model, N, T + seed % 3, seed)
    assert_equal(model, w, random_batch(seed, N, B, T, share), loss, names, 1e-10)


def test_a_training_of_published_size_in_float32() -> None:
    model = Transformer(d=128, hidden=512, layers=(Layer(heads=4, feed_forward="mlp"),) * 4, norm="pre")
    w = weights(model, 23, 99, 0, torch.float32)
    assert_equal(model, w, random_batch(0, 23, 2, 99, 0.5), "all", model.names, 1e-5)


def test_same_threads_same_bytes() -> None:
    model, batch = Transformer(**PRE), random_batch(0, 7, 9, 40, 0.4)
    w = weights(model, 7, 40, 0, torch.float32)
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        first, again = (fast_layers.gradients(model, w, batch, "all", model.names).gradients for _ in range(2))
        assert all(torch.equal(first[name], again[name]) for name in first)


@pytest.mark.parametrize("name", ["E", "W_Q1", "W_V1", "W_I2", "W_F2", "U"])
def test_a_weight_that_is_no_number_shows_in_the_loss(name: str) -> None:
    model, batch = Transformer(**PRE), random_batch(0, 7, 2, 9, 0.4)
    w = weights(model, 7, 9, 0, torch.float32)
    w[name][1, 2] = float("nan")
    assert np.isnan(fast_layers.gradients(model, w, batch, "all", ("U",)).metrics["loss"])


def test_overflow_shows_in_the_loss() -> None:
    model, batch = Transformer(**PRE), random_batch(0, 7, 2, 9, 0.4)
    w = weights(model, 7, 9, 0, torch.float32)
    w["W_K1"] *= 1e25
    w["W_Q1"] *= 1e25
    for path in (reference, fast_layers):
        assert np.isnan(path.gradients(model, w, batch, "all", ("U",)).metrics["loss"])


def test_what_does_not_fit_is_refused_before_the_kernel() -> None:
    model, batch = Transformer(**PRE), random_batch(0, 7, 2, 9, 0.4)
    for wrong in (weights(model, 7, 8, 0), weights(model, 5, 9, 0), weights(model, 7, 9, 0, torch.float16)):
        with pytest.raises(EngramError, match=r"does not fit|float32 or float64"):
            fast_layers.gradients(model, wrong, batch, "all", ("U",))


@pytest.mark.parametrize(
    ("change", "own"),
    [({}, fast_transformer), ({"norm": "pre"}, fast_layers), ({"layers": (Layer(heads=2),)}, fast_layers)],
)
def test_which_models_have_it(change: dict[str, Any], own: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that had a fast path keep it, and with it the bytes of their records."""
    model, batch = Transformer(d=6, hidden=5).model_copy(update=change), random_batch(0, 7, 2, 9, 0.4)
    plan = Plan(optimiser=SGD(lr=0.1), steps=1, batch=1, trained=model.names)
    assert choose_path("auto", model, plan, "cpu") == "fast"
    w = weights(model, 7, 9, 0, torch.float32)
    one, two = (path(model, w, batch, "all", ("U",)).gradients["U"] for path in (PATHS["fast"], own.gradients))
    assert torch.equal(one, two)
    assert choose_path("auto", model, plan, "cuda") == ("fast" if own is fast_transformer else "reference")


def test_a_record_keeps_the_path_that_it_began_on(tmp_path: Path) -> None:
    """Those begun on the readable one, before there was another, are resumed and checked on it, to the byte."""
    plan = Plan(optimiser=SGD(lr=0.1, momentum=0.9), steps=8, batch=3, trained=("E", "U", "W_Q1", "W_F2"), loss="all")
    spec = Train(task=Bigram(K=3, T=20), model=Transformer(**PRE), plan=plan)
    whole = execute(spec, tmp_path / "whole", path="reference")
    rows: list[object] = []
    with pytest.raises(Interrupted):
        execute(spec, tmp_path / "part", on_row=rows.append, stop=lambda: len(rows) == 4, path="reference")
    resumed, fresh = execute(spec, tmp_path / "part"), execute(spec, tmp_path / "fresh")
    assert (_paths(resumed), _paths(fresh)) == ({"reference"}, {"fast"})
    assert (resumed.folder / "rows.jsonl").read_bytes() == (whole.folder / "rows.jsonl").read_bytes()
    for record in (whole, resumed, fresh):
        checked = recheck(record, everything=True)
        assert (checked["ok"], checked["to_the_byte"]) == (True, True)


def _paths(record: Record) -> set[str]:
    return {sitting["path"] for sitting in record.env["sittings"]}


def test_the_baseline_of_the_benchmark_is_the_same_model() -> None:
    """What the benchmark is compared with has our loss and our gradients."""
    pytest.importorskip("transformers", reason="transformers is not installed; pip install 'engram[hf]'")
    w, batch = hops.MODEL.init(hops.TASK.N, hops.TASK.T, 0), hops.TASK.sample(0, 0, 2)
    found = hops.gpt2_model(hops.MODEL, w)
    plain = hops.gpt2_loss(found, batch)
    plain.backward()
    ours = fast_layers.gradients(hops.MODEL, w, batch, "all", ("E", "W_F2"))
    assert ours.metrics["loss"] == pytest.approx(plain.item(), rel=1e-5)
    pairs = {"E": found.transformer.wte.weight.grad, "W_F2": found.transformer.h[1].mlp.c_proj.weight.grad.T}
    for name, gradient in pairs.items():
        assert (ours.gradients[name] - gradient).norm() <= 1e-4 * gradient.norm()


def test_without_the_baseline_the_benchmark_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hops, "find_spec", lambda name: None)
    assert list(hops.steps(None)) == []
    assert "step.hops: skipped, since transformers is not installed" in capsys.readouterr().err
