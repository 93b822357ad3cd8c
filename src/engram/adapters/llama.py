r"""The Llama family: rotary positions, RMS norms, gated feed-forward parts, heads that may share keys and values.

    x = e_{z_t};   attention and feed-forward part read n(x) = g ⊙ x/√(mean x² + ε)
    feed_forward   b_F + W_F ( silu(W_G n(x) + b_G) ⊙ (W_I n(x) + b_I) )

U is E where they are tied. There are no biases unless the config says so.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor
from torch.nn.functional import rms_norm, silu

from engram.adapters.shared import Base, Rate, Rope, place_of
from engram.adapters.source import Settings, Source
from engram.models.layered import Layered
from engram.models.network import Reader, Sizes
from engram.models.rotary import rotated
from engram.models.unread import Tensors, renamed

HEAD = "lm_head.weight"
ANGLES = r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq"  # a tensor of older files that is no weight
ATTENTION = {letter: f"self_attn.{letter.lower()}_proj" for letter in "QKVO"}
FEED_FORWARD = {"G": "mlp.gate_proj", "I": "mlp.up_proj", "F": "mlp.down_proj"}
NORMS = {"head": "input_layernorm.weight", "mlp": "post_attention_layernorm.weight"}


class LlamaSettings(Settings):
    """What a config of Llama may say; defaults are those of Hugging Face."""

    architectures: Annotated[list[Literal["LlamaForCausalLM"]], Field(min_length=1, max_length=1)]
    model_type: Literal["llama"]
    vocab_size: Annotated[int, Field(ge=1, le=1 << 22)]
    hidden_size: Annotated[int, Field(ge=1, le=1 << 15)]
    intermediate_size: Annotated[int, Field(ge=1, le=1 << 18)]
    num_hidden_layers: Annotated[int, Field(ge=1, le=512)]
    num_attention_heads: Annotated[int, Field(ge=1, le=1024)]
    num_key_value_heads: Annotated[int, Field(ge=1, le=1024)] | None = None
    head_dim: Annotated[int, Field(ge=2, le=1 << 12, multiple_of=2)] | None = None
    max_position_embeddings: Annotated[int, Field(ge=1, le=1 << 24)] = 2048
    rms_norm_eps: Annotated[float, Field(gt=0, le=1)] = 1e-6
    rope_theta: Base = 10000.0
    rope_parameters: Rope | None = None
    rope_scaling: None = None
    hidden_act: Literal["silu", "swish"] = "silu"
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    attention_dropout: Rate = 0.0
    pretraining_tp: Literal[1] = 1
    rope_interleaved: Literal[False] = False
    is_llama_config: bool = True

    @model_validator(mode="after")
    def _heads_fit(self) -> "LlamaSettings":
        H, groups = self.num_attention_heads, self.groups
        if self.head_dim is None and (self.hidden_size % H or self.hidden_size // H % 2):
            even = f"hidden_size={self.hidden_size} into even parts"
            raise ValueError(f"num_attention_heads: {H} heads do not divide {even}, and there is no head_dim")
        if H % groups:
            raise ValueError(f"num_key_value_heads: {groups} groups do not divide {H} heads")
        if self.rope_parameters and "rope_theta" in self.model_fields_set and self.base != self.rope_theta:
            raise ValueError(f"rope_theta: {self.rope_theta} is not that of rope_parameters, {self.base}")
        return self

    @property
    def groups(self) -> int:
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def d_h(self) -> int:
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @property
    def base(self) -> float:
        return self.rope_parameters.rope_theta if self.rope_parameters else self.rope_theta


@dataclass(frozen=True)
class Llama(Layered):
    """A Llama as a Network; weights have our names, and matrices the orientation that the files have."""

    settings: LlamaSettings

    def embed(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T d"]:
        return self.weights["E"][tokens]

    def normed(self, part: Reader, layer: int, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
        return rms_norm(x, x.shape[-1:], self.weights[f"gain_{place_of(part, layer)}"], self.settings.rms_norm_eps)

    def units(self, layer: int, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n m"]:
        return silu(self.affine("G", layer)(x)) * self.affine("I", layer)(x)

    def rotate(self, q: Float[Tensor, "*n T d_h"], position: Int[Tensor, " T"]) -> Float[Tensor, "*n T d_h"]:
        return rotated(q, position, self.settings.base, self.sizes.d_h)


def network(source: Source) -> Llama:
    """The Network of a source of this family."""
    s, source = source.settings(LlamaSettings), source.without_prefix("model.")
    ignored = f"{ANGLES}|{HEAD}" if s.tie_word_embeddings else ANGLES
    theirs = source.weights(_shapes(s), ignored)
    sizes = Sizes(
        L=s.num_hidden_layers,
        H=s.num_attention_heads,
        groups=s.groups,
        d=s.hidden_size,
        d_h=s.d_h,
        N=s.vocab_size,
        T=s.max_position_embeddings,
    )
    return Llama(_ours(theirs, s.num_hidden_layers), sizes, source.provenance, s)


def _shapes(s: LlamaSettings) -> dict[str, tuple[int, ...]]:
    """The tensors that the files must hold."""
    d, m, z, k = s.hidden_size, s.intermediate_size, s.num_attention_heads * s.d_h, s.groups * s.d_h
    rows = {"Q": (z, d), "K": (k, d), "V": (k, d), "O": (d, z), "G": (m, d), "I": (m, d), "F": (d, m)}
    biased = ("QKVO" if s.attention_bias else "") + ("GIF" if s.mlp_bias else "")
    shapes: dict[str, tuple[int, ...]] = {"embed_tokens.weight": (s.vocab_size, d), "norm.weight": (d,)}
    for i in range(s.num_hidden_layers):
        names = {letter: f"layers.{i}.{name}" for letter, name in (ATTENTION | FEED_FORWARD).items()}
        shapes |= {f"{name}.weight": rows[letter] for letter, name in names.items()}
        shapes |= {f"{names[letter]}.bias": rows[letter][:1] for letter in biased}
        shapes |= {f"layers.{i}.{norm}": (d,) for norm in NORMS.values()}
    return shapes | ({} if s.tie_word_embeddings else {HEAD: (s.vocab_size, d)})


def _ours(theirs: Tensors, layers: int) -> Tensors:
    """The same tensors under our names."""
    E = "embed_tokens.weight"
    names = {"E": E, "U": HEAD if HEAD in theirs else E, "gain_logits": "norm.weight"}
    for i in range(1, layers + 1):
        for letter, name in (ATTENTION | FEED_FORWARD).items():
            kinds = {f"W_{letter}{i}": "weight", f"b_{letter}{i}": "bias"}
            names |= {ours: at for ours, kind in kinds.items() if (at := f"layers.{i - 1}.{name}.{kind}") in theirs}
        names |= {f"gain_{part}{i}": f"layers.{i - 1}.{norm}" for part, norm in NORMS.items()}
    return renamed(theirs, names)
