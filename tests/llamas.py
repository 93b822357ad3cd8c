"""Made-up Llama models that tests share, and their forward pass written by hand."""

from typing import Any

import numpy as np

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 11,
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
    "rms_norm_eps": 1e-5,
    "rope_theta": 100.0,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
}


def llama_tensors(config: dict[str, Any], seed: int = 0) -> dict[str, np.ndarray]:
    """Random weights of a Llama of this config, large enough for attention to be far from uniform."""
    rng, d, m = np.random.default_rng(seed), config["hidden_size"], config["intermediate_size"]
    d_h = config.get("head_dim") or d // config["num_attention_heads"]
    z, k = (
        config["num_attention_heads"] * d_h,
        (config.get("num_key_value_heads") or config["num_attention_heads"]) * d_h,
    )
    rows = {"q": (z, d), "k": (k, d), "v": (k, d), "o": (d, z), "gate": (m, d), "up": (m, d), "down": (d, m)}
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (config["vocab_size"], d)}
    for i in range(config["num_hidden_layers"]):
        for name, shape in rows.items():
            part = "self_attn" if name in "qkvo" else "mlp"
            shapes[f"model.layers.{i}.{part}.{name}_proj.weight"] = shape
            if config.get("attention_bias" if part == "self_attn" else "mlp_bias"):
                shapes[f"model.layers.{i}.{part}.{name}_proj.bias"] = shape[:1]
        shapes |= {f"model.layers.{i}.{norm}_layernorm.weight": (d,) for norm in ("input", "post_attention")}
    shapes["model.norm.weight"] = (d,)
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], d)
    return {name: (0.5 * rng.normal(size=shape)).astype(np.float32) for name, shape in shapes.items()}


def turned(q: np.ndarray, t: int, base: float) -> np.ndarray:
    """A query or key at position t, as complex numbers: coordinate j and the one half a head further turn together."""
    m = len(q) // 2
    z = (q[:m] + 1j * q[m:]) * np.exp(1j * t * base ** -(np.arange(m) / m))
    return np.concatenate([z.real, z.imag])


def llama_by_hand(config: dict[str, Any], weights: dict[str, np.ndarray], tokens: np.ndarray) -> np.ndarray:
    """Logits in NumPy and float64, one head and one position at a time."""
    w = {name: array.astype(np.float64) for name, array in weights.items()}
    H, groups = config["num_attention_heads"], config.get("num_key_value_heads") or config["num_attention_heads"]

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        return w[f"model.{name}.weight"] * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + config["rms_norm_eps"])

    def linear(x: np.ndarray, name: str) -> np.ndarray:
        return x @ w[f"{name}_proj.weight"].T + w.get(f"{name}_proj.bias", 0)

    def attend(x: np.ndarray, at: str) -> np.ndarray:
        q, k, v = (
            linear(x, f"{at}.{name}").reshape(len(x), n, -1) for name, n in zip("qkv", (H, groups, groups), strict=True)
        )
        mixed = np.zeros_like(q)
        for t in range(len(x)):
            for h in range(H):
                g, query = h // (H // groups), turned(q[t, h], t, config["rope_theta"])
                keys = np.stack([turned(k[s, g], s, config["rope_theta"]) for s in range(t + 1)])
                scores = np.exp(keys @ query / np.sqrt(q.shape[2]))
                mixed[t, h] = scores @ v[: t + 1, g] / scores.sum()
        return linear(mixed.reshape(len(x), -1), f"{at}.o")

    def one(sequence: np.ndarray) -> np.ndarray:
        x = w["model.embed_tokens.weight"][sequence]
        for i in range(config["num_hidden_layers"]):
            at = f"model.layers.{i}"
            x = x + attend(norm(x, f"layers.{i}.input_layernorm"), f"{at}.self_attn")
            shown = norm(x, f"layers.{i}.post_attention_layernorm")
            gate = linear(shown, f"{at}.mlp.gate")
            x = x + linear(gate / (1 + np.exp(-gate)) * linear(shown, f"{at}.mlp.up"), f"{at}.mlp.down")
        return norm(x, "norm") @ w["model.embed_tokens.weight" if config["tie_word_embeddings"] else "lm_head.weight"].T

    return np.stack([one(sequence) for sequence in tokens])
