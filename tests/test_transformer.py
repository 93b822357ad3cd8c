"""Laws of the general transformer: it contains Simplified, is torch's, and an ablation changes what it says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, layer_norm, scaled_dot_product_attention

from engram.errors import EngramError, Interrupted
from engram.learning import Adam, Plan, choose_path
from engram.learning.reference import TOKENS_AT_ONCE, gradients
from engram.models import Layer, Simplified, Transformer, Weights
from engram.models.trace import Architecture, Trace
from engram.records import Record
from engram.records.shelf import find
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.encode import build
from engram.specs.settings import with_settings
from engram.specs.spec import run_id
from engram.tasks import Bigram

TASK = Bigram(K=3, T=24)
LINEAR = ("attention", "attention", "linear")
MATCHING = (Layer(queries="identity"), Layer(queries="identity", feed_forward="linear"))
FULL = Transformer(d=12, layers=(Layer(heads=2, feed_forward="mlp"), Layer(heads=3, feed_forward="mlp")), hidden=20)
NORMED = FULL.model_copy(update={"norm": "pre"})


def weights(model: Architecture, seed: int = 0) -> Weights:
    return {name: value.double() for name, value in model.init(TASK.N, TASK.T, seed).items()}


def sequences(B: int = 3) -> torch.Tensor:
    return torch.from_numpy(TASK.sample(0, 0, B).tokens)


def renamed(w: Weights) -> Weights:
    """Matrices of Simplified under the names of the general model."""
    return {"W_F2" if name == "W_F" else name: value for name, value in w.items()}


def same(one: Trace, two: Trace) -> bool:
    """Bit for bit."""
    pairs = zip((*one.scores, *one.attention, one.logits), (*two.scores, *two.attention, two.logits), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("scale", ["standard", "unit"])
def test_two_layers_without_queries_are_simplified(scale: Any) -> None:
    """Logits, attention, what each part writes, and the gradient of every matrix: equal to 1e-10."""
    simplified, general = Simplified(d=10, scale=scale, blocks=LINEAR), Transformer(d=10, scale=scale, layers=MATCHING)
    w, batch = weights(simplified), TASK.sample(0, 0, 5)
    one, two = simplified.forward(w, sequences(5)), general.forward(renamed(w), sequences(5))
    assert set(general.names) == set(renamed(w))
    for a, b in zip((*one.attention, *one.written.values()), (*two.attention, *two.written.values()), strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-10)
    assert torch.allclose(one.logits, two.logits, rtol=0, atol=1e-10)
    expected = gradients(simplified, w, batch, "all", simplified.names)
    found = gradients(general, renamed(w), batch, "all", tuple(renamed(w)))
    assert found.metrics == pytest.approx(expected.metrics, rel=1e-10)
    for name, gradient in renamed(expected.gradients).items():
        assert torch.allclose(found.gradients[name], gradient, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("scale", "factor"), [("standard", None), ("unit", 1.0)])
@pytest.mark.parametrize("H", [1, 2, 6])
def test_attention_is_the_one_of_torch(H: int, scale: Any, factor: float | None) -> None:
    """Patterns and output of H heads, position by position, against scaled_dot_product_attention."""
    model = Transformer(d=12, layers=(Layer(heads=H),), scale=scale)
    w = weights(model)
    trace = model.forward(w, sequences())
    q, k, v = (
        (trace.written["embedding"] @ w[f"W_{letter}1"].T).unflatten(-1, (H, 12 // H)).transpose(1, 2)
        for letter in "QKV"
    )
    mixed = scaled_dot_product_attention(q, k, v, is_causal=True, scale=factor)
    assert torch.allclose(trace.attention[0] @ v, mixed, rtol=0, atol=1e-12)
    written = mixed.transpose(1, 2).reshape(3, TASK.T, 12) @ w["W_O1"].T
    assert torch.allclose(trace.written["head1"], written, rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_a_full_layer_is_the_one_of_torch() -> None:
    """Pre-norm, several heads, ReLU MLP: torch's TransformerEncoderLayer without biases, then layer norm and U."""
    w = weights(NORMED)
    x = w["E"][sequences()] + w["P"]
    for i, layer in enumerate(NORMED.layers, 1):
        theirs = torch.nn.TransformerEncoderLayer(
            12, layer.heads, 20, dropout=0.0, batch_first=True, norm_first=True, bias=False, dtype=torch.float64
        )
        names = {"out_proj": "W_O", "linear1": "W_I", "linear2": "W_F"}
        state = {name: value for name, value in theirs.state_dict().items() if name.startswith("norm")}
        state |= {f"{'self_attn.' * (n == 'out_proj')}{n}.weight": w[f"{ours}{i}"] for n, ours in names.items()}
        state["self_attn.in_proj_weight"] = torch.cat([w[f"W_{letter}{i}"] for letter in "QKV"])
        theirs.load_state_dict(state)
        future = torch.nn.Transformer.generate_square_subsequent_mask(TASK.T, dtype=torch.float64)
        x = theirs(x, src_mask=future, is_causal=True)
    trace = NORMED.forward(w, sequences())
    assert torch.allclose(trace.x, x, rtol=0, atol=1e-12)
    assert torch.allclose(trace.logits, layer_norm(x, (12,)) @ w["U"].T, rtol=0, atol=1e-12)


@pytest.mark.parametrize("model", [FULL, NORMED, Transformer(d=8, layers=(Layer(), *MATCHING))])
def test_what_is_written_adds_up(model: Transformer) -> None:
    """The residual stream at its end is the sum of its parts, named in order."""
    trace = model.forward(weights(model), sequences())
    assert torch.allclose(torch.stack(list(trace.written.values())).sum(dim=0), trace.x, rtol=0, atol=1e-12)
    blocks = [("head",) if layer.feed_forward == "none" else ("head", "W_F") for layer in model.layers]
    assert list(trace.written) == ["embedding", *(f"{part}{i}" for i, parts in enumerate(blocks, 1) for part in parts)]
    assert [pattern.shape[1] for pattern in trace.attention] == [layer.heads for layer in model.layers]


@pytest.mark.parametrize("model", [FULL, NORMED])
def test_nothing_looks_ahead(model: Transformer) -> None:
    """Attention is causal and sums to one; the beginning of a sequence does not know its end."""
    w, tokens = weights(model), sequences()
    trace = model.forward(w, tokens)
    for pattern in trace.attention:
        assert not pattern.triu(1).any()
        assert torch.allclose(pattern.sum(dim=-1), torch.ones_like(pattern[..., 0]))
    changed = tokens.clone()
    changed[:, 15:] = (changed[:, 15:] + 1) % TASK.N
    assert torch.allclose(model.forward(w, changed).logits[:, :15], trace.logits[:, :15], rtol=0, atol=1e-12)
    assert torch.allclose(model.forward(w, tokens[:, :15]).logits, trace.logits[:, :15], rtol=0, atol=1e-12)


def test_what_is_left_of_a_layer_is_told_by_its_description() -> None:
    """Weights that do not belong to a layer change nothing: its queries and feed-forward layer are what it says."""
    model = Transformer(d=12, layers=MATCHING)
    w = weights(model)
    more = w | {"W_Q1": w["W_K1"], "W_Q2": w["W_K2"], "W_I2": w["W_K1"], "W_F1": w["W_K2"]}
    assert same(model.forward(more, sequences()), model.forward(w, sequences()))


@pytest.mark.parametrize("tokens_at_once", [1, 2 * TASK.T, 10**6])
def test_gradients_of_parts_add_up(tokens_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sequence at a time, two, or all: the gradient of every matrix is that of one pass over the whole batch."""
    monkeypatch.setitem(TOKENS_AT_ONCE, "cpu", tokens_at_once)
    w, batch = weights(NORMED), TASK.sample(0, 0, 5)
    measured = gradients(NORMED, w, batch, "all", NORMED.names)
    leaves = {name: value.clone().requires_grad_() for name, value in w.items()}
    logits = NORMED.forward(leaves, torch.from_numpy(batch.tokens)).logits
    loss = cross_entropy(logits.flatten(0, 1), torch.from_numpy(batch.targets).flatten())
    assert measured.metrics["loss"] == pytest.approx(loss.item(), rel=1e-10)
    assert {"E", "P", "U", "W_Q1", "W_I2", "W_F2"} <= set(measured.gradients)
    for name, gradient in zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True):
        assert gradient.any()
        assert torch.allclose(measured.gradients[name], gradient, rtol=0, atol=1e-10)


def test_frozen_matrices_have_no_gradient() -> None:
    w, batch = weights(NORMED), TASK.sample(0, 0, 5)
    some, all_of_them = ("W_Q2", "P"), gradients(NORMED, w, batch, "in_context", NORMED.names).gradients
    found = gradients(NORMED, w, batch, "in_context", some).gradients
    assert tuple(found) == some
    assert all(torch.allclose(found[name], all_of_them[name], rtol=0, atol=1e-12) for name in some)
    assert not any(value.requires_grad or value.grad is not None for value in w.values())


def test_first_values_are_those_of_simplified_where_names_agree() -> None:
    """And a matrix of the mlp is uniform on ±1/√(its columns)."""
    simplified, w = Simplified(d=12).init(7, 9, 3), FULL.init(7, 9, 3)
    assert all(torch.equal(w[name], simplified[name]) for name in simplified)
    assert {name: tuple(w[name].shape) for name in ("W_I1", "W_F1", "P")} == {
        "W_I1": (20, 12), "W_F1": (12, 20), "P": (9, 12),
    }  # fmt: skip
    wide = Transformer(d=64, hidden=400).init(7, 9, 0)["W_F2"]
    assert wide.abs().max() <= 1 / 20
    assert wide.var().item() == pytest.approx(1 / 1200, rel=0.05)


INVALID: list[tuple[Callable[[Train], object], str]] = [
    (lambda _: build(Transformer, {"d": 10, "layers": (Layer(heads=3),)}), "^layers: 3 heads do not divide d=10"),
    (lambda spec: with_settings(spec, {"model.d": 15}), r"^model\.layers: 2 heads do not divide d=15"),
    (lambda _: build(Layer, {"heads": 2, "queries": "identity"}), "^queries: 'identity' needs heads=1"),
    (lambda spec: with_settings(spec, {"model.layers": []}), r"^model\.layers: "),
    (lambda spec: with_settings(spec, {"model.hidden": 2**20 + 1}), r"^model\.hidden: .*1048576; got 1048577"),
    (
        lambda spec: with_settings(spec, {"model.layers.0.hedas": 2}),
        r"^model\.layers\.0\.hedas: no such field in Layer; did you mean heads\? allowed: heads, queries, feed_forw",
    ),
    (
        lambda spec: with_settings(spec, {"model.layers": [{"heads": 2}, {"hedas": 2}]}),
        r"^model\.layers\.1\.hedas: no such field in Layer; did you mean heads\?",
    ),
    (
        lambda spec: with_settings(spec, {"model.layers": [{"heads": 2, "queries": "identity"}]}),
        r"^model\.layers\.0\.queries: 'identity' needs heads=1",
    ),
    (lambda spec: with_settings(spec, {"model.layers.1.heads": "x"}), r"^model\.layers\.1\.heads: .*integer; got 'x'"),
    (
        lambda spec: with_settings(spec, {"model.layers.2.heads": 2}),
        r"^--set model\.layers\.2\.heads: no such field; allowed in model\.layers: 0, 1$",
    ),
    (lambda spec: with_settings(spec, {"model.layers.-1.heads": 2}), r"allowed in model\.layers: 0, 1$"),
    (lambda spec: with_settings(spec, {"model.layers.2": {"heads": 2}}), r"allowed in model\.layers: 0, 1$"),
    (lambda spec: with_settings(spec, {"model.norm": "post"}), r"^model\.norm: .*'none' or 'pre'; got 'post'"),
    (lambda spec: with_settings(spec, {"plan.trained": ["W_Q3"]}), r"^plan\.trained: unknown 'W_Q3'; did you mean W_Q"),
    (lambda spec: with_settings(spec, {"plan.trained": ["W_F"]}), r"^plan\.trained: unknown 'W_F'; did you mean W_F"),
    (
        lambda spec: with_settings(spec, {"plan.at_end": ["mass"]}),
        r"^plan\.at_end: unknown 'mass'; did you mean masses\?",
    ),
    (
        lambda spec: choose_path("fast", spec.model, spec.plan, "cuda"),
        "^--path fast: needs Simplified or Factual on CPU",
    ),
]


@pytest.mark.parametrize(("wrong", "says"), INVALID, ids=[says for _, says in INVALID])
def test_what_does_not_fit_is_told_in_one_line(wrong: Callable[[Train], object], says: str) -> None:
    with pytest.raises(EngramError, match=says) as error:
        wrong(training())
    assert "\n" not in str(error.value)


def training(**plan: object) -> Train:
    """A full transformer, all of it trained, in a fraction of a second."""
    layers = (Layer(heads=2, feed_forward="mlp"), Layer(heads=2, feed_forward="mlp"))
    model = Transformer(d=16, layers=layers, hidden=24, norm="pre")
    fields = {"optimiser": Adam(lr=0.01), "steps": 6, "batch": 4, "trained": model.names, "loss": "all"}
    at_end = {"at_end": ("attribution", "diagonals", "effects", "masses", "preference")}
    return Train(task=TASK, model=model, plan=Plan.model_validate(fields | at_end | plan))


def test_a_training_has_its_probes_in_its_rows(home: Path) -> None:
    """Recall and the KL of W_F when they are due, probes of the trained model in the last row only."""
    record = execute(training(probe_every=2), home)
    assert [("recall.W_K1" in row, "kl.W_F" in row) for row in record.rows] == [(s % 2 == 0,) * 2 for s in range(7)]
    assert {"recall.W_O2", "recall.W_K2", "attention.induction", "accuracy.in_context"} <= set(record.rows[0])
    late = {"diagonal.W_K2.frequency", "preference.unlikely.follows", "mass.previous", "effect.removed.L2H2"}
    late |= {"effect.previous.L1", "effect.successors.L2", "attribution.in_context.head2", "attribution.global.W_F1"}
    assert late <= set(record.rows[-1])
    prefixes = tuple(f"{name.split('.')[0]}." for name in late)
    assert not any(name.startswith(prefixes) for row in record.rows[:-1] for name in row)
    assert record.rows[-1]["loss"] < record.rows[0]["loss"]


def test_a_stored_transformer_can_be_called(home: Path) -> None:
    record = execute(training(at_end=()), home)
    model, first = find(record.id, home).model(), record.model(0)
    assert model([1, 2, 3]).attention[1].shape == (1, 2, 3, 3)
    assert all(torch.equal(first.weights[n], w) for n, w in training().model.init(65, 24, 0).items())
    assert not any(torch.equal(first.weights[n], model.weights[n]) for n in model.weights)
    batch = TASK.sample(0, 6, 4)
    accuracy = model(batch.tokens).logits.argmax(dim=-1).numpy() == batch.targets
    assert record.rows[-1]["accuracy.global"] == pytest.approx(np.mean(accuracy[batch.groups["global"]]), rel=1e-6)


def test_one_layer_has_no_second_attention() -> None:
    model = Transformer(d=8, layers=(Layer(heads=2),))
    trace = model.forward(weights(model), sequences())
    assert trace.attention1.shape == (3, TASK.T, TASK.T)
    with pytest.raises(EngramError, match=r"^attention2: this model has one layer of attention"):
        _ = trace.attention2


def test_a_transformer_that_was_stopped_goes_on_as_if_it_was_not(tmp_path: Path) -> None:
    """The same bytes of rows, digest and last weights."""
    whole, steps = execute(training(), tmp_path / "whole"), iter(range(100))
    with pytest.raises(Interrupted):
        execute(training(), tmp_path / "cut", stop=lambda: next(steps) == 4)
    folder = tmp_path / "cut" / run_id(training())
    assert len(Record(folder).rows) == 4
    execute(training(), tmp_path / "cut")
    for name in ("rows.jsonl", "digest.json", "snapshots/000006.safetensors"):
        assert (folder / name).read_bytes() == (whole.folder / name).read_bytes()


def test_one_layer_is_trained_without_the_probes_of_two(tmp_path: Path) -> None:
    """It has no induction head to be asked, but its feed-forward layer is asked for the bigram."""
    one = training(trained=("E", "W_F1"), at_end=()).model_copy(
        update={"model": Transformer(d=16, layers=(Layer(feed_forward="mlp"),), hidden=24)}
    )
    row = execute(one, tmp_path).rows[-1]
    assert "kl.W_F" in row
    assert not any(name.startswith(("recall", "attention")) for name in row)
