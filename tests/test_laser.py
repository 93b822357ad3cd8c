"""Truncation of a Network: every cut equals the whole forward pass with the replaced matrix."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from engram.adapters import read_network
from engram.errors import EngramError
from engram.memory.truncation import Factors
from engram.models import Network, network_of
from engram.probes import prompts
from engram.probes.causal import without_part
from engram.probes.laser import cuts_of, laser, numbers, split, sweep
from engram.probes.prompts import Prompts, entering, log_p, text_loss
from llamas import LLAMA, llama_tensors
from networks import CONFIG, made, tensors, write_folder

PROMPTS = [[1, 2, 3, 4], [5, 6], [7, 8, 9], [2, 2, 1, 1], [3, 1, 4], [1], [5, 9, 2, 6, 5]]
OWN = ("full", "pre-norm", "simplified, linear")
WANTED = torch.tensor([[i % 7, (i + 3) % 7] for i in range(len(PROMPTS))])


def networks(tmp_path: Path) -> dict[str, Network]:
    gpt2 = read_network(write_folder(tmp_path / "gpt2", CONFIG, tensors(CONFIG)), torch.float64)
    llama = read_network(write_folder(tmp_path / "llama", LLAMA, llama_tensors(LLAMA)), torch.float64)
    return {"gpt2": gpt2, "llama": llama} | {name: network_of(made(name)) for name in OWN}


def naive(network: Network, sequences: Sequence[Sequence[int]], wanted: torch.Tensor) -> torch.Tensor:
    """One prompt at a time, the whole way, without any filling."""
    said = [network.stream(torch.tensor([one]), read="last")[0, -1].log_softmax(0) for one in sequences]
    return torch.stack([row[ids] for row, ids in zip(said, wanted, strict=True)])


def test_every_cut_is_the_whole_pass_with_the_replaced_matrix(tmp_path: Path) -> None:
    for name, network in networks(tmp_path).items():
        shares = (0.0, 0.4, 1.0)
        found = dict(sweep(network, Prompts.of(PROMPTS), WANTED, "QKVOGIF", shares))
        assert list(found) == cuts_of(network, "QKVOGIF", shares)
        for cut, said in found.items():
            W = network.matrices()[cut.matrix]
            plain = network.replaced(**{cut.matrix: Factors.of(W).keep(cut.rank)})
            assert torch.allclose(said, naive(plain, PROMPTS, WANTED), atol=1e-10, rtol=0), (name, cut)


def test_the_best_cut_is_chosen_on_other_prompts_than_it_is_reported_on(tmp_path: Path) -> None:
    network = networks(tmp_path)["gpt2"]
    found = laser(network, PROMPTS, WANTED, shares=(0.0, 0.5))
    assert found.chosen_on == (0, 5)
    assert set(found.chosen_on + found.reported_on) == set(range(7))
    assert len(found.cuts) == 3 * 2 * 2
    assert found.cuts[found.cut]["log_p"] == max(one["log_p"] for one in found.cuts.values())
    rows = list(found.reported_on)
    whole = naive(network, [PROMPTS[i] for i in rows], WANTED[rows])
    assert found.full == pytest.approx(numbers(whole), abs=1e-10)
    assert found.full["lead"] == pytest.approx(float((whole[:, 0] - whole[:, 1]).mean()), abs=1e-10)


def test_a_gated_part_without_one_of_its_matrices_is_gone(tmp_path: Path) -> None:
    """Without biases ρ = 0 of gate, up and down is the same thing."""
    network = networks(tmp_path)["llama"]
    found = dict(sweep(network, Prompts.of(PROMPTS), WANTED, "GIF", (0.0,)))
    for layer in (1, 2, 3):
        one, two, three = (said for cut, said in found.items() if cut.layer == layer)
        assert one is two is three
        gone = network.stream(torch.tensor([PROMPTS[0]]), without_part("mlp", layer), read="last")[0, -1]
        assert torch.allclose(one[0], gone.log_softmax(0)[WANTED[0]], atol=1e-10)


def test_without_a_rival_there_is_no_lead() -> None:
    assert set(numbers(torch.zeros(3, 1))) == {"p_answer", "log_p"}
    assert numbers(torch.tensor([[-1.0, -2.0], [-3.0, -1.0]]))["beats"] == 0.5


def test_layers_before_the_cut_are_not_computed_again(tmp_path: Path) -> None:
    network = networks(tmp_path)["gpt2"]
    prompts = Prompts.of(PROMPTS)
    whole = entering(network, prompts).logits(network)
    for layer in (2, 3, 4):
        assert torch.equal(entering(network, prompts, layer).logits(network), whole)
    some = entering(network, prompts, 2).rows([1, 5])
    assert some.x.shape[1] == 2
    assert torch.allclose(some.logits(network), whole[[1, 5]], atol=1e-12)


def test_text_loss_is_the_mean_over_all_next_tokens(tmp_path: Path) -> None:
    network = networks(tmp_path)["gpt2"]
    tokens = torch.randint(11, (5, 9), generator=torch.Generator().manual_seed(0))
    said = network.stream(tokens)[:, :-1].log_softmax(-1)
    plain = -float(said.gather(2, tokens[:, 1:, None]).mean())
    assert text_loss(network, tokens) == pytest.approx(plain, abs=1e-12)
    kept = entering(network, Prompts(tokens, tokens[:, 0]), 3)
    assert text_loss(network, tokens, kept) == pytest.approx(plain, abs=1e-12)


def test_too_little_to_choose_on() -> None:
    with pytest.raises(EngramError, match="at least 5 are needed"):
        split(4)
    with pytest.raises(EngramError, match="each needs a token"):
        Prompts.of([[1], []])


def test_text_loss_in_portions_is_that_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no more logits than those of a portion are ever there."""
    network = networks(tmp_path)["gpt2"]
    tokens = torch.randint(network.sizes.N, (7, 6), generator=torch.Generator().manual_seed(0))
    whole, seen = text_loss(network, tokens), list[int]()
    monkeypatch.setattr(prompts, "LOGITS_AT_ONCE", 4)
    monkeypatch.setattr(prompts, "log_p", lambda logits, ids: seen.append(len(logits)) or log_p(logits, ids))
    assert text_loss(network, tokens) == pytest.approx(whole, abs=1e-12)
    assert (max(seen), sum(seen)) == (4, 7 * 5)
