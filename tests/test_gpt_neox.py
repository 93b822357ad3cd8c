"""The reader of GPT-NeoX folders: the forward pass written by hand, with parallel layers and without."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engram.adapters import read_network
from engram.adapters.gpt_neox import GPTNeoX
from engram.errors import EngramError
from engram.models import Network
from engram.models.network import Part
from engram.probes.causal import keep
from neoxes import NEOX, neox_by_hand, neox_tensors
from networks import write_folder

TOKENS = np.array([[1, 4, 7, 1, 10, 0], [3, 3, 9, 2, 5, 8]])
VARIANTS: dict[str, dict[str, Any]] = {
    "parallel": {},
    "one after the other": {"use_parallel_residual": False},
    "all turn": {"rotary_pct": 1.0},
    "few turn": {"rotary_pct": 0.25},
    "tied": {"tie_word_embeddings": True},
    "no biases of attention": {"attention_bias": False},
}


def written(folder: Path, **new: Any) -> tuple[Path, dict[str, Any], dict[str, np.ndarray]]:
    config = NEOX | new
    tensors = neox_tensors(config)
    return write_folder(folder / "made-up", config, tensors), config, tensors


@pytest.mark.parametrize("what", list(VARIANTS))
def test_it_is_the_one_written_by_hand(tmp_path: Path, what: str) -> None:
    folder, config, tensors = written(tmp_path, **VARIANTS[what])
    network, expected = read_network(folder, torch.float64), neox_by_hand(config, tensors, TOKENS)
    assert isinstance(network, Network)
    assert np.allclose(network.stream(TOKENS).numpy(), expected, rtol=0, atol=1e-10)
    assert network.sizes.parallel == config["use_parallel_residual"]


@pytest.mark.parametrize("parallel", [True, False])
def test_what_a_watcher_sees_adds_up(tmp_path: Path, parallel: bool) -> None:
    """Parallel layers have no stream between their parts, and the second part does not read what the first wrote."""
    network = read_network(written(tmp_path, use_parallel_residual=parallel)[0], torch.float64)
    seen: dict[tuple[Part, int], torch.Tensor] = {}
    network.stream(TOKENS, lambda part, layer, x: seen.update({(part, layer): x}))
    for i in (1, 2, 3):
        assert torch.equal(seen["resid", i] + seen["head", i] + seen["mlp", i], seen["resid", i + 1])
        assert (("mid", i) in seen) != parallel

    def silent(part: Part, layer: int, x: torch.Tensor) -> torch.Tensor | None:
        return torch.zeros_like(x) if (part, layer) == ("head", 2) else None

    without = keep(network, TOKENS, [("mlp", 2)], silent)["mlp", 2]
    assert torch.equal(without, seen["mlp", 2]) == parallel


def test_factors_of_heads_are_scores_and_writes(tmp_path: Path) -> None:
    network = read_network(written(tmp_path)[0], torch.float64)
    assert isinstance(network, GPTNeoX)
    parts = keep(network, TOKENS, [("resid", 2), ("scores", 2), ("pattern", 2), ("head", 2)])
    x, at, total = (
        network.normed("head", 2, parts["resid", 2]),
        torch.arange(6),
        network.weights["b_O2"].expand(2, 6, 24),
    )
    for h in (1, 2, 3):
        qk, ov = network.qk((2, h)), network.ov((2, h))
        scores = network.rotate(qk.query(x), at) @ network.rotate(qk.key(x), at).mT / qk.temperature
        assert torch.allclose(scores.tril(), parts["scores", 2][:, h - 1].nan_to_num(neginf=0), rtol=0, atol=1e-12)
        total = total + ov.output(parts["pattern", 2][:, h - 1] @ ov.value(x))
    assert torch.allclose(total, parts["head", 2], rtol=0, atol=1e-12)


def test_newer_names(tmp_path: Path) -> None:
    """U as lm_head, and rotary positions as one setting."""
    config, tensors = dict(NEOX), neox_tensors(NEOX)
    rope = {"rope_theta": config.pop("rotary_emb_base"), "partial_rotary_factor": config.pop("rotary_pct")}
    named = {name.replace("embed_out", "lm_head"): array for name, array in tensors.items()}
    folder = write_folder(tmp_path, config | {"rope_parameters": rope | {"rope_type": "default"}}, named)
    found = read_network(folder, torch.float64).stream(TOKENS)
    assert np.allclose(found.numpy(), neox_by_hand(NEOX, tensors, TOKENS), rtol=0, atol=1e-10)


def test_masks_of_older_files_are_no_weights(tmp_path: Path) -> None:
    old = {"gpt_neox.layers.0.attention.bias": np.tri(9)[None, None].astype(np.uint8)}
    old |= {"gpt_neox.layers.0.attention.rotary_emb.inv_freq": np.ones(2, dtype=np.float32)}
    assert "W_Q1" in read_network(write_folder(tmp_path, NEOX, neox_tensors(NEOX) | old)).matrices()


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "scaled positions": ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_scaling: "),
    "odd share": ({"rotary_pct": 0.375}, "rotary_pct: an even number of coordinates must turn; got 3 of 8"),
    "no share": ({"rotary_pct": 0.0}, "rotary_pct: should be greater than 0"),
    "heads": ({"num_attention_heads": 5}, "num_attention_heads: 5 heads do not divide hidden_size=24"),
    "activation": ({"hidden_act": "gelu_fast"}, "hidden_act: should be 'gelu_new'.*got 'gelu_fast'"),
    "other head": ({"architectures": ["GPTNeoXModel"]}, "architectures.0: should be 'GPTNeoXForCausalLM'"),
    "unknown": ({"sliding_window": 3}, "sliding_window: this reader does not know it"),
    "tied": ({"tie_word_embeddings": True, "vocab_size": 12}, r"embed_in\.weight must have the shape \(12, 24\)"),
}


@pytest.mark.parametrize("what", list(REFUSED))
def test_what_it_does_not_know_is_refused_by_name(tmp_path: Path, what: str) -> None:
    new, says = REFUSED[what]
    folder = written(tmp_path)[0]
    (folder / "config.json").write_text(json.dumps(NEOX | new))
    with pytest.raises(EngramError, match=says) as error:
        read_network(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("what", list(VARIANTS))
def test_the_model_is_that_of_transformers(tmp_path: Path, what: str) -> None:
    theirs = pytest.importorskip("transformers", reason="the extra hf is not installed")
    sizes = {name: v for name, v in (NEOX | VARIANTS[what]).items() if name not in ("architectures", "model_type")}
    rope = {"rope_theta": float(sizes.pop("rotary_emb_base")), "partial_rotary_factor": sizes.pop("rotary_pct")}
    config = theirs.GPTNeoXConfig(**sizes, rope_parameters=rope | {"rope_type": "default"})
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    model = theirs.GPTNeoXForCausalLM(config)
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
