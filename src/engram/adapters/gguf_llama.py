"""Llama models in GGUF files as a Source of their family, so that one reader serves both.

llama.cpp turns neighbouring coordinates of queries and keys where Hugging Face turns coordinates half a head apart, and
its files have the rows of W_Q and W_K in that order; here they are put back.
"""

import hashlib
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from engram.adapters.gguf import Gguf, parse
from engram.adapters.source import Source
from engram.errors import EngramError
from engram.models.unread import Later, Unread

SETTINGS: dict[str, tuple[str, type]] = {  # theirs: that of Hugging Face, and its type
    "vocab_size": ("vocab_size", int),
    "embedding_length": ("hidden_size", int),
    "feed_forward_length": ("intermediate_size", int),
    "block_count": ("num_hidden_layers", int),
    "attention.head_count": ("num_attention_heads", int),
    "attention.head_count_kv": ("num_key_value_heads", int),
    "attention.key_length": ("head_dim", int),
    "context_length": ("max_position_embeddings", int),
    "attention.layer_norm_rms_epsilon": ("rms_norm_eps", float),
    "rope.freq_base": ("rope_theta", float),
}
CHECKED = {"rope.dimension_count", "attention.value_length", "rope.scaling.type"}
WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
INSIDE = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip
TENSOR = re.compile(r"(?:blk\.(\d{1,4})\.)?(\w+)\.(weight|bias)")


def source_of_gguf(name: str, content: bytes, dtype: torch.dtype = torch.float32) -> tuple[Source, Gguf]:
    """A model from the content of its file, and the file itself, for its vocabulary."""
    file = parse(name, content)
    family = file.setting("general.architecture", str)
    if family != "llama":
        raise EngramError(f"{name}: no GGUF reader for the architecture {family!r:.60}; known: llama")
    config = _config(file)
    tensors = _put_back(config, {_renamed(tensor): later for tensor, later in file.tensors(dtype).later.items()})
    note = f"{file.bits()}-bit-derived" if file.bits() < 16 else ""
    return Source(name, config, tensors, hashlib.sha256(content).hexdigest(), note, ("", "")), file


def _config(file: Gguf) -> dict[str, Any]:
    """The config that Hugging Face would have."""
    given = {n.removeprefix("llama."): v for n, v in file.settings.items() if n.startswith("llama.")}
    for name in given.keys() - SETTINGS.keys() - CHECKED:
        raise EngramError(
            f"{file.name}: {f'llama.{name}'!r:.80}: this reader does not know it; it may change what is computed"
        )
    found = {theirs: file.setting(f"llama.{ours}", kind) for ours, (theirs, kind) in SETTINGS.items() if ours in given}
    if "token_embd.weight" in file.stored:  # older files do not say it
        found.setdefault("vocab_size", file.stored["token_embd.weight"].shape[0])
    tied, biased = "output.weight" not in file.stored, "blk.0.attn_q.bias" in file.stored
    head = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
    _refuse_odd_positions(file.name, given, found)
    return (
        head
        | found
        | {"tie_word_embeddings": tied, "attention_bias": biased, "mlp_bias": "blk.0.ffn_up.bias" in file.stored}
    )


def _refuse_odd_positions(name: str, given: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """All coordinates of a head turn, with the rates of the family; values are as wide as keys."""
    scaling = given.get("rope.scaling.type", "none")
    if scaling != "none":
        raise EngramError(f"{name}: llama.rope.scaling.type: should be none; got {scaling!r:.60}")
    d_h = config.get("head_dim", config.get("hidden_size", 0) // max(config.get("num_attention_heads", 0), 1))
    for setting in ("rope.dimension_count", "attention.value_length"):
        if d_h and given.get(setting, d_h) != d_h:
            raise EngramError(f"{name}: llama.{setting}: should be {d_h}; got {given[setting]!r:.60}")


def _renamed(name: str) -> str:
    """As Hugging Face calls it; a name that is not known stays, and is refused later."""
    found = TENSOR.fullmatch(name)
    if not found:
        return name
    layer, what, kind = found.groups()
    if layer is None:
        return f"{WHOLE[what]}.{kind}" if what in WHOLE else name
    return f"model.layers.{layer}.{INSIDE[what]}.{kind}" if what in INSIDE else name


def _put_back(config: Mapping[str, Any], tensors: Mapping[str, Later]) -> Unread:
    heads = config.get("num_attention_heads", 0)
    blocks = {"q_proj": heads, "k_proj": config.get("num_key_value_heads", heads)}
    turned = {name: blocks.get(name.split(".")[-2], 0) for name in tensors if "." in name}
    return Unread(
        {n: later.then(partial(_rows, heads=turned[n])) if turned.get(n) else later for n, later in tensors.items()}
    )


def _rows(W: Tensor, heads: int) -> Tensor:
    """Rows of every head from the order 0, m, 1, m + 1, … to 0, 1, …, 2m − 1; what does not fit is refused later."""
    if heads < 1 or len(W) % (2 * heads):
        return W
    return W.reshape(heads, len(W) // heads // 2, 2, -1).transpose(1, 2).reshape(W.shape)
