r"""GPT-NeoX (Pythia): rotary positions in some coordinates, and layers whose two parts may read the same stream.

    x = e_{z_t};   parts read n(x) = g ⊙ (x − mean)/√(variance + ε) + s, attention and feed-forward part with their own
    parallel:   x ← x + attention(n(x)) + feed_forward(n'(x));   otherwise one after the other
    feed_forward   b_F + W_F σ(W_I n'(x) + b_I)

The files store queries, keys and values of each head one after another.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from engram.adapters.shared import ACTIVATIONS, Activation, Base, Rate, Rope, layer_normed, place_of
from engram.adapters.source import Settings, Source
from engram.models import Weights
from engram.models.layered import Layered
from engram.models.network import Reader, Sizes
from engram.models.rotary import rotated
from engram.models.unread import Tensors

HEADS = ("embed_out.weight", "lm_head.weight")  # U, by its older and its newer name
NO_WEIGHTS = r"layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)"  # tensors of older files
MATRICES = {"O": "attention.dense", "I": "mlp.dense_h_to_4h", "F": "mlp.dense_4h_to_h"}
NORMS = {"head": "input_layernorm", "mlp": "post_attention_layernorm"}
Share = Annotated[float, Field(gt=0, le=1)]


class PartRope(Rope):
    """Rotary positions in the first coordinates of a head."""

    partial_rotary_factor: Share = 1.0


class GPTNeoXSettings(Settings):
    """What a config of GPT-NeoX may say; defaults are those of Hugging Face."""

    architectures: Annotated[list[Literal["GPTNeoXForCausalLM"]], Field(min_length=1, max_length=1)]
    model_type: Literal["gpt_neox"]
    vocab_size: Annotated[int, Field(ge=1, le=1 << 22)]
    hidden_size: Annotated[int, Field(ge=1, le=1 << 15)]
    intermediate_size: Annotated[int, Field(ge=1, le=1 << 18)]
    num_hidden_layers: Annotated[int, Field(ge=1, le=512)]
    num_attention_heads: Annotated[int, Field(ge=1, le=1024)]
    max_position_embeddings: Annotated[int, Field(ge=1, le=1 << 24)] = 2048
    hidden_act: Activation = "gelu"
    rotary_pct: Share = 0.25
    rotary_emb_base: Base = 10000.0
    rope_parameters: PartRope | None = None
    rope_scaling: None = None
    layer_norm_eps: Annotated[float, Field(gt=0, le=1)] = 1e-5
    use_parallel_residual: bool = True
    attention_bias: bool = True
    tie_word_embeddings: bool = False
    attention_dropout: Rate = 0.0
    hidden_dropout: Rate = 0.0
    classifier_dropout: Rate = 0.1

    @model_validator(mode="after")
    def _heads_fit(self) -> "GPTNeoXSettings":
        if self.hidden_size % self.num_attention_heads:
            heads = f"{self.num_attention_heads} heads do not divide hidden_size={self.hidden_size}"
            raise ValueError(f"num_attention_heads: {heads}")
        if self.turning % 2:
            raise ValueError(f"rotary_pct: an even number of coordinates must turn; got {self.turning} of {self.d_h}")
        return self

    @property
    def d_h(self) -> int:
        return self.hidden_size // self.num_attention_heads

    @property
    def base(self) -> float:
        return self.rope_parameters.rope_theta if self.rope_parameters else self.rotary_emb_base

    @property
    def turning(self) -> int:
        """How many coordinates of a head turn."""
        return int(self.d_h * (self.rope_parameters.partial_rotary_factor if self.rope_parameters else self.rotary_pct))


@dataclass(frozen=True)
class GPTNeoX(Layered):
    """A GPT-NeoX as a Network; weights have our names."""

    settings: GPTNeoXSettings

    def embed(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T d"]:
        return self.weights["E"][tokens]

    def normed(self, part: Reader, layer: int, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
        return layer_normed(self.weights, place_of(part, layer), x, self.settings.layer_norm_eps)

    def units(self, layer: int, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n m"]:
        return ACTIVATIONS[self.settings.hidden_act](self.affine("I", layer)(x))

    def rotate(self, q: Float[Tensor, "*n T d_h"], position: Int[Tensor, " T"]) -> Float[Tensor, "*n T d_h"]:
        return rotated(q, position, self.settings.base, self.settings.turning)


def network(source: Source) -> GPTNeoX:
    """The Network of a source of this family."""
    s, source = source.settings(GPTNeoXSettings), source.without_prefix("gpt_neox.")
    head = next((name for name in HEADS if name in source.tensors), HEADS[0])
    ignored = "|".join((NO_WEIGHTS, *HEADS)) if s.tie_word_embeddings else NO_WEIGHTS
    theirs = source.weights(
        _shapes(s) | ({} if s.tie_word_embeddings else {head: (s.vocab_size, s.hidden_size)}), ignored
    )
    H, d, T = s.num_attention_heads, s.hidden_size, s.max_position_embeddings
    sizes = Sizes(s.num_hidden_layers, H, H, d, s.d_h, s.vocab_size, T, parallel=s.use_parallel_residual)
    E = theirs["embed_in.weight"]
    return GPTNeoX({"E": E, "U": theirs.get(head, E)} | _ours(theirs, s), sizes, source.provenance, s)


def _shapes(s: GPTNeoXSettings) -> dict[str, tuple[int, ...]]:
    """The tensors that the files must hold, beside U."""
    d, m = s.hidden_size, s.intermediate_size
    rows = {"attention.query_key_value": (3 * d, d), "attention.dense": (d, d)}
    inner = {"mlp.dense_h_to_4h": (m, d), "mlp.dense_4h_to_h": (d, m)}
    norms = [f"layers.{i}.{norm}" for i in range(s.num_hidden_layers) for norm in NORMS.values()]
    shapes: dict[str, tuple[int, ...]] = {"embed_in.weight": (s.vocab_size, d)}
    for i in range(s.num_hidden_layers):
        shapes |= {f"layers.{i}.{name}.weight": shape for name, shape in (rows | inner).items()}
        biased = rows | inner if s.attention_bias else inner
        shapes |= {f"layers.{i}.{name}.bias": shape[:1] for name, shape in biased.items()}
    return shapes | {f"{norm}.{what}": (d,) for norm in [*norms, "final_layer_norm"] for what in ("weight", "bias")}


def _ours(theirs: Tensors, s: GPTNeoXSettings) -> Weights:
    """Under our names."""
    found = {"gain_logits": theirs["final_layer_norm.weight"], "shift_logits": theirs["final_layer_norm.bias"]}
    for i in range(1, s.num_hidden_layers + 1):
        inside = f"layers.{i - 1}."
        found |= _layer({n.removeprefix(inside): t for n, t in theirs.items() if n.startswith(inside)}, i, s)
    return found


def _layer(theirs: Tensors, i: int, s: GPTNeoXSettings) -> Weights:
    found: Weights = {}
    for sign, kind in {"W": "weight", "b": "bias"}.items():
        if (side_by_side := theirs.get(f"attention.query_key_value.{kind}")) is not None:
            by_head = side_by_side.unflatten(0, (s.num_attention_heads, 3, s.d_h)).unbind(1)
            found |= {f"{sign}_{letter}{i}": part.flatten(0, 1) for letter, part in zip("QKV", by_head, strict=True)}
        names = {f"{sign}_{letter}{i}": f"{name}.{kind}" for letter, name in MATRICES.items()}
        found |= {ours: theirs[name] for ours, name in names.items() if name in theirs}
    for part, norm in NORMS.items():
        found |= {f"gain_{part}{i}": theirs[f"{norm}.weight"], f"shift_{part}{i}": theirs[f"{norm}.bias"]}
    return found
