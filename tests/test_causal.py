"""Causal tools on a Network do what changed weights and blocked edges do, and find a planted circuit."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engram.errors import EngramError
from engram.models import Model, Network, Simplified, network_of
from engram.models.construct import plant
from engram.models.transformer import silenced
from engram.probes import causal
from engram.probes.causal import (
    alignment,
    alignments,
    blocked,
    chained,
    keep,
    means,
    patched,
    uniform_alignment,
    without_heads,
    without_in_keys,
    without_part,
)  # fmt: skip
from engram.probes.edges import previous_edges, successor_edges
from engram.tasks import Bigram
from networks import TASK, made, sequences

EXACT: dict[str, Any] = {"rtol": 0, "atol": 1e-12}


@pytest.fixture(scope="module")
def full() -> Model:
    return made("pre-norm")


@pytest.fixture(scope="module")
def network(full: Model) -> Network:
    return network_of(full)


def test_heads_that_are_ablated_are_silent(full: Model, network: Network) -> None:
    heads = [(1, 2), (2, 1), (2, 3)]
    expected = full.architecture.forward(silenced(full.architecture, full.weights, heads), sequences()).logits
    assert torch.allclose(network.stream(sequences(), without_heads(heads)), expected, **EXACT)


def test_a_layer_without_attention_is_one_without_heads(network: Network) -> None:
    whole, heads = network.stream(sequences(), without_part("head", 2)), [(2, 1), (2, 2), (2, 3)]
    assert torch.allclose(whole, network.stream(sequences(), without_heads(heads)), **EXACT)


def test_a_layer_without_feed_forward(network: Network) -> None:
    zero = network.replaced(W_F2=torch.zeros_like(network.matrices()["W_F2"]))
    assert torch.allclose(network.stream(sequences(), without_part("mlp", 2)), zero.stream(sequences()), **EXACT)


def test_means_are_taken_over_sequences_and_positions(network: Network) -> None:
    kept, mean = (f(network, sequences(), [("z", 1), ("mlp", 2)]) for f in (keep, means))
    assert np.allclose(mean["mlp", 2].numpy(), kept["mlp", 2].numpy().mean(axis=(0, 1)), atol=1e-12)
    assert np.allclose(mean["z", 1][0, :, 0].numpy(), kept["z", 1].numpy().mean(axis=(0, 2)), atol=1e-12)


def test_mean_ablation_leaves_the_mean_and_nothing_else(network: Network) -> None:
    mean = means(network, sequences(), [("z", 2), ("mlp", 1)])
    after = keep(network, sequences(), [("z", 2), ("mlp", 1)], without_heads([(2, 2)], mean))
    before = keep(network, sequences(), [("z", 2)])
    assert torch.allclose(after["z", 2][:, 1], mean["z", 2][:, 1].expand_as(after["z", 2][:, 1]), **EXACT)
    assert torch.equal(after["z", 2][:, [0, 2]], before["z", 2][:, [0, 2]])
    after = keep(network, sequences(), [("mlp", 1)], without_part("mlp", 1, mean))
    assert torch.allclose(after["mlp", 1], mean["mlp", 1].expand_as(after["mlp", 1]), **EXACT)


def test_blocked_edges_are_those_of_the_forward_pass(full: Model, network: Network) -> None:
    edges = {(1, 1): previous_edges(sequences()), (2, 3): successor_edges(sequences())}
    assert torch.allclose(network.stream(sequences(), blocked(edges)), full(sequences(), blocked=edges).logits, **EXACT)


def test_a_whole_stream_that_is_patched_is_another_run(network: Network) -> None:
    one, other = sequences(6).split(3)
    for i in (1, 2, 3):
        found = network.stream(one, patched(keep(network, other, [("resid", i)])))
        assert torch.equal(found, network.stream(other))


def test_a_patch_reaches_its_heads_and_positions_only(network: Network) -> None:
    one, other = sequences(6).split(3)
    here, there = (keep(network, tokens, [("z", 2)])["z", 2] for tokens in (one, other))
    watch = patched({("z", 2): there}, heads=[(2, 1), (1, 2)], positions=[0, 5])
    after = keep(network, one, [("z", 2)], watch)["z", 2]
    expected = here.clone()
    expected[:, 0, [0, 5]] = there[:, 0, [0, 5]]
    assert torch.equal(after, expected)


def test_what_a_head_wrote_is_taken_from_the_keys_of_one_head(network: Network) -> None:
    """Scores by hand: the norm is that of the stream without it. Other heads, queries and values see it as before."""
    places: Any = [("z", 1), ("resid", 2), ("scores", 2), ("z", 2)]
    whole = keep(network, sequences(), places)
    cut = keep(network, sequences(), places, without_in_keys(network, (1, 2), [(2, 2)]))
    assert torch.allclose(cut["scores", 2][:, [0, 2]], whole["scores", 2][:, [0, 2]], **EXACT)
    x, qk = whole["resid", 2], network.qk((2, 2))
    less = network.normed("head", 2, x - network.ov((1, 2)).output(whole["z", 1][:, 1]))
    scores = qk.query(network.normed("head", 2, x)) @ qk.key(less).mT / qk.temperature
    assert torch.allclose(cut["scores", 2][:, 1].nan_to_num(neginf=0), scores.tril(), **EXACT)
    assert not torch.allclose(cut["scores", 2][:, 1], whole["scores", 2][:, 1])
    z = cut["scores", 2].softmax(dim=-1)[:, 1] @ network.ov((2, 2)).value(network.normed("head", 2, x))
    assert torch.allclose(cut["z", 2][:, 1], z, **EXACT)


LONG = Bigram(K=5, T=96)
BATCH = LONG.sample(0, 0, 8)


@pytest.fixture(scope="module")
def circuit() -> Network:
    """The induction head of Eq. 7, planted."""
    model = Simplified(d=512, scale="unit")
    return network_of(Model(model, plant(model, LONG.N, LONG.T, 0, 100.0)))


def accuracy(logits: Tensor) -> float:
    return float((logits.argmax(-1).numpy() == BATCH.targets)[BATCH.groups["in_context"]].mean())


def test_a_planted_induction_head_needs_the_edges_and_keys_that_it_is_made_of(circuit: Network) -> None:
    tokens = torch.from_numpy(BATCH.tokens)
    back, after = previous_edges(tokens), successor_edges(tokens)
    assert accuracy(circuit.stream(tokens)) > 0.95
    without: dict[str, Any] = {
        "previous": blocked({(1, 1): back}),
        "successors": blocked({(2, 1): after}),
        "keys": without_in_keys(circuit, (1, 1), [(2, 1)]),
        "head": without_heads([(2, 1)]),
    }
    for name, watch in without.items():
        assert accuracy(circuit.stream(tokens, watch)) < 0.25, name


def test_heads_are_aligned_with_the_edges_that_they_use(circuit: Network) -> None:
    tokens = torch.from_numpy(BATCH.tokens)
    edges = {"previous": previous_edges(tokens), "successors": successor_edges(tokens)}
    found = {
        head: {n: float(a.mean()) for n, a in of.items()} for head, of in alignments(circuit, tokens, edges).items()
    }
    chance = {name: float(uniform_alignment(which).mean()) for name, which in edges.items()}
    assert found[1, 1]["previous"] > 0.95
    assert found[1, 1]["successors"] < 0.5
    assert found[2, 1]["successors"] > chance["successors"] + 0.3
    assert found[2, 1]["previous"] < chance["previous"] + 0.1


def test_alignment_by_hand() -> None:
    edges = torch.zeros(1, 3, 3, dtype=torch.bool)
    edges[0, 1, 0] = edges[0, 2, 1] = True
    pattern = torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 0.6, 0.4]])
    same, uniform = edges.double()[:, None], torch.ones(3, 3).tril() / torch.arange(1, 4)[:, None]
    assert float(alignment(same, edges)) == pytest.approx(1)
    expected = 1.6 / np.sqrt(2 * (1 + 0.36 + 0.16))  # row 0 has no edge and does not count
    assert float(alignment(pattern[None, None], edges)) == pytest.approx(expected)
    assert float(alignment(torch.eye(3)[None, None], edges)) == 0
    assert float(uniform_alignment(edges)) == pytest.approx(float(alignment(uniform[None, None], edges)))
    assert float(uniform_alignment(edges)) == pytest.approx((1 / 2 + 1 / 3) / np.sqrt(2 * (1 / 2 + 1 / 3)))
    assert bool(alignment(same, torch.zeros_like(edges)).isnan().all())


def test_watchers_come_one_after_the_other(network: Network) -> None:
    both = chained(without_heads([(1, 1)]), without_part("mlp", 2))
    silent = network.replaced(W_F2=torch.zeros_like(network.matrices()["W_F2"]))
    assert torch.allclose(
        network.stream(sequences(), both), silent.stream(sequences(), without_heads([(1, 1)])), **EXACT
    )


def test_what_cannot_be_is_refused(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = sequences()
    every = torch.ones(3, TASK.T, TASK.T, dtype=torch.bool)
    with pytest.raises(EngramError, match=r"head \(1, 1\) has no key left at position t=0"):
        network.stream(tokens, blocked({(1, 1): every}))
    with pytest.raises(EngramError, match=r"readers: \(1, 1\) is not behind \(1, 2\)"):
        without_in_keys(network, (1, 2), [(1, 1)])
    with pytest.raises(EngramError, match=r"places: no part 'z' in layer 3; allowed: resid"):
        keep(network, tokens, [("z", 3)])
    with pytest.raises(EngramError, match="mlp has no heads; only scores, pattern and z"):
        network.stream(tokens, patched(keep(network, tokens, [("mlp", 1)]), heads=[(1, 1)]))
    monkeypatch.setattr(causal, "MOST_KEPT", 1 << 12)
    with pytest.raises(EngramError, match="keep: more than 0 MB; keep fewer places"):
        keep(network, tokens, [("scores", 1)])
