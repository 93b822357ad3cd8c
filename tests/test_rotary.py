"""Rotary positions and biases of the general transformer: a forward pass by hand, torch, and the Network agree."""

from math import cos, sin, sqrt
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import layer_norm

from engram.errors import EngramError
from engram.learning import reference
from engram.models import Layer, Model, Transformer, Weights, network_of
from engram.models.rotary import turned_by_position
from engram.tasks import Batch

LETTERS = ("Q", "K", "V", "O", "I", "F")
LAYERS = (Layer(heads=2, feed_forward="mlp"), Layer(heads=3, feed_forward="linear"), Layer(heads=1))
FULL = Transformer(d=12, hidden=7, layers=LAYERS, norm="pre", positions="rotary", biases=LETTERS)


def weights(model: Transformer, N: int = 9, T: int = 11) -> Weights:
    """Biases drawn, too: zero ones would hide that they are missing."""
    draw = torch.Generator().manual_seed(5)
    w = {name: value.double() for name, value in model.init(N, T, 3).items()}
    return w | {n: torch.randn(len(w[n]), dtype=torch.float64, generator=draw) for n in w if n.startswith("b_")}


def tokens(N: int = 9, B: int = 2, T: int = 11) -> np.ndarray:
    return np.random.default_rng(0).integers(0, N, (B, T))


def turned(x: list[float], t: int) -> list[float]:
    """R_t x, coordinate by coordinate."""
    half = len(x) // 2
    at = [t * 10000.0 ** (-2 * j / len(x)) for j in range(half)]
    first = [x[j] * cos(at[j]) - x[j + half] * sin(at[j]) for j in range(half)]
    return first + [x[j + half] * cos(at[j]) + x[j] * sin(at[j]) for j in range(half)]


def by_hand(model: Transformer, w: Weights, z: np.ndarray) -> torch.Tensor:
    """One sequence, one head and one position at a time."""
    x = w["E"][torch.from_numpy(z)]
    for i, layer in enumerate(model.layers, 1):
        n, d_h = layer_norm(x, (model.d,)), model.d // layer.heads
        q, k, v = (n @ w[f"W_{letter}{i}"].T + w[f"b_{letter}{i}"] for letter in "QKV")
        z_all = torch.zeros_like(x)
        for h in range(layer.heads):
            own = slice(h * d_h, (h + 1) * d_h)
            for t in range(len(x)):
                asked = torch.tensor(turned(q[t, own].tolist(), t), dtype=torch.float64)
                keys = torch.tensor([turned(k[s, own].tolist(), s) for s in range(t + 1)], dtype=torch.float64)
                z_all[t, own] = (keys @ asked / sqrt(d_h)).softmax(dim=0) @ v[: t + 1, own]
        x = x + z_all @ w[f"W_O{i}"].T + w[f"b_O{i}"]
        if layer.feed_forward != "none":
            units = n = layer_norm(x, (model.d,))
            if layer.feed_forward == "mlp":
                units = (n @ w[f"W_I{i}"].T + w[f"b_I{i}"]).relu()
            x = x + units @ w[f"W_F{i}"].T + w[f"b_F{i}"]
    return layer_norm(x, (model.d,)) @ w["U"].T


def test_the_forward_pass_is_the_one_by_hand() -> None:
    w, z = weights(FULL), tokens()
    logits = FULL.forward(w, torch.from_numpy(z)).logits
    for row, sequence in zip(logits, z, strict=True):
        assert torch.allclose(row, by_hand(FULL, w, sequence), rtol=0, atol=1e-10)


def test_a_network_is_its_model() -> None:
    """Rotated queries and keys, biases and all: the stream has the logits of the forward pass."""
    w, z = weights(FULL), tokens()
    network = network_of(Model(FULL, w))
    assert torch.allclose(network.stream(z), FULL.forward(w, torch.from_numpy(z)).logits, rtol=0, atol=1e-10)
    assert network.sizes.T == 65536


def test_scores_see_only_how_far_apart_positions_are() -> None:
    draw = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, 8, dtype=torch.float64, generator=draw) for _ in range(2))
    near, far = ([torch.tensor([t + by]) for t in (7, 2)] for by in (0, 1000))
    one, two = ((turned_by_position(q, t) @ turned_by_position(k, s).T).item() for t, s in (near, far))
    assert one == pytest.approx(two, abs=1e-10)
    assert turned_by_position(q, torch.tensor([31])).norm().item() == pytest.approx(q.norm().item(), abs=1e-12)


def test_gradients_are_those_of_small_steps() -> None:
    """One entry of every trained matrix and bias."""
    w, z = weights(FULL), tokens(T=12)
    everywhere = np.ones((2, 11), dtype=bool)
    batch = Batch(z[:, :-1], z[:, 1:], {"all_of_them": everywhere})
    found = reference.gradients(FULL, w, batch, "all", FULL.names).gradients
    for name in FULL.names:
        at, h = (0,) * w[name].ndim, 1e-5
        near = []
        for sign in (1, -1):
            moved = w[name].clone()
            moved[at] += sign * h
            near.append(reference.gradients(FULL, w | {name: moved}, batch, "all", ()).metrics["loss"])
        assert float(found[name][at]) == pytest.approx((near[0] - near[1]) / (2 * h), abs=1e-7), name


def test_names_and_first_values() -> None:
    model = Transformer(d=4, layers=(Layer(queries="identity"), Layer(heads=2)), positions="rotary", biases=("Q", "I"))
    assert model.names == ("E", "U", "W_K1", "W_V1", "W_O1", "W_Q2", "W_K2", "W_V2", "W_O2", "b_Q2")
    assert not model.init(5, 6, 0)["b_Q2"].any()
    plain = Transformer(d=4, layers=(Layer(heads=2),))
    same = {name: value for name, value in plain.init(5, 6, 0).items() if name != "P"}
    rotary = Transformer(d=4, layers=(Layer(heads=2),), positions="rotary").init(5, 6, 0)
    assert all(torch.equal(rotary[name], value) for name, value in same.items())


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"d": 6, "layers": (Layer(heads=2),), "positions": "rotary"}, "turns pairs of coordinates"),
        ({"biases": ("K", "Q")}, "each letter once, in the order"),
        ({"biases": ("Q", "Q")}, "each letter once"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(EngramError, match=words):
        Transformer(**fields)
