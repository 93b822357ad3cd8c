"""Laws of causal ablations: they change what they say they change, and find what each head is worth."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import layer_norm

from engram.errors import EngramError
from engram.learning import SGD, Plan
from engram.learning.reference import gradients
from engram.models import Layer, Model, Simplified, Transformer, Weights
from engram.probes.edges import effects, previous_edges
from engram.runner.execute import execute
from engram.specs import Train
from engram.tasks import Bigram

SHORT = Bigram(K=3, T=32, no_repeat=True)
FULL = Transformer(d=12, layers=(Layer(heads=2, feed_forward="mlp"), Layer(heads=3, feed_forward="mlp")), hidden=20)
NORMED = FULL.model_copy(update={"norm": "pre"})
SPEC = Train(task=SHORT, model=FULL, plan=Plan(optimiser=SGD(lr=0.1), steps=2, batch=2, trained=("U",)))
TOKENS = torch.from_numpy(SHORT.sample(0, 0, 3).tokens)


def weights(model: Transformer, task: Bigram = SHORT, seed: int = 0) -> Weights:
    return {name: value.double() for name, value in model.init(task.N, task.T, seed).items()}


@given(layer=st.integers(1, 2), head=st.integers(1, 2), seed=st.integers(0, 99))
@settings(max_examples=15, deadline=None)
def test_blocked_edges_carry_nothing(layer: int, head: int, seed: int) -> None:
    """Exactly no attention there, rows still sum to one; other heads of the layer and all before it stay as they were.

    The diagonal is left to every query; all else is blocked by chance.
    """
    w, tokens = weights(FULL), TOKENS
    edges = torch.rand(3, SHORT.T, SHORT.T, generator=torch.Generator().manual_seed(seed)) < 0.5
    edges &= ~torch.eye(SHORT.T, dtype=torch.bool)
    whole, cut = FULL.forward(w, tokens), FULL.forward(w, tokens, {(layer, head): edges})
    pattern = cut.attention[layer - 1][:, head - 1]
    assert not pattern[edges].any()
    assert torch.allclose(pattern.sum(dim=-1), torch.ones(3, SHORT.T, dtype=torch.float64))
    left = whole.attention[layer - 1][:, head - 1].masked_fill(edges, 0)
    assert torch.allclose(pattern, left / left.sum(dim=-1, keepdim=True), atol=1e-12)
    others = [h for h in range(FULL.layers[layer - 1].heads) if h != head - 1]
    assert torch.equal(cut.attention[layer - 1][:, others], whole.attention[layer - 1][:, others])
    assert all(torch.equal(cut.attention[i], whole.attention[i]) for i in range(layer - 1))
    assert torch.equal(cut.written["embedding"], whole.written["embedding"])
    assert not torch.equal(cut.logits, whole.logits)


def test_blocking_nothing_changes_nothing() -> None:
    w, nothing = weights(NORMED), torch.zeros(3, SHORT.T, SHORT.T, dtype=torch.bool)
    whole = NORMED.forward(w, TOKENS)
    for blocked in ({}, dict.fromkeys(NORMED.heads(), nothing)):
        trace = NORMED.forward(w, TOKENS, blocked)
        pairs = zip((*trace.attention, trace.logits), (*whole.attention, whole.logits), strict=True)
        assert all(torch.equal(one, two) for one, two in pairs)


@pytest.mark.parametrize("head", list(NORMED.heads()))
def test_a_head_that_is_removed_writes_nothing(head: tuple[int, int]) -> None:
    """Its layer writes what the other heads write; all before it is untouched, and so are all other weights."""
    (i, h), w, tokens = head, weights(NORMED), TOKENS
    kept, H = {name: value.clone() for name, value in w.items()}, NORMED.layers[head[0] - 1].heads
    less = NORMED.without(w, head)
    assert all(torch.equal(w[name], kept[name]) for name in w)
    assert all(less[name] is w[name] for name in w if name != f"W_O{i}")
    whole, cut = NORMED.forward(w, tokens), NORMED.forward(less, tokens)
    before = list(whole.written)[: list(whole.written).index(f"head{i}")]
    assert all(torch.equal(cut.written[name], whole.written[name]) for name in before)
    assert all(torch.equal(cut.attention[j], whole.attention[j]) for j in range(i))
    read = layer_norm(torch.stack([whole.written[name] for name in before]).sum(dim=0), (12,))
    parts = [slice(g * 12 // H, (g + 1) * 12 // H) for g in range(H) if g != h - 1]
    others = [
        whole.attention[i - 1][:, part.start * H // 12] @ (read @ w[f"W_V{i}"][part].T) @ w[f"W_O{i}"][:, part].T
        for part in parts
    ]
    assert torch.allclose(cut.written[f"head{i}"], torch.stack(others).sum(dim=0), rtol=0, atol=1e-12)


EDGES = torch.zeros(3, SHORT.T, SHORT.T, dtype=torch.bool)
LOST = EDGES.clone()
LOST[1, 5, :6] = True  # nothing is left to position 5 of one sequence: what comes later cannot be attended to
REFUSED: list[tuple[dict[tuple[int, int], torch.Tensor], str]] = [
    ({(3, 1): EDGES}, r"blocked: no head \(3, 1\); allowed: \(1, 1\), \(1, 2\), \(2, 1\)"),
    ({(1, 3): EDGES}, r"blocked: no head \(1, 3\)"),
    ({(0, 1): EDGES}, r"blocked: no head \(0, 1\)"),
    ({(1, 2): EDGES[0]}, r"blocked: edges of head \(1, 2\) must be bool \(3, 32, 32\).*; got bool \(32, 32\)"),
    ({(1, 1): EDGES[:1]}, r"must be bool \(3, 32, 32\).*; got bool \(1, 32, 32\)"),
    ({(1, 1): EDGES[:, :9, :9]}, r"got bool \(3, 9, 9\)"),
    ({(1, 1): EDGES.double()}, r"got float64 \(3, 32, 32\)"),
    ({(1, 1): EDGES, (2, 1): LOST}, r"blocked: head \(2, 1\) has no key left at position t=5"),
]


@pytest.mark.parametrize(("blocked", "says"), REFUSED, ids=[says for _, says in REFUSED])
def test_edges_that_cannot_be_blocked_are_refused(blocked: dict[tuple[int, int], torch.Tensor], says: str) -> None:
    """Another head, another shape, or a query without any key: an error, never attention that is no number."""
    with pytest.raises(EngramError, match=says):
        FULL.forward(weights(FULL), TOKENS, blocked)


@pytest.mark.parametrize("head", [(0, 1), (3, 1), (1, 3), (2, 0), (2, -1)])
def test_only_a_head_that_is_there_can_be_removed(head: tuple[int, int]) -> None:
    with pytest.raises(EngramError, match=r"^head: no head .*; allowed: \(1, 1\)"):
        FULL.without(weights(FULL), head)


def test_a_stored_transformer_can_be_cut(home: Path) -> None:
    """Edges that are blocked in the call are blocked in the forward pass; a model without them says so."""
    model, tokens = execute(SPEC, home).model(), SHORT.sample(0, 0, 2).tokens
    edges = previous_edges(torch.from_numpy(tokens))
    cut = model(tokens, blocked={(1, 2): edges})
    assert isinstance(model.architecture, Transformer)
    again = model.architecture.forward(model.weights, torch.from_numpy(tokens), {(1, 2): edges})
    assert torch.equal(cut.logits, again.logits)
    assert not torch.equal(cut.logits, model(tokens).logits)
    assert not cut.attention[0][:, 1][edges].any()
    simplified = Model(Simplified(d=4), Simplified(d=4).init(SHORT.N, SHORT.T, 0))
    with pytest.raises(EngramError, match=r"^blocked: unknown to Simplified; it takes only tokens"):
        simplified(tokens, blocked={(1, 1): edges})
    with pytest.raises(EngramError, match=r"^block: unknown to Transformer; allowed: blocked"):
        model(tokens, block={(1, 2): edges})


@pytest.mark.parametrize("B", [1, 9])
def test_an_idle_head_has_no_effect(B: int) -> None:
    """A model of twice the width whose second heads see only the empty half: the first heads do all there is to do."""
    model, task = Transformer(d=10, layers=(Layer(), Layer())), Bigram(K=5, T=32, triggers="fixed")
    double = Transformer(d=20, layers=(Layer(heads=2), Layer(heads=2)))
    w, noise, batch = weights(model, task), weights(model, task, 1), task.sample(0, 0, B)
    tables = {name: torch.cat([w[name], torch.zeros_like(w[name])], dim=1) for name in ("E", "P", "U")}
    padded = tables | {n: torch.block_diag(w[n], noise[n]) for n in model.names if n not in tables}
    one, two = effects(model, w, batch), effects(double, padded, batch)
    assert one["effect.none"] == pytest.approx(gradients(model, w, batch, "in_context", ()).metrics["loss"], rel=1e-10)
    assert {name: two[name] for name in one} == pytest.approx(one, abs=1e-10)
    idle = [value for name, value in two.items() if name.endswith("H2")]
    assert len(idle) == 6
    assert idle == pytest.approx([0.0] * 6, abs=1e-10)
    assert all(abs(value) > 1e-5 for value in one.values())


def exact_circuit(beta: float = 20.0, gamma: float = 20.0) -> tuple[Transformer, Weights]:
    """An induction head without noise: tokens, positions, "came after" and answers have dimensions of their own."""
    N, T = SHORT.N, SHORT.T
    token, position, after, answer = torch.arange(3 * N + T).split([N, T, N, N])
    model = Transformer(d=3 * N + T, scale="unit", layers=(Layer(), Layer()))
    eye = torch.eye(model.d, dtype=torch.float64)
    w = {name: torch.zeros_like(eye) for name in model.names} | {"E": eye[token], "P": eye[position], "U": eye[answer]}
    w |= {name: eye for name in ("W_Q1", "W_V1", "W_Q2", "W_V2")}
    w["W_K1"][position[1:], position[:-1]] = beta  # t asks for t − 1
    w["W_O1"][after, token] = 1
    w["W_K2"][token, after] = beta
    w["W_O2"][answer, token] = gamma
    return model, w


def doubled(model: Transformer, w: Weights) -> tuple[Transformer, Weights]:
    """Twice as wide, with two copies of every head that write half as much each."""
    wide = model.model_copy(update={"d": 2 * model.d, "layers": (Layer(heads=2),) * len(model.layers)})
    pad = {name: torch.cat([w[name], torch.zeros_like(w[name])], dim=1) for name in ("E", "P", "U")}
    reads, writes = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[0.5, 0.5], [0.0, 0.0]])
    layers = {n: torch.kron(writes if n.startswith("W_O") else reads, w[n]) for n in wide.names if n not in pad}
    return wide, pad | layers


def test_heads_that_stand_in_for_each_other() -> None:
    """Two copies of a head: one by one they cost next to nothing, together exactly what the one head costs."""
    (model, w), batch = exact_circuit(), SHORT.sample(0, 0, 4)
    one, two = effects(model, w, batch), effects(*doubled(model, w), batch)
    assert two["effect.none"] == pytest.approx(one["effect.none"], abs=1e-10)
    assert one["effect.none"] < 0.2
    for edges in ("previous.L1", "successors.L2"):
        assert two[f"effect.{edges}"] == pytest.approx(one[f"effect.{edges}"], abs=1e-10)
        assert one[f"effect.{edges}"] == one[f"effect.{edges}H1"] > 2
        assert max(two[f"effect.{edges}H{h}"] for h in (1, 2)) < 0.1 * two[f"effect.{edges}"]
    assert max(two[f"effect.removed.L{i}H{h}"] for i in (1, 2) for h in (1, 2)) < 0.1 * one["effect.removed.L2H1"]
