r"""GPT-2, with a language-model head or as a bare trunk.

    x = e_{z_t} + p_t;   attention and feed-forward part read n(x) = g ⊙ (x − mean)/√(variance + ε) + s
    feed_forward   b_F + W_F σ(W_I n(x) + b_I),    σ = gelu_new unless the config says otherwise

A trunk without a head has no U: the coordinates of the final layer norm are its logits. The files store every matrix
transposed (Conv1D), and queries, keys and values of a layer side by side.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Annotated, Literal

from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from engram.adapters.shared import ACTIVATIONS, Activation, Rate, layer_normed, place_of
from engram.adapters.source import Settings, Source
from engram.models import Weights
from engram.models.dropout import Dropout
from engram.models.layered import Layered
from engram.models.network import Reader, Sizes
from engram.models.unread import Tensors

MASKS = r"h\.\d+\.attn\.(bias|masked_bias)"  # tensors of older files that are no weights
HEAD = "lm_head.weight"


class GPT2Settings(Settings):
    """What a config of GPT-2 may say; defaults are those of Hugging Face."""

    architectures: Annotated[list[Literal["GPT2Model", "GPT2LMHeadModel"]], Field(min_length=1, max_length=1)]
    model_type: Literal["gpt2"]
    vocab_size: Annotated[int, Field(ge=1, le=1 << 22)]
    n_positions: Annotated[int, Field(ge=1, le=1 << 20)]
    n_embd: Annotated[int, Field(ge=1, le=1 << 15)]
    n_layer: Annotated[int, Field(ge=1, le=512)]
    n_head: Annotated[int, Field(ge=1, le=1024)]
    n_inner: Annotated[int, Field(ge=1, le=1 << 18)] | None = None
    activation_function: Activation = "gelu_new"
    layer_norm_epsilon: Annotated[float, Field(gt=0, le=1)] = 1e-5
    embd_pdrop: Rate = 0.1
    attn_pdrop: Rate = 0.1
    resid_pdrop: Rate = 0.1
    scale_attn_weights: bool = True
    tie_word_embeddings: bool = True
    scale_attn_by_inverse_layer_idx: Literal[False] = False
    reorder_and_upcast_attn: Literal[False] = False
    add_cross_attention: Literal[False] = False

    @model_validator(mode="after")
    def _heads_divide(self) -> "GPT2Settings":
        if self.n_embd % self.n_head:
            raise ValueError(f"n_head: {self.n_head} heads do not divide n_embd={self.n_embd}")
        return self

    @property
    def has_head(self) -> bool:
        return self.architectures == ["GPT2LMHeadModel"]


@dataclass(frozen=True)
class GPT2(Layered):
    """A GPT-2 as a Network; weights have our names and orientation."""

    settings: GPT2Settings

    def embed(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T d"]:
        return self.weights["E"][tokens] + self.weights["P"][: tokens.shape[1]]

    def normed(self, part: Reader, layer: int, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
        return layer_normed(self.weights, place_of(part, layer), x, self.settings.layer_norm_epsilon)

    def units(self, layer: int, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n m"]:
        return ACTIVATIONS[self.settings.activation_function](self.affine("I", layer)(x))

    def temperature(self, layer: int) -> float:
        return sqrt(self.sizes.d_h) if self.settings.scale_attn_weights else 1.0

    @property
    def dropout(self) -> Dropout:
        """The rates with which it was trained; a stream drops nothing unless it is given dropout.watch(seed)."""
        return Dropout(self.settings.embd_pdrop, self.settings.attn_pdrop, self.settings.resid_pdrop)


def network(source: Source) -> GPT2:
    """The Network of a folder of this family."""
    settings, source = source.settings(GPT2Settings), source.without_prefix("transformer.")
    tied = settings.has_head and settings.tie_word_embeddings
    theirs = source.weights(_shapes(settings), ignored=f"{MASKS}|{HEAD}" if tied else MASKS)
    d, H = settings.n_embd, settings.n_head
    sizes = Sizes(settings.n_layer, H, H, d, d // H, settings.vocab_size, settings.n_positions)
    ours = _ours(theirs, settings.n_layer)
    return GPT2(ours | {"U": ours["E"]} if tied else ours, sizes, source.provenance, settings)


def _shapes(s: GPT2Settings) -> dict[str, tuple[int, ...]]:
    """The tensors that the files must hold."""
    d, m = s.n_embd, s.n_inner or 4 * s.n_embd
    shapes: dict[str, tuple[int, ...]] = {"wte.weight": (s.vocab_size, d), "wpe.weight": (s.n_positions, d)}
    inside = {"attn.c_attn": (d, 3 * d), "attn.c_proj": (d, d), "mlp.c_fc": (d, m), "mlp.c_proj": (m, d)}
    for i in range(s.n_layer):
        shapes |= {f"h.{i}.{name}.weight": shape for name, shape in inside.items()}
        shapes |= {f"h.{i}.{name}.bias": shape[1:] for name, shape in inside.items()}
        shapes |= {f"h.{i}.{norm}.{what}": (d,) for norm in ("ln_1", "ln_2") for what in ("weight", "bias")}
    shapes |= {"ln_f.weight": (d,), "ln_f.bias": (d,)}
    return shapes | ({HEAD: (s.vocab_size, d)} if s.has_head and not s.tie_word_embeddings else {})


def _ours(theirs: Tensors, layers: int) -> Weights:
    """Under our names; matrices are views of theirs, transposed."""
    found = {"E": theirs["wte.weight"], "P": theirs["wpe.weight"]} | ({"U": theirs[HEAD]} if HEAD in theirs else {})
    for i in range(1, layers + 1):
        inside = f"h.{i - 1}."
        found |= _layer({n.removeprefix(inside): t for n, t in theirs.items() if n.startswith(inside)}, i)
    return found | {"gain_logits": theirs["ln_f.weight"], "shift_logits": theirs["ln_f.bias"]}


def _layer(theirs: Tensors, i: int) -> Weights:
    found: Weights = {}
    side_by_side = (theirs[f"attn.c_attn.{kind}"].chunk(3, dim=-1) for kind in ("weight", "bias"))
    for letter, W, b in zip("QKV", *side_by_side, strict=True):
        found |= {f"W_{letter}{i}": W.T, f"b_{letter}{i}": b}
    for letter, name in {"O": "attn.c_proj", "I": "mlp.c_fc", "F": "mlp.c_proj"}.items():
        found |= {f"W_{letter}{i}": theirs[f"{name}.weight"].T, f"b_{letter}{i}": theirs[f"{name}.bias"]}
    for part, name in {"head": "ln_1", "mlp": "ln_2"}.items():
        found |= {f"gain_{part}{i}": theirs[f"{name}.weight"], f"shift_{part}{i}": theirs[f"{name}.bias"]}
    return found
