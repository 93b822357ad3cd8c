"""Small networks that tests share: models of ours, and made-up GPT-2 folders written as Hugging Face writes them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file

from engram.models import Layer, Model, Simplified, Transformer
from engram.models.trace import Architecture
from engram.tasks import Bigram

TASK = Bigram(K=3, T=24)
FULL = Transformer(d=12, layers=(Layer(heads=2, feed_forward="mlp"), Layer(heads=3, feed_forward="mlp")), hidden=20)
MODELS: dict[str, Architecture] = {
    "full": FULL,
    "pre-norm": FULL.model_copy(update={"norm": "pre"}),
    "unit scale": FULL.model_copy(update={"scale": "unit"}),
    "no queries": Transformer(d=12, layers=(Layer(queries="identity"), Layer(heads=3, feed_forward="linear"))),
    "attention only": Transformer(d=12, layers=(Layer(heads=4), Layer(heads=4), Layer(heads=2)), norm="pre"),
    "simplified": Simplified(d=10),
    "simplified, linear": Simplified(d=10, blocks=("attention", "attention", "linear"), scale="unit"),
}


def made(name: str, seed: int = 0) -> Model:
    """A model of ours with random weights in float64."""
    model = MODELS[name]
    return Model(model, {name: value.double() for name, value in model.init(TASK.N, TASK.T, seed).items()})


def sequences(B: int = 3) -> torch.Tensor:
    return torch.from_numpy(TASK.sample(0, 0, B).tokens)


CONFIG: dict[str, Any] = {
    "architectures": ["GPT2Model"],
    "model_type": "gpt2",
    "vocab_size": 11,
    "n_positions": 9,
    "n_embd": 12,
    "n_layer": 3,
    "n_head": 3,
    "n_inner": None,
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
    "attn_pdrop": 0.1,
    "embd_pdrop": 0.2,
    "resid_pdrop": 0.3,
    "initializer_range": 0.02,
    "scale_attn_weights": True,
    "use_cache": False,
}


def tensors(config: dict[str, Any], seed: int = 0, prefix: str = "") -> dict[str, np.ndarray]:
    """Random weights of a GPT-2 of this config, large enough for attention to be far from uniform."""
    rng, d, m = np.random.default_rng(seed), config["n_embd"], config["n_inner"] or 4 * config["n_embd"]
    shapes = {"wte.weight": (config["vocab_size"], d), "wpe.weight": (config["n_positions"], d)}
    for i in range(config["n_layer"]):
        shapes |= {f"h.{i}.attn.c_attn.weight": (d, 3 * d), f"h.{i}.attn.c_attn.bias": (3 * d,)}
        shapes |= {f"h.{i}.attn.c_proj.weight": (d, d), f"h.{i}.attn.c_proj.bias": (d,)}
        shapes |= {f"h.{i}.mlp.c_fc.weight": (d, m), f"h.{i}.mlp.c_fc.bias": (m,)}
        shapes |= {f"h.{i}.mlp.c_proj.weight": (m, d), f"h.{i}.mlp.c_proj.bias": (d,)}
        shapes |= {f"h.{i}.ln_{n}.{what}": (d,) for n in (1, 2) for what in ("weight", "bias")}
    shapes |= {"ln_f.weight": (d,), "ln_f.bias": (d,)}
    drawn = {prefix + name: 0.5 * rng.normal(size=shape) for name, shape in shapes.items()}
    return {name: array.astype(np.float32) for name, array in drawn.items()}


def write_folder(folder: Path, config: dict[str, Any], weights: dict[str, np.ndarray]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder
