"""Made-up GPT-NeoX models that tests share, and their forward pass written by hand."""

from typing import Any

import numpy as np

from llamas import turned

NEOX: dict[str, Any] = {
    "architectures": ["GPTNeoXForCausalLM"],
    "model_type": "gpt_neox",
    "vocab_size": 11,
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "max_position_embeddings": 32,
    "hidden_act": "relu",
    "rotary_pct": 0.5,
    "rotary_emb_base": 100,
    "layer_norm_eps": 1e-5,
    "use_parallel_residual": True,
    "tie_word_embeddings": False,
}


def neox_tensors(config: dict[str, Any], seed: int = 0) -> dict[str, np.ndarray]:
    rng, d, m = np.random.default_rng(seed), config["hidden_size"], config["intermediate_size"]
    shapes: dict[str, tuple[int, ...]] = {"gpt_neox.embed_in.weight": (config["vocab_size"], d)}
    inside = {"attention.query_key_value": (3 * d, d), "attention.dense": (d, d)}
    inside |= {"mlp.dense_h_to_4h": (m, d), "mlp.dense_4h_to_h": (d, m)}
    norms = ["gpt_neox.final_layer_norm"]
    for i in range(config["num_hidden_layers"]):
        at = f"gpt_neox.layers.{i}"
        for name, shape in inside.items():
            shapes[f"{at}.{name}.weight"] = shape
            if config.get("attention_bias", True) or name.startswith("mlp"):
                shapes[f"{at}.{name}.bias"] = shape[:1]
        norms += [f"{at}.input_layernorm", f"{at}.post_attention_layernorm"]
    shapes |= {f"{norm}.{what}": (d,) for norm in norms for what in ("weight", "bias")}
    if not config["tie_word_embeddings"]:
        shapes["embed_out.weight"] = (config["vocab_size"], d)
    return {name: (0.5 * rng.normal(size=shape)).astype(np.float32) for name, shape in shapes.items()}


def neox_by_hand(config: dict[str, Any], weights: dict[str, np.ndarray], tokens: np.ndarray) -> np.ndarray:
    """Logits in NumPy and float64, one head and one position at a time."""
    w = {name.removeprefix("gpt_neox."): array.astype(np.float64) for name, array in weights.items()}
    H, d = config["num_attention_heads"], config["hidden_size"]
    d_h, turning = d // H, int(d // H * config["rotary_pct"])

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + config["layer_norm_eps"])
        return centred / spread * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x: np.ndarray, name: str) -> np.ndarray:
        return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", 0)

    def rotate(q: np.ndarray, t: int) -> np.ndarray:
        return np.concatenate([turned(q[:turning], t, config["rotary_emb_base"]), q[turning:]])

    def attend(x: np.ndarray, at: str) -> np.ndarray:
        by_head = linear(x, f"{at}.query_key_value").reshape(len(x), H, 3, d_h)
        mixed = np.zeros((len(x), H, d_h))
        for t in range(len(x)):
            for h in range(H):
                query = rotate(by_head[t, h, 0], t)
                scores = [np.exp(query @ rotate(by_head[s, h, 1], s) / np.sqrt(d_h)) for s in range(t + 1)]
                mixed[t, h] = np.array(scores) @ by_head[: t + 1, h, 2] / sum(scores)
        return linear(mixed.reshape(len(x), -1), f"{at}.dense")

    def feed(x: np.ndarray, at: str) -> np.ndarray:
        return linear(
            np.maximum(linear(norm(x, f"{at}.post_attention_layernorm"), f"{at}.mlp.dense_h_to_4h"), 0),
            f"{at}.mlp.dense_4h_to_h",
        )

    def one(sequence: np.ndarray) -> np.ndarray:
        x = w["embed_in.weight"][sequence]
        for i in range(config["num_hidden_layers"]):
            at = f"layers.{i}"
            mid = x + attend(norm(x, f"{at}.input_layernorm"), f"{at}.attention")
            x = mid + feed(x if config["use_parallel_residual"] else mid, at)
        return (
            norm(x, "final_layer_norm")
            @ w["embed_in.weight" if config["tie_word_embeddings"] else "embed_out.weight"].T
        )

    return np.stack([one(sequence) for sequence in tokens])
