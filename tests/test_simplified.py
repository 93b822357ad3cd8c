"""Laws of the simplified transformer: the forward pass is the paper's, and planted weights solve the task."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.embeddings import directions
from engram.errors import EngramError
from engram.models import Model, Simplified
from engram.models.construct import plant, plant_bigram
from engram.tasks import Bigram

LINEAR = ("attention", "attention", "linear")


def by_hand(w: dict[str, np.ndarray], tokens: list[int], temperature: float) -> list[np.ndarray]:
    """The network of the paper's section 4.2 once more, position by position, in float64 without a matrix product."""

    def apply(W: np.ndarray, x: np.ndarray) -> np.ndarray:
        return np.array([sum(a * b for a, b in zip(row, x, strict=True)) for row in W])

    def head(xs: list[np.ndarray], W_K: np.ndarray, W_V: np.ndarray, W_O: np.ndarray) -> list[np.ndarray]:
        outputs = []
        for t, query in enumerate(xs):
            scores = [float(query @ apply(W_K, key)) / temperature for key in xs[: t + 1]]
            weights = [math.exp(s - max(scores)) for s in scores]
            mixed = sum(a / sum(weights) * apply(W_V, x) for a, x in zip(weights, xs[: t + 1], strict=True))
            outputs.append(query + apply(W_O, np.asarray(mixed)))
        return outputs

    xs = [w["E"][z] + w["P"][t] for t, z in enumerate(tokens)]
    xs = head(xs, w["W_K1"], w["W_V1"], w["W_O1"])
    xs = head(xs, w["W_K2"], w["W_V2"], w["W_O2"])
    if "W_F" in w:
        xs = [x + apply(w["W_F"], x) for x in xs]
    return [apply(w["U"], x) for x in xs]


@given(
    scale=st.sampled_from(["standard", "unit"]),
    blocks=st.sampled_from([LINEAR, LINEAR[:2]]),
    d=st.integers(1, 7),
    T=st.integers(1, 6),
    seed=st.integers(0, 99),
)
@settings(max_examples=25, deadline=None)
def test_logits_equal_a_model_built_by_hand(scale: Any, blocks: Any, d: int, T: int, seed: int) -> None:
    model, N = Simplified(d=d, scale=scale, blocks=blocks), 5
    w = {name: value.double() for name, value in model.init(N, T + 2, seed).items()}
    tokens = np.random.default_rng(seed).integers(0, N, T)
    logits = Model(model, w)(tokens).logits[0].numpy()
    expected = by_hand(
        {name: value.numpy() for name, value in w.items()},
        tokens.tolist(),
        math.sqrt(d) if scale == "standard" else 1.0,
    )
    assert np.abs(logits - np.array(expected)).max() < 1e-6


def test_trace_is_causal_and_normalised() -> None:
    model = Model(Simplified(d=8), Simplified(d=8).init(10, 20, 0))
    trace = model(np.arange(20)[None, :] % 10)
    for pattern in (trace.attention1[0], trace.attention2[0]):
        assert torch.allclose(pattern.sum(dim=1), torch.ones(20))
        assert pattern.triu(1).abs().max() == 0
    shorter = model(np.arange(12) % 10)
    assert torch.allclose(trace.logits[0, :12], shorter.logits[0], atol=1e-5)


NO_TOKENS: list[tuple[Any, str]] = [
    ([], "^tokens: an empty sequence has no prediction"),
    (np.zeros((3, 0), dtype=np.int64), "^tokens: an empty sequence"),
    ([0.5, 1.0], r"^tokens: a sequence or a batch of whole numbers is needed; got \[0\.5, 1\.0\]$"),
    (np.ones(3), "whole numbers is needed; got array"),
    (torch.ones(30, 4), "whole numbers is needed; got tensor"),
    ([True, False], "whole numbers"),
    ("to be", "text: this model has no task that could read it; give token ids$"),
    (["t", "o"], "whole numbers"),
    ([[1, 2], [3]], r"got \[\[1, 2\], \[3\]\]$"),
    ([[[1]]], "whole numbers"),
    ([2**70], "whole numbers"),
    ([0, 10], r"^tokens: a sequence of this model has at most 20 tokens, each in 0 … 9$"),
    ([-1], "each in 0 … 9"),
    ([0] * 21, "at most 20 tokens"),
]


@pytest.mark.parametrize(("tokens", "says"), NO_TOKENS, ids=[f"{tokens!r:.20}" for tokens, _ in NO_TOKENS])
def test_what_is_no_sequence_of_tokens_is_told_in_one_line(tokens: Any, says: str) -> None:
    model = Model(Simplified(d=8), Simplified(d=8).init(10, 20, 0))
    with pytest.raises(EngramError, match=says) as error:
        model(tokens)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.int64])
def test_token_ids_of_any_width_are_the_same(dtype: Any) -> None:
    """Also read-only ones; torch alone would read eight bits as a mask."""
    model, tokens = Model(Simplified(d=8), Simplified(d=8).init(10, 20, 0)), np.array([[1, 0, 1], [2, 9, 0]], dtype)
    tokens.flags.writeable = False
    assert torch.equal(model(tokens).logits, model(tokens.tolist()).logits)


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        ("standard", {"E": 1.0, "P": 1.0, "U": 1 / (3 * 64), "W_K1": 1 / (3 * 64)}),
        ("unit", {"E": 1 / 64, "P": 1 / 64, "U": 1 / 64, "W_K1": 1 / 64}),
    ],
)
def test_first_values_have_the_stated_variance(scale: Any, expected: dict[str, float]) -> None:
    w = Simplified(d=64, scale=scale).init(500, 500, 0)
    for name, variance in expected.items():
        assert w[name].var().item() == pytest.approx(variance, rel=0.05)
        assert abs(w[name].mean().item()) < 4 * math.sqrt(variance / w[name].numel())


def test_layers_of_standard_scale_are_uniform() -> None:
    w = Simplified(d=64).init(500, 10, 0)["W_K1"]
    assert 0.99 / 8 < w.abs().max().item() <= 1 / 8
    below = [(w < edge / 8).double().mean().item() for edge in (-0.5, 0.0, 0.5)]
    assert below == pytest.approx([0.25, 0.5, 0.75], abs=0.03)


def test_first_values_of_a_matrix_do_not_depend_on_the_others() -> None:
    without, with_F = Simplified(d=8).init(5, 6, 3), Simplified(d=8, blocks=LINEAR).init(5, 6, 3)
    assert set(with_F) - set(without) == {"W_F"}
    assert all(torch.equal(without[name], with_F[name]) for name in without)
    assert not torch.equal(without["W_K1"], without["W_K2"])
    assert torch.equal(directions("gaussian", 4, 8, 1, "E"), directions("gaussian", 4, 8, 1, "E"))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_planted_weights_solve_the_task(seed: int) -> None:
    """Eq. 7 at unit scale, d=512, T=256, β=30, 64 sequences."""
    task, model = Bigram(K=5, T=256), Simplified(d=512, scale="unit")
    w = plant(model, task.N, task.T, seed, sharpness=30.0)
    batch = task.sample(seed, 0, 64)
    right = np.concatenate(
        [Model(model, w)(tokens).logits.argmax(dim=-1).numpy() == targets for tokens, targets in
         zip(np.array_split(batch.tokens, 8), np.array_split(batch.targets, 8), strict=True)]
    )  # fmt: skip
    assert right[batch.groups["in_context"]].mean() >= 0.97


def test_planted_bigram_memory_is_exact_for_orthonormal_embeddings() -> None:
    table, eye, left_out = Bigram().table, torch.eye(65, dtype=torch.float64), np.arange(65) == 1
    W_F = plant_bigram({"E": eye, "U": eye}, table.bigram, least=1e-5, left_out=left_out)
    logits = (eye @ W_F.T @ eye.T).numpy()  # row k: U W_F e_k
    expected = np.log(np.maximum(table.bigram, 1e-5))
    expected -= expected.mean(axis=1, keepdims=True)
    assert np.allclose(logits[~left_out], expected[~left_out])
    assert not logits[left_out].any()


def test_planting_leaves_room_for_the_bigram() -> None:
    w = plant(Simplified(d=8, blocks=LINEAR), 65, 8, seed=0, sharpness=1.0)
    assert not w["W_F"].any()
