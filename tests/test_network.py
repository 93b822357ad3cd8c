"""A Network streams what its model computes: the same numbers, part by part, and nothing is kept."""

import weakref
from typing import Any

import pytest
import torch
from torch import Tensor

from engram.errors import EngramError
from engram.models import Model, Network, Trace, network_of
from engram.models.network import PARTS, Part, Watch
from networks import MODELS, TASK, made, sequences

EVERY = pytest.mark.parametrize("name", list(MODELS))
EXACT: dict[str, Any] = {"rtol": 0, "atol": 1e-12}


def watched(network: Network, tokens: Tensor) -> dict[tuple[Part, int], Tensor]:
    found: dict[tuple[Part, int], Tensor] = {}

    def watch(part: Part, layer: int, tensor: Tensor) -> None:
        found[part, layer] = tensor

    network.stream(tokens, watch)
    return found


@EVERY
def test_logits_are_those_of_the_forward_pass(name: str) -> None:
    model = made(name)
    network = network_of(model)
    assert isinstance(network, Network)
    assert torch.allclose(network.stream(sequences()), model(sequences()).logits, **EXACT)


@EVERY
def test_a_watcher_sees_what_a_trace_holds(name: str) -> None:
    model = made(name)
    trace, parts = model(sequences()), watched(network_of(model), sequences())
    L = len(trace.attention)
    assert {part for part, _ in parts} <= set(PARTS)
    assert torch.allclose(parts["resid", 1], trace.written["embedding"], **EXACT)
    assert torch.allclose(parts["resid", L + 1], trace.x, **EXACT)
    for i in range(1, L + 1):
        assert torch.equal(parts["k_in", i], parts["resid", i])
        assert torch.allclose(parts["scores", i], trace.scores[i - 1], **EXACT)
        assert torch.allclose(parts["pattern", i], trace.attention[i - 1], **EXACT)
        assert torch.allclose(parts["head", i], trace.written[f"head{i}"], **EXACT)
        assert (("mlp", i) in parts) == (("mid", i) in parts) == (("units", i) in parts) == has_mlp(trace, i)
    for i in (i for i in range(1, L + 1) if has_mlp(trace, i)):
        assert torch.allclose(parts["mlp", i], mlp(trace, i), **EXACT)


def has_mlp(trace: Trace, i: int) -> bool:
    return f"W_F{i}" in trace.written or (i == 2 and "W_F" in trace.written)


def mlp(trace: Trace, i: int) -> Tensor:
    return trace.written.get(f"W_F{i}", trace.written.get("W_F", torch.zeros(0)))


@EVERY
def test_factors_of_heads_are_scores_and_writes(name: str) -> None:
    network = network_of(made(name))
    parts = watched(network, sequences())
    written = {i: torch.zeros_like(parts["head", i]) for i in range(1, network.sizes.L + 1)}
    for i, h in network.heads():
        x, qk, ov = network.normed("head", i, parts["resid", i]), network.qk((i, h)), network.ov((i, h))
        at = torch.arange(x.shape[1])
        scores = network.rotate(qk.query(x), at) @ network.rotate(qk.key(x), at).mT / qk.temperature
        assert torch.allclose(scores.tril(), parts["scores", i][:, h - 1].nan_to_num(neginf=0), **EXACT)
        z = parts["pattern", i][:, h - 1] @ ov.value(x)
        assert torch.allclose(z, parts["z", i][:, h - 1], **EXACT)
        written[i] += ov.output(z)
    assert all(torch.allclose(written[i], parts["head", i], **EXACT) for i in written)


@EVERY
def test_a_stream_stops_and_goes_on_anywhere(name: str) -> None:
    network = network_of(made(name))
    whole, L = network.stream(sequences()), network.sizes.L
    for i in range(L + 1):
        x = network.stream(sequences(), stop=i, read="none")
        assert torch.allclose(network.stream(x=x, start=i + 1), whole, **EXACT)
    assert torch.allclose(network.stream(sequences(), read="last"), whole[:, -1:], **EXACT)
    lens = network.stream(x=network.stream(sequences(), stop=1, read="none"), start=L + 1)
    assert torch.allclose(network.stream(sequences(), stop=1), lens, **EXACT)


def test_what_a_watcher_returns_takes_the_place_of_what_it_saw() -> None:
    """Every part alone, patched with that of another run, changes the logits; patched with its own, it does not."""
    network = network_of(made("pre-norm"))
    one, other = sequences(6).split(3)
    here, there, whole = watched(network, one), watched(network, other), network.stream(one)
    for place, tensor in here.items():
        assert torch.equal(network.stream(one, instead(place, tensor)), whole), place
        assert not torch.allclose(network.stream(one, instead(place, there[place])), whole), place


def instead(place: tuple[Part, int], new: Tensor) -> Watch:
    return lambda part, layer, tensor: new if (part, layer) == place else None


def test_keys_of_one_head_may_be_made_of_something_else() -> None:
    network = network_of(made("pre-norm"))
    whole = watched(network, sequences())
    H = 3

    def replace(part: Part, layer: int, tensor: Tensor) -> Tensor | None:
        if (part, layer) != ("k_in", 2):
            return None
        each = tensor[:, None].repeat(1, H, 1, 1)
        each[:, 1] = 0.5 * tensor.roll(1, 0)
        return each

    def watch(part: Part, layer: int, tensor: Tensor) -> Tensor | None:
        found[part, layer] = tensor
        return replace(part, layer, tensor)

    found: dict[tuple[Part, int], Tensor] = {}
    network.stream(sequences(), watch)
    differs = [not torch.allclose(found["scores", 2][:, h], whole["scores", 2][:, h]) for h in range(H)]
    assert differs == [False, True, False]


def test_nothing_is_kept() -> None:
    """When a layer begins, the maps and streams of the one before are gone."""
    network, alive = network_of(made("attention only")), list[tuple[str, int, Any]]()
    left: list[tuple[str, int]] = []

    def watch(part: Part, layer: int, tensor: Tensor) -> None:
        if part == "k_in":
            left.extend((name, i) for name, i, ref in alive if i < layer and ref() is not None)
        alive.append((part, layer, weakref.ref(tensor)))

    network.stream(sequences(), watch)
    assert left == []
    assert [name for name, _, ref in alive if ref() is not None] == []


def test_replaced_shares_all_other_tensors_and_says_so() -> None:
    network = network_of(made("full"))
    W_O2 = torch.zeros_like(network.matrices()["W_O2"])
    other = network.replaced(W_O2=W_O2)
    assert other.matrices()["W_O2"] is W_O2
    assert all(other.matrices()[name] is W for name, W in network.matrices().items() if name != "W_O2")
    assert str(other.provenance) == "Transformer (engram, W_O2 replaced)"
    assert watched(other, sequences())["head", 2].abs().max() == 0


def test_sizes_and_heads() -> None:
    network = network_of(made("full"))
    assert list(network.heads()) == [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3)]
    sizes = network.sizes
    assert (sizes.L, sizes.H, sizes.d, sizes.d_h, sizes.N, sizes.T) == (2, 3, 12, 4, TASK.N, TASK.T)
    assert "OwnNetwork(sizes=Sizes(L=2, H=3" in repr(network)
    assert "tensor" not in repr(network)


def run(**how: Any) -> Any:
    return network_of(made("full")).stream(**how)


X = torch.zeros(1, 2, 12, dtype=torch.float64)
WRONG: list[tuple[Any, str]] = [
    (lambda: run(), "give tokens, or x that enters"),
    (lambda: run(tokens=[1, 2], x=X), "give tokens, or x that enters"),
    (lambda: run(tokens=[1, 2], start=2), "give tokens, or x that enters"),
    (lambda: run(x=X, start=4), "layers count from 1 to 2, and start from 1 to 3; got 4"),
    (lambda: run(tokens=[1, 2], stop=3), "layers count from 1 to 2"),
    (lambda: network_of(made("full"))._refuse(1, 2, "first"), "read: unknown 'first'; allowed: all, last, none"),
    (lambda: run(tokens=[99]), "each in 0 … 64"),
    (lambda: run(tokens=list(range(25))), "at most 24 tokens"),
    (lambda: run(tokens=[1, 2], watch=lambda *at: X[:, :1]), r"watch: resid of layer 1 has the shape \(1, 2, 12\)"),
    (lambda: network_of(made("full")).replaced(W_O9=X), "no tensor 'W_O9'; did you mean W_O"),
    (lambda: network_of(made("full")).replaced(W_O1=X), r"W_O1 has the shape \(12, 12\); got \(1, 2, 12\)"),
    (lambda: network_of(made("full")).qk((1, 3)), r"no head \(1, 3\)"),
    (lambda: network_of(made("full")).ov((0, 1)), r"no head \(0, 1\)"),
]


@pytest.mark.parametrize(("act", "says"), WRONG, ids=[f"{i}" for i in range(len(WRONG))])
def test_what_cannot_be_is_refused(act: Any, says: str) -> None:
    with pytest.raises(EngramError, match=says):
        act()


def test_other_models_are_no_network() -> None:
    with pytest.raises(EngramError, match="a Transformer or Simplified is needed"):
        network_of(Model(_Other(), {}))


class _Other:
    names = ()

    def init(self, N: int, T: int, seed: int) -> dict[str, Tensor]:
        return {}

    def forward(self, w: dict[str, Tensor], tokens: Tensor) -> Any:
        return None
