"""The reader of GPT-2 folders: its numbers are those of a forward pass written by hand, and what it does not know it
refuses by name."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engram.adapters import families, read_network
from engram.adapters.gpt2 import GPT2
from engram.errors import EngramError
from engram.models import Network
from engram.models.dropout import Dropout
from engram.models.network import Part
from engram.probes.causal import Place, blocked, keep, without_heads, without_in_keys
from engram.probes.edges import previous_edges
from networks import CONFIG, tensors, write_folder

TOKENS = np.array([[1, 4, 7, 1, 10, 0], [3, 3, 9, 2, 5, 8]])
LM: dict[str, Any] = CONFIG | {"architectures": ["GPT2LMHeadModel"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "made-up", CONFIG, tensors(CONFIG))


def by_hand(config: dict[str, Any], w: dict[str, np.ndarray], tokens: np.ndarray) -> np.ndarray:
    """GPT-2 in NumPy and float64, one head and one position at a time; the final layer norm, before any head."""
    w = {name.removeprefix("transformer."): array.astype(np.float64) for name, array in w.items()}
    d_h = config["n_embd"] // config["n_head"]

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + config["layer_norm_epsilon"])
        return centred / spread * w[f"{name}.weight"] + w[f"{name}.bias"]

    def gelu(x: np.ndarray) -> np.ndarray:
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    def attend(x: np.ndarray, at: str) -> np.ndarray:
        q, k, v = np.split(x @ w[f"{at}.c_attn.weight"] + w[f"{at}.c_attn.bias"], 3, axis=1)
        mixed = np.zeros_like(x)
        for t in range(len(x)):
            for h in range(config["n_head"]):
                own = slice(h * d_h, (h + 1) * d_h)
                scores = np.exp(k[: t + 1, own] @ q[t, own] / np.sqrt(d_h))
                mixed[t, own] = scores @ v[: t + 1, own] / scores.sum()
        return mixed @ w[f"{at}.c_proj.weight"] + w[f"{at}.c_proj.bias"]

    def one(sequence: np.ndarray) -> np.ndarray:
        x = w["wte.weight"][sequence] + w["wpe.weight"][: len(sequence)]
        for i in range(config["n_layer"]):
            x = x + attend(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn")
            inner = gelu(norm(x, f"h.{i}.ln_2") @ w[f"h.{i}.mlp.c_fc.weight"] + w[f"h.{i}.mlp.c_fc.bias"])
            x = x + inner @ w[f"h.{i}.mlp.c_proj.weight"] + w[f"h.{i}.mlp.c_proj.bias"]
        return norm(x, "ln_f")

    return np.stack([one(sequence) for sequence in tokens])


def test_a_trunk_is_the_one_written_by_hand(folder: Path) -> None:
    network = read_network(folder, torch.float64)
    assert isinstance(network, Network)
    expected = by_hand(CONFIG, tensors(CONFIG), TOKENS)
    assert np.allclose(network.stream(TOKENS).numpy(), expected, rtol=0, atol=1e-10)
    single = read_network(str(folder)).stream(TOKENS)
    assert single.dtype == torch.float32
    assert np.allclose(single.numpy(), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("prefix", ["", "transformer."])
@pytest.mark.parametrize("tied", [True, False])
def test_a_head_is_tied_or_its_own(tmp_path: Path, prefix: str, tied: bool) -> None:
    config, w = LM | {"tie_word_embeddings": tied, "n_inner": 20}, tensors(LM | {"n_inner": 20}, prefix=prefix)
    head = np.random.default_rng(1).normal(size=(11, 12)).astype(np.float32)
    network = read_network(write_folder(tmp_path / "lm", config, w | {"lm_head.weight": head}), torch.float64)
    U = w[f"{prefix}wte.weight"] if tied else head
    expected = by_hand(config, w, TOKENS) @ U.T.astype(np.float64)
    assert np.allclose(network.stream(TOKENS).numpy(), expected, rtol=0, atol=1e-10)
    assert network.stream(TOKENS, read="last").shape == (2, 1, 11)


def test_masks_of_older_files_are_no_weights(tmp_path: Path) -> None:
    mask, value = np.tri(9)[None, None].astype(np.uint8), np.array([-1e4], dtype=np.float32)
    old = {"h.0.attn.bias": mask, "h.0.attn.masked_bias": value}
    network = read_network(write_folder(tmp_path / "old", CONFIG, tensors(CONFIG) | old))
    assert "W_Q1" in network.matrices()


def test_matrices_have_our_names_and_orientation(folder: Path) -> None:
    network, w = read_network(folder), tensors(CONFIG)
    found = network.matrices()
    assert set(found) == {"E", "P"} | {f"W_{letter}{i}" for letter in "QKVOIF" for i in (1, 2, 3)}
    assert np.array_equal(found["W_K2"].numpy(), w["h.1.attn.c_attn.weight"][:, 12:24].T)
    assert np.array_equal(found["W_F3"].numpy(), w["h.2.mlp.c_proj.weight"].T)
    other = network.replaced(b_O2=torch.zeros(12), W_O2=torch.zeros(12, 12))
    assert keep(other, TOKENS, [("head", 2)])["head", 2].abs().max() == 0


def test_factors_of_heads_with_biases_are_scores_and_writes(folder: Path) -> None:
    network = read_network(folder, torch.float64)
    assert isinstance(network, GPT2)
    parts = keep(network, TOKENS, [("resid", 2), ("scores", 2), ("pattern", 2), ("z", 2), ("head", 2)])
    x, written = network.normed("head", 2, parts["resid", 2]), network.weights["b_O2"].expand(2, 6, 12)
    for h in (1, 2, 3):
        qk, ov = network.qk((2, h)), network.ov((2, h))
        scores = qk.query(x) @ qk.key(x).mT / qk.temperature
        assert torch.allclose(scores.tril(), parts["scores", 2][:, h - 1].nan_to_num(neginf=0), rtol=0, atol=1e-12)
        written = written + ov.output(parts["pattern", 2][:, h - 1] @ ov.value(x))
    assert torch.allclose(written, parts["head", 2], rtol=0, atol=1e-12)


def test_causal_tools_serve_it_too(folder: Path) -> None:
    network, tokens = read_network(folder, torch.float64), torch.from_numpy(TOKENS)
    whole = network.stream(tokens)
    for watch in (
        without_heads([(1, 3)]),
        blocked({(2, 1): previous_edges(tokens)}),
        without_in_keys(network, (1, 1), [(3, 2)]),
    ):
        assert not torch.allclose(network.stream(tokens, watch), whole)


def test_provenance_says_where_weights_come_from(folder: Path) -> None:
    origin = read_network(folder).provenance
    assert (origin.name, origin.family, len(origin.sha256)) == ("made-up", "gpt2", 64)
    sizes = read_network(folder).sizes
    assert (sizes.L, sizes.H, sizes.groups, sizes.d, sizes.d_h, sizes.N, sizes.T) == (3, 3, 3, 12, 4, 11, 9)
    assert not sizes.parallel


def test_half_precision_is_read(tmp_path: Path) -> None:
    half = {name: array.astype(np.float16) for name, array in tensors(CONFIG).items()}
    network = read_network(write_folder(tmp_path / "half", CONFIG, half), torch.float64)
    assert np.allclose(network.stream(TOKENS).numpy(), by_hand(CONFIG, half, TOKENS), rtol=0, atol=1e-10)


def test_dropout_is_where_gpt2_has_it(folder: Path) -> None:
    """Rates as in the config; each place drops its share, and the rest grows so that the mean stays."""
    network = read_network(folder)
    assert isinstance(network, GPT2)
    assert network.dropout == Dropout(embedding=0.2, attention=0.1, residual=0.3)
    watch, ones = network.dropout.watch(5), torch.ones(100, 100)
    rates: dict[Place, float] = {("resid", 1): 0.2, ("pattern", 2): 0.1, ("head", 1): 0.3, ("mlp", 3): 0.3}
    for (part, layer), rate in rates.items():
        dropped = watch(part, layer, ones)
        assert dropped is not None
        assert float((dropped == 0).float().mean()) == pytest.approx(rate, abs=0.02)
        assert float(dropped.max()) == pytest.approx(1 / (1 - rate))
    others: list[Place] = [("resid", 2), ("k_in", 1), ("scores", 1), ("z", 1), ("mid", 1), ("units", 1)]
    for part, layer in others:
        assert watch(part, layer, ones) is None


def test_dropout_is_a_function_of_its_seed(folder: Path) -> None:
    network = read_network(folder)
    assert isinstance(network, GPT2)
    one, same, other = (network.stream(TOKENS, network.dropout.watch(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.allclose(one, other)
    assert torch.equal(network.stream(TOKENS, Dropout().watch(0)), network.stream(TOKENS))


def changed_config(**new: Any) -> Callable[[Path], object]:
    return lambda folder: (folder / "config.json").write_text(json.dumps(CONFIG | new))


def changed_tensors(*without: str, **new: np.ndarray) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        left = {name: array for name, array in tensors(CONFIG).items() if name not in without}
        write_folder(folder, CONFIG, left | {name.replace("__", "."): array for name, array in new.items()})

    return change


def cut_off(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def in_parts(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model.safetensors.index.json")


def written(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def piped(folder: Path) -> None:
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")


def missing(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


NAN = np.full(12, np.nan, dtype=np.float32)
HUGE_HEADER = (1 << 62).to_bytes(8, "little") + b"{}"
REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "no config": (missing("config.json"), "it has no config.json"),
    "no weights": (missing("model.safetensors"), "it has no model.safetensors"),
    "a pickle": (pickled, "it has no model.safetensors; its pytorch_model.bin is a pickle, which could run code"),
    "several files": (in_parts, "index.json: it is not a JSON object"),
    "a pipe": (piped, r"config.json cannot be read \(it is not a plain file\)"),
    "cut off": (cut_off, "model.safetensors: it is cut off, or is no safetensors file"),
    "garbage": (written("model.safetensors", b"\x00" * 100), "it is cut off, or is no safetensors file"),
    "empty": (written("model.safetensors", b""), "it is cut off, or is no safetensors file"),
    "huge header": (written("model.safetensors", HUGE_HEADER), "it is cut off, or is no safetensors file"),
    "no JSON": (written("config.json", b"{"), "config.json: it is not a JSON object"),
    "no object": (written("config.json", b"[1]"), "config.json: it is not a JSON object"),
    "no text": (written("config.json", b"\xff\xfe\x00"), "config.json: it is not a JSON object"),
    "deep": (written("config.json", b"[" * 100_000), "config.json: it is not a JSON object"),
    "no family": (written("config.json", b"{}"), "no reader for model_type 'none'; known: gpt2"),
    "other family": (changed_config(model_type="gpt"), "no reader for model_type 'gpt'; did you mean gpt2"),
    "a helper": (changed_config(model_type="source"), "no reader for model_type 'source'"),
    "odd family": (changed_config(model_type=["../gpt2"]), "no reader for model_type"),
    "other head": (
        changed_config(architectures=["GPT2ForSequenceClassification"]),
        "architectures.0: should be 'GPT2Model' or 'GPT2LMHeadModel'; got 'GPT2ForSequenceClassification'",
    ),
    "no architecture": (changed_config(architectures=[]), "architectures: "),
    "activation": (changed_config(activation_function="silu"), "activation_function: should be 'gelu_new'.*got 'silu'"),
    "layer scaling": (
        changed_config(scale_attn_by_inverse_layer_idx=True),
        "scale_attn_by_inverse_layer_idx: should be False; got True",
    ),
    "upcast": (changed_config(reorder_and_upcast_attn=True), "reorder_and_upcast_attn: should be False; got True"),
    "cross attention": (changed_config(add_cross_attention=True), "add_cross_attention: should be False; got True"),
    "quantised": (changed_config(quantization_config={"bits": 4}), "quantization_config: this reader does not know it"),
    "pruned": (changed_config(pruned_heads={"1": [0]}), "pruned_heads: this reader does not know it"),
    "unknown": (changed_config(rotary_dim=4), "rotary_dim: this reader does not know it.*got 4"),
    "no size": (changed_config(n_embd=None), "n_embd: should be a valid integer; got None"),
    "a word": (changed_config(n_head="3"), "n_head: should be a valid integer; got '3'"),
    "no heads": (changed_config(n_head=0), "n_head: should be greater than or equal to 1; got 0"),
    "odd heads": (changed_config(n_head=5), "n_head: 5 heads do not divide n_embd=12"),
    "endless": (changed_config(n_layer=10**12), "n_layer: should be less than or equal to 512"),
    "NaN rate": (changed_config(attn_pdrop=float("nan")), "attn_pdrop: should be"),
    "more layers": (changed_config(n_layer=4), r"the tensor h\.3\.attn\.c_attn\.weight is missing"),
    "fewer layers": (changed_config(n_layer=2), r"the tensor 'h\.2\..*' is not one of this family"),
    "fewer positions": (changed_config(n_positions=8), r"wpe\.weight must have the shape \(8, 12\); got \(9, 12\)"),
    "another width": (changed_config(n_inner=7), r"c_fc\.weight must have the shape \(12, 7\); got \(12, 48\)"),
    "missing tensor": (changed_tensors("ln_f.bias"), r"the tensor ln_f\.bias is missing"),
    "NaN": (changed_tensors(ln_f__weight=NAN), r"ln_f\.weight holds something other than finite numbers"),
    "whole numbers": (changed_tensors(ln_f__weight=np.ones(12, dtype=np.int64)), r"ln_f\.weight holds something other"),
    "more tensors": (changed_tensors(extra=NAN), "the tensor 'extra' is not one of this family"),
    "a head too many": (changed_tensors(lm_head__weight=NAN), r"'lm_head\.weight' is not one of this family"),
    "twice": (changed_tensors(transformer__ln_f__weight=NAN), "a tensor is there with and without 'transformer.'"),
}


@pytest.mark.parametrize("what", list(REFUSED))
def test_what_it_does_not_know_is_refused_by_name(folder: Path, what: str) -> None:
    change, says = REFUSED[what]
    change(folder)
    with pytest.raises(EngramError, match=says) as error:
        read_network(folder)
    assert "\n" not in str(error.value)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(EngramError, match=r"no such folder; a model is a folder with config\.json"):
        read_network(tmp_path / "nothing")


def test_links_that_a_person_names_are_followed(folder: Path, tmp_path: Path) -> None:
    """As in the cache of the hub, where every file is a link."""
    linked = tmp_path / "linked"
    linked.mkdir()
    for name in ("config.json", "model.safetensors"):
        (linked / name).symlink_to(folder / name)
    assert read_network(linked).provenance.sha256 == read_network(folder).provenance.sha256


def test_settings_that_change_nothing_are_allowed(folder: Path) -> None:
    more = {"summary_type": "cls_index", "transformers_version": "5.0", "bos_token_id": 0, "torch_dtype": "float32"}
    changed_config(**more, _name_or_path="x", id2label={"0": "a"}, pruned_heads={}, torchscript=False)(folder)
    assert read_network(folder).sizes.L == 3


def test_families_are_files() -> None:
    assert set(families()) == {"gpt2", "gpt_neox", "llama"}


def test_the_model_is_that_of_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logits, attention and hidden states, with and without a head; and dropout is in the same places."""
    theirs = pytest.importorskip("transformers", reason="the extra transformers is not installed")
    sizes = {name: value for name, value in CONFIG.items() if name not in ("architectures", "model_type")}
    for kind, tied in (("GPT2Model", True), ("GPT2LMHeadModel", True), ("GPT2LMHeadModel", False)):
        config = theirs.GPT2Config(**sizes, tie_word_embeddings=tied)
        config._attn_implementation = "eager"
        torch.manual_seed(0)
        model = getattr(theirs, kind)(config)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
        model.tie_weights()
        model.eval().save_pretrained(tmp_path / f"{kind}-{tied}")
        network = read_network(tmp_path / f"{kind}-{tied}")
        same_as(network, model, kind == "GPT2Model")
        same_dropout(network, model, monkeypatch)


def same_as(network: Network, model: Any, is_trunk: bool) -> None:
    with torch.no_grad():
        out = model(torch.from_numpy(TOKENS), output_attentions=True, output_hidden_states=True)
    parts: dict[tuple[Part, int], Tensor] = {}
    logits = network.stream(TOKENS, lambda part, layer, x: parts.update({(part, layer): x}))
    assert torch.allclose(logits, out.last_hidden_state if is_trunk else out.logits, rtol=0, atol=1e-5)
    for i in (1, 2, 3):
        assert torch.allclose(parts["pattern", i], out.attentions[i - 1], rtol=0, atol=1e-5)
        assert torch.allclose(parts["resid", i], out.hidden_states[i - 1], rtol=0, atol=1e-5)


def same_dropout(network: Network, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropout replaced on both sides by a factor that tells the rates apart."""
    assert isinstance(network, GPT2)

    def scaled(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        return x * (1 - p) if training else x

    model.train()
    with torch.no_grad(), monkeypatch.context() as patch:
        patch.setattr(torch.nn.functional, "dropout", scaled)
        expected = model(torch.from_numpy(TOKENS))[0]
    found = network.stream(TOKENS, lambda part, layer, x: x * (1 - network.dropout.rate(part, layer)))
    assert torch.allclose(found, expected, rtol=0, atol=1e-5)
    model.eval()
