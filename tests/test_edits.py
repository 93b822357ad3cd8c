"""Edits of a Network: closed forms of the outer-product write, stacks, and the optimised value."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engram.adapters import read_network
from engram.errors import EngramError
from engram.models import Network, network_of
from engram.probes.edits import Edit, Edits, fingerprint
from engram.probes.prompts import Prompts, entering
from engram.probes.rome import rome
from engram.probes.write import at, key_direction, readout, second_moment, write
from llamas import LLAMA, llama_tensors
from networks import CONFIG, made, tensors, write_folder

PROMPT = [1, 5, 3, 2]
LM = CONFIG | {"architectures": ["GPT2LMHeadModel"]}


@pytest.fixture(params=["gpt2", "llama", "pre-norm"])
def network(request: pytest.FixtureRequest, tmp_path: Path) -> Network:
    if request.param == "pre-norm":
        return network_of(made(request.param))
    if request.param == "llama":
        weights = llama_tensors(LLAMA) | {"model.norm.weight": np.ones(24, np.float32)}
        return read_network(write_folder(tmp_path / "llama", LLAMA, weights), torch.float64)
    weights = tensors(LM, prefix="transformer.") | {"transformer.ln_f.weight": np.ones(12, np.float32)}
    return read_network(write_folder(tmp_path / "gpt2", LM, weights), torch.float64)


def moment(network: Network, layer: int) -> torch.Tensor:
    rows = torch.randint(network.sizes.N, (40, network.sizes.T), generator=torch.Generator().manual_seed(1))
    return second_moment(network, rows, layer)


def key(network: Network, layer: int, tokens: list[int] = PROMPT) -> torch.Tensor:
    return at(network, entering(network, Prompts.of([tokens]), layer), len(tokens) - 1).k


def said(network: Network, tokens: list[int] = PROMPT) -> torch.Tensor:
    return network.stream(torch.tensor([tokens]), read="last")[0, -1]


def other(network: Network) -> tuple[int, int]:
    """The answer, and another one that a large enough step towards it makes the likeliest."""
    U, old = readout(network), int(said(network).argmax())
    far = network.normed("logits", network.sizes.L, 1e6 * (U - U[old])) @ U.T  # [a]: logits after a long step
    return old, next(a for a in range(1, len(U)) if a != old and int(far[a].argmax()) == a)


def test_the_second_moment_is_the_mean_of_outer_products(network: Network) -> None:
    rows = torch.randint(network.sizes.N, (11, 5), generator=torch.Generator().manual_seed(1))
    keys = [key(network, 2, rows[b, : t + 1].tolist()) for b in range(11) for t in range(1, 5)]
    C = torch.stack([torch.outer(k, k) for k in keys]).mean(0)
    ridge = 1e-3 * C.diagonal().mean() * torch.eye(len(C)).double()
    assert torch.allclose(second_moment(network, rows, 2), C + ridge, atol=1e-12)


def test_the_write_moves_what_the_key_makes_by_exactly_beta_d(network: Network) -> None:
    old, new = other(network)
    for layer in (1, 2):
        edit = write(network, PROMPT, new, layer, moment(network, layer), size=0.7)
        k, W, U = key(network, layer), network.matrices()[f"W_F{layer}"], readout(network)
        here = entering(network, Prompts.of([PROMPT]), layer + 1)
        d = (U[new] - U[old]) / (U[new] - U[old]).norm()
        beta = 0.7 * here.x[0, -1].norm()
        assert torch.allclose(edit.of(W) @ k - W @ k, beta * d, atol=1e-10)
        after = entering(Edits(network).plus(edit).network, Prompts.of([PROMPT]), layer + 1)
        assert torch.allclose(after.x[0, -1] - here.x[0, -1], beta * d, atol=1e-10)


def test_with_C_the_identity_it_is_the_smallest_change_that_does_so(network: Network) -> None:
    _, new = other(network)
    k = key(network, 2)
    edit = write(network, PROMPT, new, 2, torch.eye(len(k), dtype=torch.float64))
    moved = edit.of(network.matrices()["W_F2"]) @ k - network.matrices()["W_F2"] @ k
    smallest = moved[:, None] @ torch.linalg.pinv(k[:, None])  # the least-squares solution of D k = moved
    assert torch.allclose(torch.outer(edit.u, edit.v), smallest, atol=1e-10)
    assert edit.norm == pytest.approx(float(moved.norm() / k.norm()), abs=1e-10)


def test_the_direction_moves_other_keys_least(network: Network) -> None:
    """Among all v with v·k = 1, k̃ has the smallest mean square (v·k')² over the keys of C."""
    k, C = key(network, 2), moment(network, 2)
    best, g = key_direction(k, C), torch.Generator().manual_seed(2)
    assert float(best @ k) == pytest.approx(1, abs=1e-10)
    for _ in range(20):
        aside = torch.randn(len(k), generator=g).double()
        aside -= aside @ k / (k @ k) * k
        assert float((best + aside) @ C @ (best + aside)) > float(best @ C @ best)


def test_keys_that_are_orthogonal_in_C_do_not_move(network: Network) -> None:
    _, new = other(network)
    k, C, W = key(network, 2), moment(network, 2), network.matrices()["W_F2"]
    edit = write(network, PROMPT, new, 2, C)
    far = torch.randn(len(k), generator=torch.Generator().manual_seed(3)).double()
    far -= (edit.v @ far) / (edit.v @ k) * k
    assert torch.allclose(edit.of(W) @ far, W @ far, atol=1e-10)


def test_the_smallest_size_flips_and_a_smaller_one_does_not(network: Network) -> None:
    _, new = other(network)
    L = network.sizes.L
    edit = write(network, PROMPT, new, L, moment(network, L), size=None)
    assert int(said(Edits(network).plus(edit).network).argmax()) == new
    assert int(said(Edits(network).plus(edit.scaled(0.98)).network).argmax()) != new


def test_stacks_apply_in_order_and_undo_to_the_byte(network: Network) -> None:
    order = said(network).argsort(descending=True).tolist()
    C = moment(network, 2)
    first = write(network, PROMPT, order[2], 2, C)
    second = write(network, [4, 4, 1], order[3], 1, moment(network, 1))
    third = write(Edits(network).plus(first).network, [2, 6], order[4], 2, C)
    third = replace(third, model=first.model)  # weights from no file are known by themselves
    both = Edits(network).plus(first, second, third)
    assert both.network.matrices()["W_F1"].equal(second.of(network.matrices()["W_F1"]))
    assert both.network.matrices()["W_F2"].equal(third.of(first.of(network.matrices()["W_F2"])))
    back = both.minus(first).minus(third).minus(second)
    assert back.network is network
    assert both.minus(first).network.matrices()["W_F2"].equal(third.of(network.matrices()["W_F2"]))
    with pytest.raises(EngramError, match="not one of the stack"):
        back.minus(first)


def test_an_edit_of_another_model_is_refused(network: Network) -> None:
    edit = Edit(2, torch.zeros(network.sizes.d), torch.zeros(3), fingerprint(network))
    with pytest.raises(EngramError, match="W_F2"):
        Edits(network).plus(edit)
    with pytest.raises(EngramError, match="was made for the model with SHA-256 000"):
        Edits(network).plus(Edit(2, edit.u, edit.v, "0" * 64))
    with pytest.raises(EngramError, match="that of the model has none"):
        Edits(network).plus(Edit(9, edit.u, edit.v, fingerprint(network)))


def test_the_optimised_value_flips_and_writes_at_the_subject(network: Network) -> None:
    _, new = other(network)
    edit = rome(network, PROMPT, new, 1, moment(network, 1), subject=2)
    edited = Edits(network).plus(edit).network
    assert said(edited).log_softmax(0)[new] > said(network).log_softmax(0)[new]
    k, W = key(network, 1, PROMPT[:3]), network.matrices()["W_F1"]
    assert torch.allclose(edit.of(W) @ k - W @ k, edit.u, atol=1e-10)
    with pytest.raises(EngramError, match="behind position 0"):
        rome(network, PROMPT, new, 1, moment(network, 1), subject=0)


def test_nothing_to_edit(network: Network) -> None:
    old, _ = other(network)
    with pytest.raises(EngramError, match="already"):
        write(network, PROMPT, old, 2, moment(network, 2))


def test_a_layer_without_a_feed_forward_part() -> None:
    bare = network_of(made("attention only"))
    for attempt in (lambda: moment(bare, 2), lambda: write(bare, PROMPT, int(said(bare).argmin()), 2, torch.eye(2))):
        with pytest.raises(EngramError, match="no feed-forward part"):
            attempt()
