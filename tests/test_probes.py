"""Every probe is at its ceiling on planted weights and at chance on random ones."""

import numpy as np
import pytest
import torch

from engram.embeddings import directions
from engram.models import Model, Simplified, Trace, Weights
from engram.models.construct import plant, plant_bigram
from engram.probes.attention import attention
from engram.probes.recall import answers_W_F, kl_W_F, memories, recall, scores_W_K1, scores_W_K2, scores_W_O2
from engram.tasks import Batch, Bigram

MODEL, TASK = Simplified(d=1024, scale="unit", blocks=("attention", "attention", "linear")), Bigram(K=5, T=128)


@pytest.fixture(scope="module")
def planted() -> Weights:
    return plant(MODEL, TASK.N, TASK.T, seed=0, sharpness=100.0)


def test_recall_is_one_on_planted_weights(planted: Weights) -> None:
    assert set(memories(planted).values()) == {1.0}
    assert set(memories(planted, np.array([4, 8, 15])).values()) == {1.0}


def test_recall_is_chance_on_random_weights() -> None:
    """Mean over 40 draws within 4 standard errors of 1/n."""
    found = [memories(Simplified(d=32).init(65, 256, seed)) for seed in range(40)]
    for column, n in {"recall.W_O2": 65, "recall.W_K2": 65, "recall.W_K1": 255, "recall.W_K1.t<64": 63}.items():
        values = [row[column] for row in found]
        assert abs(np.mean(values) - 1 / n) < 4 * np.sqrt(1 / n / n / 40) + 1e-3


def test_fixed_triggers_compete_among_themselves() -> None:
    w = Simplified(d=16).init(65, 16, 0)
    assert scores_W_K2(w, torch.tensor([3, 1, 4])).shape == (3, 3)
    assert torch.allclose(scores_W_K2(w, torch.tensor([3, 1, 4])), scores_W_K2(w)[[3, 1, 4]][:, [3, 1, 4]], atol=1e-5)


def test_scores_are_the_bilinear_forms_of_the_table() -> None:
    w = {name: value.double() for name, value in Simplified(d=12).init(7, 9, 0).items()}
    assert scores_W_O2(w)[2, 5].item() == pytest.approx((w["U"][5] @ w["W_O2"] @ w["W_V2"] @ w["E"][2]).item())
    remapped = w["W_O1"] @ w["W_V1"] @ w["E"][5]
    assert scores_W_K2(w)[2, 5].item() == pytest.approx((w["E"][2] @ w["W_K2"] @ remapped).item())
    assert scores_W_K1(w)[2, 5].item() == pytest.approx((w["P"][3] @ w["W_K1"] @ w["P"][5]).item())
    assert scores_W_K1(w, 4).shape == (3, 3)


def test_recall_counts_rows() -> None:
    assert recall(torch.tensor([[2.0, 1.0], [3.0, 1.0]])) == 0.5
    assert recall(torch.eye(9)) == 1.0


def test_kl_of_W_F() -> None:
    """Zero where softmax(U W_F e_k) = π_b; the uniform start level 2.265 of the text where W_F = 0."""
    pi_b, everyone = TASK.table.bigram, np.ones(65, dtype=bool)
    zero = torch.zeros(65, 65)
    assert kl_W_F(zero, pi_b, everyone) == pytest.approx(2.265, abs=1e-3)
    log_pi_b = torch.from_numpy(np.log(np.maximum(pi_b, 1e-30)))
    assert kl_W_F(log_pi_b, pi_b, everyone) == pytest.approx(0.0, abs=1e-9)
    only = np.arange(65) == 7
    assert kl_W_F(zero, pi_b, only) == pytest.approx(np.log(65) - TASK.table.row_entropies[7], abs=1e-6)


def test_planted_bigram_is_near_the_ceiling_of_its_probe() -> None:
    """With random embeddings of width 4096 the planted W_F leaves a tenth of the KL that W_F = 0 has."""
    model = Simplified(d=4096, scale="unit", blocks=("attention", "attention", "linear"))
    w = {name: directions("gaussian/d", 65, 4096, 0, name) for name in ("E", "U")}
    w["W_F"] = plant_bigram(w, TASK.table.bigram)
    assert model.names[-1] == "W_F"
    answers = answers_W_F(model, w)
    assert answers is not None
    assert kl_W_F(answers, TASK.table.bigram, np.ones(65, dtype=bool)) < 0.1 * 2.265


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
    assert np.isnan(memories(Simplified(d=8).init(65, 70, 0), np.array([3]))["recall.W_K2"])


def test_attention_probes_at_ceiling_and_at_chance(planted: Weights) -> None:
    batch = TASK.sample(0, 0, 8)
    best = attention(Model(MODEL, planted)(batch.tokens), batch)
    assert best["attention.previous"] > 0.99
    assert best["attention.induction"] > 0.95
    assert best["attention.chain"] > 0.95
    chance = attention(Model(MODEL, MODEL.init(TASK.N, TASK.T, 1))(batch.tokens), batch)
    assert all(value < 0.2 for value in chance.values())
