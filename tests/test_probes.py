"""Every probe is at its ceiling on planted weights and at chance on random ones."""

import numpy as np
import pytest
import torch
from torch import Tensor

from engram.embeddings import directions
from engram.memory.stored import Labels, Stored
from engram.models import Model, Simplified, Trace, Weights
from engram.models.construct import plant, plant_bigram
from engram.models.memories import bigram_memory
from engram.probes.edges import attention
from engram.probes.recall import distance, recalls
from engram.tasks import Batch, Bigram
from memories import by_name

MODEL, TASK = Simplified(d=1024, scale="unit", blocks=("attention", "attention", "linear")), Bigram(K=5, T=128)
FIXED = Bigram(K=3, T=128, triggers="fixed", offset=4)


@pytest.fixture(scope="module")
def planted() -> Weights:
    return plant(MODEL, TASK.N, TASK.T, seed=0, sharpness=100.0)


def test_recall_is_one_on_planted_weights(planted: Weights) -> None:
    induction = Simplified(d=1024, scale="unit")
    for task in (TASK, FIXED):
        found = recalls(induction.memories({name: planted[name] for name in induction.names}, task))
        assert set(found) == {"recall.W_O2", "recall.W_K2", "recall.W_K1", "recall.W_K1.t<64"}
        assert set(found.values()) == {1.0}


def test_recall_is_chance_on_random_weights() -> None:
    """Mean over 40 draws within 4 standard errors of 1/n."""
    model, task = Simplified(d=32), Bigram(T=256)
    found = [recalls(model.memories(model.init(65, 256, seed), task)) for seed in range(40)]
    for column, n in {"recall.W_O2": 65, "recall.W_K2": 65, "recall.W_K1": 255, "recall.W_K1.t<64": 63}.items():
        values = [row[column] for row in found]
        assert abs(np.mean(values) - 1 / n) < 4 * np.sqrt(1 / n / n / 40) + 1e-3


def test_fixed_triggers_compete_among_themselves() -> None:
    model = Simplified(d=16)
    W_K2 = by_name(model, model.init(65, 16, 0), FIXED)["W_K2"]
    triggers = FIXED.fixed_triggers
    assert triggers is not None
    among = W_K2.scores()[triggers.tolist()][:, triggers.tolist()]
    assert W_K2.recall() == float((among.argmax(1) == torch.arange(3)).double().mean())
    assert torch.allclose(W_K2.strengths(), among.diagonal(), atol=1e-5)


def test_scores_are_the_bilinear_forms_of_the_table() -> None:
    model = Simplified(d=12)
    w = {name: value.double() for name, value in model.init(65, 9, 0).items()}
    found = {name: memory.scores() for name, memory in by_name(model, w, TASK).items()}
    assert found["W_O2"][2, 5].item() == pytest.approx((w["U"][5] @ w["W_O2"] @ w["W_V2"] @ w["E"][2]).item())
    remapped = w["W_O1"] @ w["W_V1"] @ w["E"][5]
    assert found["W_K2"][2, 5].item() == pytest.approx((w["E"][2] @ w["W_K2"] @ remapped).item())
    assert found["W_K1"][2, 5].item() == pytest.approx((w["P"][3] @ w["W_K1"] @ w["P"][5]).item())


def test_recall_counts_rows() -> None:
    assert table(torch.tensor([[2.0, 1.0], [3.0, 1.0]]), torch.arange(2)).recall() == 0.5
    assert table(torch.eye(9), torch.arange(9)).recall() == 1.0


def table(scores: Tensor, right: Tensor) -> Stored:
    """A memory with these scores."""
    n, m = scores.shape
    labels = Labels("", "", "", tuple(map(str, range(n))), tuple(map(str, range(m))))
    return Stored("W", torch.eye(n, dtype=scores.dtype), scores.T, torch.eye(m, dtype=scores.dtype), right, labels)


def test_distance_of_W_F_to_the_bigram() -> None:
    """Zero where softmax(U W_F e_k) = π_b; the uniform start level 2.265 of the text where W_F = 0."""
    pi_b, zero = torch.from_numpy(TASK.table.bigram), torch.zeros(65, 65, dtype=torch.float64)
    assert distance(table(zero, pi_b)) == pytest.approx(2.265, abs=1e-3)
    assert distance(table(pi_b.clamp(min=1e-30).log(), pi_b)) == pytest.approx(0.0, abs=1e-9)
    only = torch.zeros_like(pi_b)
    only[7] = pi_b[7]  # nothing else is asked
    assert distance(table(zero, only)) == pytest.approx(np.log(65) - TASK.table.row_entropies[7], abs=1e-6)


def test_planted_bigram_is_near_the_ceiling_of_its_probe() -> None:
    """With random embeddings of width 4096 the planted W_F leaves a tenth of the KL that W_F = 0 has."""
    model = Simplified(d=4096, scale="unit", blocks=("attention", "attention", "linear"))
    w = {name: directions("gaussian/d", 65, 4096, 0, name) for name in ("E", "U")}
    w["W_F"] = plant_bigram(w, TASK.table.bigram)
    assert model.names[-1] == "W_F"
    assert distance(bigram_memory(w["E"], w["W_F"], w["U"], TASK, 0)) < 0.1 * 2.265


def test_attention_probes_by_hand() -> None:
    """a b a b with trigger a: every share is a count that can be done on paper."""
    tokens = np.array([[0, 1, 0, 1, 0]])
    again = np.array([[False, False, True, False, True]])
    first = np.array([[True, False, False, False, False]])
    batch = Batch(tokens, np.roll(tokens, -1), {"in_context": again, "first": first, "global": ~again & ~first})
    looks1, looks2 = [0, 0, 0, 1, 3], [0, 0, 1, 0, 2]  # where each position attends most
    one_hot = tuple(torch.eye(5)[looks][None, None] for looks in (looks1, looks2))
    x = torch.zeros(1, 5, 1)
    trace = Trace({"embedding": x}, one_hot, one_hot, x, x)
    found = attention(trace, batch)
    assert found["attention.previous"] == 0.5  # after a trigger: t=1 looks at 0, t=3 looks at 1, not 2
    assert found["attention.induction"] == 0.5  # t=2 looks at 1 (after a), t=4 looks at 2 (after b)
    assert found["attention.chain"] == 0.5  # layer 1 looks back at 1, but not at 2


def test_one_fixed_trigger_has_nothing_to_compete_with() -> None:
    model, alone = Simplified(d=8), Bigram(K=1, T=70, triggers="fixed")
    assert np.isnan(recalls(model.memories(model.init(65, 70, 0), alone))["recall.W_K2"])


def test_attention_probes_at_ceiling_and_at_chance(planted: Weights) -> None:
    batch = TASK.sample(0, 0, 8)
    best = attention(Model(MODEL, planted)(batch.tokens), batch)
    assert best["attention.previous"] > 0.99
    assert best["attention.induction"] > 0.95
    assert best["attention.chain"] > 0.95
    chance = attention(Model(MODEL, MODEL.init(TASK.N, TASK.T, 1))(batch.tokens), batch)
    assert all(value < 0.2 for value in chance.values())
