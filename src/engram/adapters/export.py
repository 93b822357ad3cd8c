r"""A `Transformer` of ours as a GPT-2 of Hugging Face that computes the same, so that other programs can read it.

    layer norm, eps 1e-5          gains 1, shifts 0; all biases 0; U is not tied to E
    scores without a divisor      W_Q is multiplied by √d_h, by which GPT-2 divides
    W_F x (linear)                W_F ReLU(x) − W_F ReLU(−x): 2d units
    no feed-forward layer         units that write nothing

GPT-2 always normalises and has the same number of heads in all layers: what differs there is refused.
"""

import json
from math import sqrt

import torch
from safetensors.torch import save
from torch import Tensor

from engram.adapters.source import CONFIG, WEIGHTS
from engram.errors import EngramError
from engram.models import Layer, Model, Transformer, Weights

OTHERS = "--format folder, csv and parquet take any run"


def gpt2_files(model: Model) -> dict[str, bytes]:
    """The two files of a folder that transformers, and `read_network`, read."""
    architecture = _fitting(model)
    N, T, m = len(model.weights["E"]), len(model.weights["P"]), _units(architecture)
    config = {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "relu",
        "vocab_size": N, "n_positions": T, "n_embd": architecture.d, "n_layer": len(architecture.layers),
        "n_head": architecture.layers[0].heads, "n_inner": m, "layer_norm_epsilon": 1e-5,
        "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0, "tie_word_embeddings": False,
        "bos_token_id": None, "eos_token_id": None, "dtype": "float32",
    }  # fmt: skip
    tensors = {
        n: t.detach().cpu().float().contiguous().clone() for n, t in _tensors(architecture, model.weights).items()
    }
    return {CONFIG: json.dumps(config, indent=1).encode(), WEIGHTS: save(tensors, metadata={"format": "pt"})}


def _fitting(model: Model) -> Transformer:
    """The architecture, if GPT-2 can be it."""
    found = model.architecture
    if not isinstance(found, Transformer):
        raise EngramError(
            f"export: only a Transformer with norm='pre' is a GPT-2; got a {type(found).__name__}; {OTHERS}"
        )
    if found.norm != "pre":
        raise EngramError(
            f"export: a GPT-2 always normalises, so it needs norm='pre'; got norm={found.norm!r}; {OTHERS}"
        )
    if len({layer.heads for layer in found.layers}) > 1:
        heads = ", ".join(str(layer.heads) for layer in found.layers)
        raise EngramError(f"export: all layers of a GPT-2 have the same number of heads; got {heads}")
    return found


def _units(model: Transformer) -> int:
    sizes = {"none": 1, "linear": 2 * model.d, "mlp": model.hidden}
    return max(sizes[layer.feed_forward] for layer in model.layers)


def _tensors(model: Transformer, w: Weights) -> Weights:
    """Under the names of Hugging Face, every matrix transposed."""
    d, m, like = model.d, _units(model), w["E"]
    found = {"transformer.wte.weight": w["E"], "transformer.wpe.weight": w["P"], "lm_head.weight": w["U"]}
    norms = ["transformer.ln_f"]
    for i, layer in enumerate(model.layers, 1):
        at = f"transformer.h.{i - 1}"
        W_I, W_F = _feed_forward(layer, i, w, m)
        inside = {
            "attn.c_attn": _attention(model, i, w),
            "attn.c_proj": w[f"W_O{i}"],
            "mlp.c_fc": W_I,
            "mlp.c_proj": W_F,
        }
        found |= {f"{at}.{name}.weight": W.T for name, W in inside.items()}
        found |= {f"{at}.{name}.bias": like.new_zeros(len(W)) for name, W in inside.items()}
        norms += [f"{at}.ln_1", f"{at}.ln_2"]
    found |= {f"{norm}.weight": like.new_ones(d) for norm in norms}
    return found | {f"{norm}.bias": like.new_zeros(d) for norm in norms}


def _attention(model: Transformer, i: int, w: Weights) -> Tensor:
    """Queries, keys and values, one below the other."""
    W_Q = w.get(f"W_Q{i}", torch.eye(model.d, dtype=w["E"].dtype, device=w["E"].device))
    by = sqrt(model.d / model.layers[i - 1].heads) if model.scale == "unit" else 1.0
    return torch.cat([by * W_Q, w[f"W_K{i}"], w[f"W_V{i}"]])


def _feed_forward(layer: Layer, i: int, w: Weights, m: int) -> tuple[Tensor, Tensor]:
    """W_I and W_F with m units; those that a layer does not need read and write nothing."""
    d = w["E"].shape[1]
    W_I, W_F = w["E"].new_zeros(m, d), w["E"].new_zeros(d, m)
    if layer.feed_forward == "mlp":
        inner, outer = w[f"W_I{i}"], w[f"W_F{i}"]
    elif layer.feed_forward == "linear":
        one = torch.eye(d, dtype=W_I.dtype, device=W_I.device)
        inner, outer = torch.cat([one, -one]), torch.cat([w[f"W_F{i}"], -w[f"W_F{i}"]], dim=1)
    else:
        return W_I, W_F
    W_I[: len(inner)], W_F[:, : len(inner)] = inner, outer
    return W_I, W_F
