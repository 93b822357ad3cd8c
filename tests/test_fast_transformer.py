"""The path that computes the last layer only where the loss reads it gives the numbers of the readable one."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.bench import noisy
from engram.bench.baselines import transformer_loss
from engram.errors import EngramError
from engram.learning import SGD, Plan, choose_path, fast_layers, fast_transformer, reference
from engram.models import Layer, Transformer, Weights
from engram.tasks import Batch

N, T = 7, 9
KINDS = st.builds(
    Layer, queries=st.sampled_from(["matrix", "identity"]), feed_forward=st.sampled_from(["none", "linear", "mlp"])
)
MODELS = st.builds(
    Transformer,
    d=st.just(6),
    hidden=st.just(10),
    layers=st.lists(KINDS, min_size=1, max_size=3).map(tuple),
    scale=st.sampled_from(["standard", "unit"]),
)


def weights(model: Transformer, seed: int) -> Weights:
    return {name: value.double() for name, value in model.init(N, T, seed).items()}


def random_batch(seed: int, B: int, share: float) -> Batch:
    """Two groups, `read` and `also`; the others are in none."""
    rng = np.random.default_rng(seed)
    tokens, which = rng.integers(0, N, (B, T + 1)), rng.random((B, T))
    groups = {"read": which < share, "also": which > 1 - share / 4, "rest": (which >= share) & (which <= 1 - share / 4)}
    return Batch(tokens[:, :-1], tokens[:, 1:], groups)


@settings(max_examples=40, deadline=None)
@given(MODELS, st.integers(0, 99), st.sampled_from([0.0, 0.1, 0.4, 0.8]), st.sampled_from(["read", "all"]))
def test_gradients_are_those_of_the_reference(model: Transformer, seed: int, share: float, loss: str) -> None:
    """Of every matrix, embeddings among them, and all metrics: to 1e-10, also where nothing is read."""
    w, batch = weights(model, seed), random_batch(seed, 5, share)
    one, two = (path.gradients(model, w, batch, loss, model.names) for path in (reference, fast_transformer))
    assert one.positions == two.positions
    assert two.metrics == pytest.approx(one.metrics, rel=1e-10, nan_ok=True)
    for name in model.names:
        apart, size = one.gradients[name] - two.gradients[name], one.gradients[name].abs().max()
        assert apart.abs().max() <= 1e-10 * max(1.0, size), name


def test_nothing_read_in_some_sequences() -> None:
    model, batch = Transformer(d=6, hidden=10), random_batch(0, 4, 0.4)
    batch.groups["read"][1:3] = False
    w, tokens, read = weights(model, 0), torch.from_numpy(batch.tokens), torch.from_numpy(batch.groups["read"])
    found = fast_transformer.logits_at(model, w, tokens, read)
    assert torch.allclose(found, model.forward(w, tokens).logits[read], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("change", [{"norm": "pre"}, {"layers": (Layer(heads=2),)}])
def test_which_models_have_it(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a kernel, too; other models need one."""
    monkeypatch.setattr(fast_layers, "kernel", lambda: None)
    plan = Plan(optimiser=SGD(lr=0.1), steps=1, batch=1, trained=("U",))
    assert choose_path("auto", Transformer(d=6), plan, "cpu") == "fast"
    other = Transformer(d=6).model_copy(update=change)
    assert choose_path("auto", other, plan, "cpu") == "reference"
    with pytest.raises(EngramError, match="one head a layer"):
        choose_path("fast", other, plan, "cpu")


def test_the_plain_baseline_is_the_same_model() -> None:
    """What the benchmark is compared with has the loss of ours."""
    batch = noisy.TASK.sample(0, 0, 2)
    w = noisy.MODEL.init(noisy.TASK.N, noisy.TASK.T, 0)
    plain = transformer_loss(noisy.MODEL, w, batch, noisy.LOSS)
    ours = fast_transformer.gradients(noisy.MODEL, w, batch, noisy.LOSS, ())
    assert ours.metrics["loss"] == pytest.approx(float(plain), rel=1e-5)
