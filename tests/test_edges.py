"""Laws of the probes that look at attention, attribution and strengths."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.embeddings import directions
from engram.models import Layer, Simplified, Trace, Transformer, Weights
from engram.models.construct import plant
from engram.models.memories import two_layers
from engram.probes.attribution import attribution, preference, shares, through_W_F
from engram.probes.edges import effects, masses, previous_edges, previous_masses, successor_edges
from engram.probes.recall import recalls
from engram.specs import Train
from engram.tasks import Batch, Bigram
from memories import by_name

TASK = Bigram(K=5, T=64, no_repeat=True)
LINEAR = ("attention", "attention", "linear")
IDENTITY = (Layer(queries="identity"), Layer(queries="identity", feed_forward="linear"))
CIRCUIT = Transformer(d=1024, scale="unit", layers=IDENTITY)
MEMORIES = ("W_O2", "W_K2", "W_K1")
MATRICES = tuple(Layer(feed_forward=layer.feed_forward) for layer in IDENTITY)
Tiny = Callable[..., Train]


def doubles(model: Simplified | Transformer, task: Bigram, seed: int = 0) -> Weights:
    return {name: value.double() for name, value in model.init(task.N, task.T, seed).items()}


def sampled(task: Bigram, B: int) -> tuple[Batch, torch.Tensor]:
    batch = task.sample(0, 0, B)
    return batch, torch.from_numpy(batch.tokens)


@pytest.fixture(scope="module")
def planted() -> Weights:
    """An induction head written by hand; W_O2 is large enough for the head to decide the prediction."""
    w = plant(Simplified(d=1024, scale="unit", blocks=LINEAR), TASK.N, TASK.T, seed=0, sharpness=100.0)
    return w | {"W_O2": 10 * w["W_O2"], "W_F2": w["W_F"]}


def test_edges_by_hand() -> None:
    """a b a a: each looks back at its neighbour; the third looks at b, the fourth at b and at itself."""
    tokens = torch.tensor([[7, 4, 7, 7]])
    assert previous_edges(tokens)[0].nonzero().tolist() == [[1, 0], [2, 1], [3, 2]]
    assert successor_edges(tokens)[0].nonzero().tolist() == [[2, 1], [3, 1], [3, 3]]


@given(B=st.integers(1, 3), T=st.integers(1, 9), N=st.integers(1, 4), seed=st.integers(0, 999))
@settings(max_examples=50, deadline=None)
def test_edges_are_what_a_loop_finds(B: int, T: int, N: int, seed: int) -> None:
    tokens = np.random.default_rng(seed).integers(0, N, (B, T))
    back, after = np.zeros((B, T, T), dtype=bool), np.zeros((B, T, T), dtype=bool)
    for b in range(B):
        for t in range(T):
            for s in range(1, t + 1):
                back[b, t, s - 1] = s == t
                after[b, t, s] = tokens[b, s - 1] == tokens[b, t]
    assert np.array_equal(previous_edges(torch.from_numpy(tokens)).numpy(), back)
    assert np.array_equal(successor_edges(torch.from_numpy(tokens)).numpy(), after)


def test_masses_by_hand() -> None:
    """a b a b a with trigger a: attention that is written down is read back, mean over two heads."""
    tokens = np.array([[0, 1, 0, 1, 0]])
    again, first = np.array([[False, False, True, False, True]]), np.array([[True, False, False, False, False]])
    batch = Batch(tokens, np.roll(tokens, -1), {"in_context": again, "first": first, "global": ~again & ~first})
    looks = [([0, 0, 1, 1, 3], [0, 0, 1, 2, 3]), ([0, 0, 1, 0, 2], [0, 0, 1, 2, 2])]  # of layer 1, 2; of head 1, 2
    patterns = tuple(torch.stack([torch.eye(5)[head] for head in layer])[None] for layer in looks)
    x = torch.zeros(1, 5, 1)
    assert masses(Trace({"embedding": x}, patterns, patterns, x, x), batch) == pytest.approx({
        "mass.previous": 7 / 8,  # four positions, two heads; once 3 looks at 1
        "mass.previous.chance": (1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 4,
        "mass.successors.triggers": 1 / 2,  # t=2 looks at 1, t=4 at 2
        "mass.successors.triggers.chance": (1 / 3 + 2 / 5) / 2,
        "mass.successors.others": 1 / 2,  # t=3 looks at 0 with one head, at 2 with the other
        "mass.successors.others.chance": 1 / 4,
    })  # fmt: skip


def test_masses_of_uniform_attention_are_chance() -> None:
    """Without keys all scores are equal."""
    model = Transformer(d=12, layers=(Layer(heads=2), Layer(heads=3)))
    batch, tokens = sampled(TASK, 4)
    w = doubles(model, TASK)
    w |= {name: torch.zeros_like(w[name]) for name in ("W_K1", "W_K2")}
    found = masses(model.forward(w, tokens), batch)
    for name in ("previous", "successors.triggers", "successors.others"):
        assert found[f"mass.{name}"] == pytest.approx(found[f"mass.{name}.chance"], rel=1e-6)


def test_previous_masses_by_hand() -> None:
    """a b c a b with trigger a: layer 1 looks back after a, and at itself elsewhere."""
    tokens = np.array([[0, 1, 2, 0, 1]])
    again, first = np.array([[False, False, False, True, False]]), np.array([[True, False, False, False, False]])
    batch = Batch(tokens, np.roll(tokens, -1), {"in_context": again, "first": first, "global": ~again & ~first})
    patterns = (torch.eye(5)[[0, 0, 2, 3, 3]][None, None],) * 2
    x = torch.zeros(1, 5, 1)
    assert previous_masses(Trace({"embedding": x}, patterns, patterns, x, x), batch) == pytest.approx({
        "mass.previous.after_triggers": 1,
        "mass.previous.after_triggers.chance": (1 / 2 + 1 / 5) / 2,
        "mass.previous.elsewhere": 0,
        "mass.previous.elsewhere.chance": (1 / 3 + 1 / 4) / 2,
    })  # fmt: skip


def test_masses_of_a_planted_circuit_are_near_one(planted: Weights) -> None:
    batch, tokens = sampled(TASK, 4)
    found = masses(CIRCUIT.forward(planted, tokens), batch)
    assert found["mass.previous"] > 0.99
    assert min(found["mass.successors.triggers"], found["mass.successors.others"]) > 0.95
    assert max(value for name, value in found.items() if name.endswith("chance")) < 0.2


def test_ablations_find_the_planted_circuit(planted: Weights) -> None:
    """Layer 1 needs t → t−1 and layer 2 the successors; without either, or the head, the answer is lost."""
    found = effects(CIRCUIT, planted, TASK.sample(0, 0, 3))
    assert found["effect.none"] < 0.1
    assert found["effect.removed.L2H1"] == pytest.approx(np.log(65), abs=0.1)  # nothing is left but to guess
    assert min(found[f"effect.{name}"] for name in ("previous.L1H1", "removed.L1H1", "successors.L2H1")) > np.log(65)
    assert max(abs(found[f"effect.{name}"]) for name in ("successors.L1H1", "previous.L2H1")) < 0.1


def test_where_nothing_is_asked_there_is_no_number() -> None:
    """Two tokens hold no second visit of a trigger: an effect of zero would be a claim."""
    model, task = Transformer(d=6, layers=(Layer(), Layer())), Bigram(K=1, T=2, no_repeat=True)
    w, (batch, tokens) = doubles(model, task), sampled(task, 3)
    assert np.isnan(list(effects(model, w, batch).values())).all()
    assert np.isnan(masses(model.forward(w, tokens), batch)["mass.successors.triggers"])


MODELS = [
    Simplified(d=12, blocks=LINEAR),
    Simplified(d=12),
    Transformer(d=12, layers=(Layer(heads=2, feed_forward="mlp"), Layer(heads=3, feed_forward="linear"))),
    Transformer(d=12, layers=(Layer(heads=2, feed_forward="mlp"), Layer()), norm="pre"),
]


@pytest.mark.parametrize("model", MODELS)
def test_shares_of_a_prediction_add_up_to_it(model: Simplified | Transformer) -> None:
    w, (_, tokens) = doubles(model, TASK), sampled(TASK, 2)
    trace = model.forward(w, tokens)
    parts = attribution(model, w, trace)
    assert list(parts) == list(trace.written)
    assert torch.allclose(torch.stack(list(parts.values())).sum(dim=0), trace.logits, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@pytest.mark.parametrize("model", MODELS)
def test_shares_of_a_group_add_up_to_the_lead_of_the_right_answer(
    model: Simplified | Transformer, dtype: torch.dtype, error: float
) -> None:
    """In context and elsewhere: mean of logit − mean logit at the targets; a linear W_F is split by what it read."""
    batch, tokens = sampled(TASK, 3)
    w = {name: value.to(dtype) for name, value in model.init(TASK.N, TASK.T, 0).items()}
    trace, found = model.forward(w, tokens), shares(model, w, batch)
    right = trace.logits.gather(2, torch.from_numpy(batch.targets)[:, :, None])[:, :, 0]
    lead = (right - trace.logits.mean(dim=2)).numpy()
    parts = [name for name in trace.written if name != "W_F"]
    parts += [f"W_F.{name}" for name in parts if "W_F" in trace.written]
    assert list(found) == [f"attribution.{group}.{part}" for group in ("in_context", "global") for part in parts]
    for group in ("in_context", "global"):
        total = sum(found[f"attribution.{group}.{part}"] for part in parts)
        assert total == pytest.approx(lead[batch.groups[group]].mean(), rel=0, abs=error)


def test_shares_through_W_F_add_up_to_its_own() -> None:
    model, (_, tokens) = Simplified(d=12, blocks=LINEAR), sampled(TASK, 2)
    w = doubles(model, TASK)
    trace = model.forward(w, tokens)
    through = through_W_F(model, w, trace)
    assert list(through) == ["embedding", "head1", "head2"]
    total = torch.stack(list(through.values())).sum(dim=0)
    assert torch.allclose(total, attribution(model, w, trace)["W_F"], rtol=0, atol=1e-10)


def test_a_planted_prediction_comes_from_the_head(planted: Weights) -> None:
    """In context, the share of head 2 alone predicts what the model predicts; the residual alone does not."""
    batch, tokens = sampled(TASK, 4)
    trace = CIRCUIT.forward(planted, tokens)
    asked, parts = torch.from_numpy(batch.groups["in_context"]), attribution(CIRCUIT, planted, trace)
    agrees = {name: (part.argmax(-1) == trace.logits.argmax(-1))[asked] for name, part in parts.items()}
    assert agrees["head2"].double().mean() > 0.99
    assert agrees["embedding"].double().mean() < 0.2
    assert not parts["W_F2"].any()
    found = shares(CIRCUIT, planted, batch)
    others = [abs(found[f"attribution.in_context.{part}"]) for part in ("embedding", "head1", "W_F2")]
    assert found["attribution.in_context.head2"] > 10 * max(others)


def test_preference_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The token a after three earlier visits with three successors: the fourth likeliest is proposed twice and followed
    once, the second likeliest once and the bigram wins; its favourite tells nothing, and an idle head neither."""
    task, a = Bigram(K=1, T=12), 39
    favourite, second, _, fourth = (int(z) for z in np.argsort(-task.table.bigram[a], kind="stable")[:4])
    tokens = np.array([[a, fourth, a, second, a, favourite, a, a, a, a, a, 0]])
    looks = [0, 0, 0, 0, 0, 0, 1, 1, 3, 5, 0, 0]  # at 6, 7: fourth; 8: second; 9: favourite; 10: no successor of a
    says = [0, 0, 0, 0, 0, 0, fourth, 0, favourite, favourite, a, 0]
    pattern, logits, x = torch.eye(12)[looks][None, None], torch.eye(task.N)[says][None], torch.zeros(1, 12, 1)
    trace = Trace({"embedding": x}, (pattern, pattern), (pattern, pattern), x, logits)
    monkeypatch.setattr(Simplified, "forward", lambda self, w, z: trace)
    found = preference(Simplified(d=1), {"E": torch.zeros(task.N, 1)}, task, Batch(tokens, tokens, {}))
    assert found == pytest.approx({
        "preference.unlikely.follows": 1 / 2, "preference.unlikely.bigram": 0.0,
        "preference.likely.follows": 0.0, "preference.likely.bigram": 1.0,
        "preference.unlikely.positions": 2 / 12, "preference.likely.positions": 1 / 12,
    })  # fmt: skip


def test_a_planted_head_is_believed(planted: Weights) -> None:
    found = preference(CIRCUIT, planted, TASK, TASK.sample(0, 0, 4))
    assert min(found["preference.unlikely.follows"], found["preference.likely.follows"]) > 0.95
    chance = preference(CIRCUIT, CIRCUIT.init(TASK.N, TASK.T, 1), TASK, TASK.sample(0, 0, 4))
    assert max(chance["preference.unlikely.follows"], chance["preference.likely.follows"]) < 0.2


def test_recall_of_a_transformer(planted: Weights) -> None:
    """At the ceiling on planted weights, also when queries and keys are rotated together; low on random ones."""
    rotation = directions("orthonormal", 1024, 1024, 0, "R")
    turned = {f"W_K{i}": rotation @ planted[f"W_K{i}"] for i in (1, 2)} | {"W_Q1": rotation, "W_Q2": rotation}
    general = CIRCUIT.model_copy(update={"layers": MATRICES})
    for model, w in ((CIRCUIT, planted), (general, planted | turned)):
        memories = by_name(model, w, TASK)
        assert [memories[name].recall() for name in MEMORIES] == [1.0] * 3
    small = Transformer(d=24, layers=(Layer(heads=3), Layer(heads=2)))
    chance = [recalls(small.memories(small.init(65, 256, seed), Bigram(T=256))) for seed in range(20)]
    for name, n in {"recall.W_O2": 65, "recall.W_K2": 65, "recall.W_K1": 255}.items():
        assert abs(np.mean([row[name] for row in chance]) - 1 / n) < 4 * np.sqrt(1 / n / n / 20) + 1e-3


def test_the_probes_do_not_see_a_common_rotation_of_queries_and_keys() -> None:
    """W_Q = R, W_K = R W_K' asks the same as W_Q = I, W_K = W_K'; and W_F2 answers as W_F does."""
    simplified, general = Simplified(d=16, blocks=LINEAR), Transformer(d=16, layers=MATRICES)
    w, R = doubles(simplified, TASK), directions("orthonormal", 16, 16, 0, "R", torch.float64)
    turned = {f"W_K{i}": R @ w[f"W_K{i}"] for i in (1, 2)} | {"W_Q1": R, "W_Q2": R, "W_F2": w["W_F"]}
    read = general.as_simplified(w | turned)
    assert all(torch.allclose(read[name], w[name], rtol=0, atol=1e-12) for name in read)
    one, two = by_name(simplified, w, TASK), by_name(general, w | turned, TASK)
    assert list(one) == list(two) == ["W_O2", "W_K2", "W_K1", "W_F"]
    assert all(torch.allclose(one[name].scores(), two[name].scores(), rtol=0, atol=1e-12) for name in one)


def test_the_last_feed_forward_layer_is_asked() -> None:
    """Whatever it is, by hand; one further down is not asked, and a model of one layer has no circuit."""
    mlp, other = Layer(feed_forward="mlp"), Layer(feed_forward="linear")
    model = Transformer(d=8, layers=(other, mlp), hidden=11)
    w = doubles(model, TASK)
    by_hand = [w["U"] @ w["W_F2"] @ torch.clamp(w["W_I2"] @ e, min=0) for e in w["E"]]
    assert torch.allclose(by_name(model, w, TASK)["W_F"].scores(), torch.stack(by_hand), rtol=0, atol=1e-12)
    without = Transformer(d=8, layers=(mlp, Layer()), hidden=11)
    assert "W_F" not in by_name(without, doubles(without, TASK), TASK)
    assert [two_layers(m) for m in (model, without, Transformer(d=8, layers=(mlp,)), Simplified(d=8))] == [1, 1, 0, 1]
