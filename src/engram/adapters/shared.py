"""What families have in common: activations, layer norms, and how configs say rotary positions."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal

from jaxtyping import Float
from pydantic import Field
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, relu

from engram.adapters.source import Settings
from engram.models.network import Reader
from engram.models.unread import Tensors

Activation = Literal["gelu_new", "gelu_pytorch_tanh", "gelu", "relu"]
Rate = Annotated[float, Field(ge=0, lt=1)]
Base = Annotated[float, Field(gt=1)]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu_new": partial(gelu, approximate="tanh"),
    "gelu_pytorch_tanh": partial(gelu, approximate="tanh"),
    "gelu": gelu,
    "relu": relu,
}


class Rope(Settings):
    """Rotary positions without scaling, as transformers 5 says it."""

    rope_type: Literal["default"] = "default"
    rope_theta: Base


def place_of(part: Reader, layer: int) -> str:
    """What names of norms end with: logits, head1, mlp1, …"""
    return part if part == "logits" else f"{part}{layer}"


def layer_normed(weights: Tensors, place: str, x: Float[Tensor, "*n d"], eps: float) -> Float[Tensor, "*n d"]:
    """g ⊙ (x − mean)/√(variance + ε) + s, with the gain and shift of this place."""
    return layer_norm(x, x.shape[-1:], weights[f"gain_{place}"], weights[f"shift_{place}"], eps)
