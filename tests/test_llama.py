"""The reader of Llama folders: its numbers are those of a forward pass written by hand, also where heads share keys."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engram.adapters import read_model, read_network
from engram.adapters.llama import Llama
from engram.errors import EngramError
from engram.models import Network
from engram.models.network import Part
from engram.models.rotary import rotated
from engram.probes.causal import keep, without_heads, without_in_keys
from llamas import LLAMA, llama_by_hand, llama_tensors
from networks import write_folder

TOKENS = np.array([[1, 4, 7, 1, 10, 0], [3, 3, 9, 2, 5, 8]])
VARIANTS: dict[str, dict[str, Any]] = {
    "groups, tied": {},
    "untied": {"tie_word_embeddings": False},
    "every head its own keys": {"num_key_value_heads": None},
    "one key for all": {"num_key_value_heads": 1},
    "wide heads": {"head_dim": 10},
    "biases": {"attention_bias": True, "mlp_bias": True},
}


def written(folder: Path, **new: Any) -> tuple[Path, dict[str, Any], dict[str, np.ndarray]]:
    config = LLAMA | new
    tensors = llama_tensors(config)
    return write_folder(folder / "made-up", config, tensors), config, tensors


@pytest.mark.parametrize("what", list(VARIANTS))
def test_it_is_the_one_written_by_hand(tmp_path: Path, what: str) -> None:
    folder, config, tensors = written(tmp_path, **VARIANTS[what])
    network, expected = read_network(folder, torch.float64), llama_by_hand(config, tensors, TOKENS)
    assert isinstance(network, Network)
    assert np.allclose(network.stream(TOKENS).numpy(), expected, rtol=0, atol=1e-10)
    assert np.allclose(read_network(folder).stream(TOKENS).numpy(), expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("what", list(VARIANTS))
def test_factors_of_heads_are_scores_and_writes(tmp_path: Path, what: str) -> None:
    network = read_network(written(tmp_path, **VARIANTS[what])[0], torch.float64)
    assert isinstance(network, Llama)
    parts = keep(network, TOKENS, [("resid", 2), ("scores", 2), ("pattern", 2), ("z", 2), ("head", 2)])
    x, at = network.normed("head", 2, parts["resid", 2]), torch.arange(6)
    total = network.weights.get("b_O2", torch.zeros(24, dtype=torch.float64)).expand(2, 6, 24)
    for h in range(1, 7):
        qk, ov = network.qk((2, h)), network.ov((2, h))
        scores = network.rotate(qk.query(x), at) @ network.rotate(qk.key(x), at).mT / qk.temperature
        assert torch.allclose(scores.tril(), parts["scores", 2][:, h - 1].nan_to_num(neginf=0), rtol=0, atol=1e-12)
        z = parts["pattern", 2][:, h - 1] @ ov.value(x)
        assert torch.allclose(z, parts["z", 2][:, h - 1], rtol=0, atol=1e-12)
        total = total + ov.output(z)
    assert torch.allclose(total, parts["head", 2], rtol=0, atol=1e-12)


def test_neighbours_share_keys_and_values(tmp_path: Path) -> None:
    network = read_network(written(tmp_path)[0])
    keys = [network.qk((1, h)).key.W for h in range(1, 7)]
    assert torch.equal(keys[0], keys[2])
    assert torch.equal(keys[3], keys[5])
    assert not torch.equal(keys[2], keys[3])
    assert (network.sizes.H, network.sizes.groups, network.sizes.d_h, network.sizes.T) == (6, 2, 4, 32)


def test_keys_of_one_head_can_be_replaced_though_they_are_shared(tmp_path: Path) -> None:
    """Every head is handed its own stream: with the same one for all, nothing changes; with another, one head does."""
    network = read_network(written(tmp_path)[0], torch.float64)
    plain = keep(network, TOKENS, [("scores", 2)])["scores", 2]

    def shown(factor: float) -> torch.Tensor:
        found: dict[str, torch.Tensor] = {}

        def watch(part: Part, layer: int, x: torch.Tensor) -> torch.Tensor | None:
            if (part, layer) == ("scores", 2):
                found["scores"] = x
            if (part, layer) != ("k_in", 2):
                return None
            heads = x[:, None].repeat(1, 6, 1, 1)
            heads[:, 1] = heads[:, 1] + factor * torch.arange(24)
            return heads

        network.stream(TOKENS, watch)
        return found["scores"]

    assert torch.allclose(shown(0), plain, rtol=0, atol=1e-12)
    moved = (shown(1) - plain).nan_to_num().abs().amax(dim=(0, 2, 3))
    assert (moved > 1e-3).tolist() == [False, True, False, False, False, False]


def test_causal_tools_serve_it_too(tmp_path: Path) -> None:
    network, tokens = read_network(written(tmp_path)[0], torch.float64), torch.from_numpy(TOKENS)
    for watch in (without_heads([(1, 5)]), without_in_keys(network, (1, 4), [(3, 2)])):
        assert not torch.allclose(network.stream(tokens, watch), network.stream(tokens))


def test_scores_of_rotated_vectors_know_only_the_distance() -> None:
    q, k = torch.randn(2, 1, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def score(t: int, s: int) -> float:
        turned = (rotated(x, torch.tensor([at]), 50.0, 6) for x, at in ((q, t), (k, s)))
        one, other = turned
        return float((one * other).sum())

    assert score(9, 4) == pytest.approx(score(5, 0), abs=1e-12)
    assert score(9, 4) != pytest.approx(score(9, 5), abs=1e-3)
    assert torch.equal(rotated(q, torch.tensor([7]), 50.0, 6)[:, 6:], q[:, 6:])


def test_matrices_have_our_names(tmp_path: Path) -> None:
    folder, _, tensors = written(tmp_path)
    found = read_network(folder).matrices()
    assert set(found) == {"E", "U"} | {f"W_{letter}{i}" for letter in "QKVOGIF" for i in (1, 2, 3)}
    assert np.array_equal(found["W_G2"].numpy(), tensors["model.layers.1.mlp.gate_proj.weight"])
    assert np.array_equal(found["W_K3"].numpy(), tensors["model.layers.2.self_attn.k_proj.weight"])


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "scaled positions": ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_scaling: "),
    "scaled positions, newer": (
        {"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0}},
        "rope_parameters.rope_type: should be 'default'; got 'llama3'",
    ),
    "two bases": ({"rope_parameters": {"rope_theta": 7.0}}, "rope_theta: 100.0 is not that of rope_parameters, 7.0"),
    "groups": ({"num_key_value_heads": 4}, "num_key_value_heads: 4 groups do not divide 6 heads"),
    "heads": ({"num_attention_heads": 5, "num_key_value_heads": 5}, "num_attention_heads: 5 heads do not divide"),
    "odd heads": ({"num_attention_heads": 8, "num_key_value_heads": 8}, "num_attention_heads: 8 heads do not divide"),
    "activation": ({"hidden_act": "gelu"}, "hidden_act: should be 'silu' or 'swish'; got 'gelu'"),
    "sliding": ({"sliding_window": 128}, "sliding_window: this reader does not know it"),
    "other head": ({"architectures": ["LlamaForSequenceClassification"]}, "architectures.0: should be"),
    "base": ({"rope_theta": float("nan")}, "rope_theta: should be"),
    "biases": ({"attention_bias": True}, r"the tensor layers\.0\.self_attn\.q_proj\.bias is missing"),
    "untied": ({"tie_word_embeddings": False}, r"the tensor lm_head\.weight is missing"),
}


@pytest.mark.parametrize("what", list(REFUSED))
def test_what_it_does_not_know_is_refused_by_name(tmp_path: Path, what: str) -> None:
    new, says = REFUSED[what]
    folder = written(tmp_path)[0]
    (folder / "config.json").write_text(json.dumps(LLAMA | new))
    with pytest.raises(EngramError, match=says) as error:
        read_network(folder)
    assert "\n" not in str(error.value)


def test_settings_of_newer_configs(tmp_path: Path) -> None:
    folder, config, tensors = written(tmp_path)
    del config["rope_theta"]
    newer = {
        "rope_parameters": {"rope_type": "default", "rope_theta": 100},
        "attention_dropout": 0.0,
        "pretraining_tp": 1,
    }
    (folder / "config.json").write_text(json.dumps(config | newer))
    network = read_network(folder, torch.float64)
    assert np.allclose(network.stream(TOKENS).numpy(), llama_by_hand(LLAMA, tensors, TOKENS), rtol=0, atol=1e-10)


def test_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    assert read_model(written(tmp_path)[0]).tokenizer is None


@pytest.mark.parametrize("what", list(VARIANTS))
def test_the_model_is_that_of_transformers(tmp_path: Path, what: str) -> None:
    """Logits, attention and hidden states."""
    theirs = pytest.importorskip("transformers", reason="the extra hf is not installed")
    sizes = {name: v for name, v in (LLAMA | VARIANTS[what]).items() if name not in ("architectures", "model_type")}
    base = sizes.pop("rope_theta")
    config = theirs.LlamaConfig(**sizes, rope_parameters={"rope_type": "default", "rope_theta": base})
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    model = theirs.LlamaForCausalLM(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.tie_weights()
    model.eval().save_pretrained(tmp_path / "saved")
    network, parts = read_network(tmp_path / "saved"), dict[tuple[Part, int], torch.Tensor]()
    with torch.no_grad():
        out = model(torch.from_numpy(TOKENS), output_attentions=True, output_hidden_states=True)
    logits = network.stream(TOKENS, lambda part, layer, x: parts.update({(part, layer): x}))
    assert torch.allclose(logits, out.logits, rtol=0, atol=1e-5)
    for i in (1, 2, 3):
        assert torch.allclose(parts["pattern", i], out.attentions[i - 1], rtol=0, atol=1e-5)
        assert torch.allclose(parts["resid", i], out.hidden_states[i - 1], rtol=0, atol=1e-5)
