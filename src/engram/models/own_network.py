"""Models of ours as a Network: `Transformer`, and `Simplified` as the transformer that it is."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.errors import refuse_other
from engram.models.cuts import general
from engram.models.layered import Layered
from engram.models.network import Affine, Provenance, Reader, Sizes
from engram.models.rotary import turned_by_position
from engram.models.trace import Model, Weights
from engram.models.transformer import Transformer

LONGEST = 65536  # tokens of a model whose positions have no end


def network_of(model: Model, provenance: Provenance | None = None) -> "OwnNetwork":
    """A model with its weights, such as `record.model()`, as a Network."""
    refuse_other(Model, model, "network_of: give a Model, such as record.model()")
    architecture, w = general(model.architecture, model.weights)
    H = max(layer.heads for layer in architecture.layers)
    d, T = architecture.d, _longest(model, w)
    sizes = Sizes(L=len(architecture.layers), H=H, groups=H, d=d, d_h=d // H, N=len(w["E"]), T=T)
    origin = provenance or Provenance(type(model.architecture).__name__, "engram")
    return OwnNetwork(w, sizes, origin, architecture)


def _longest(model: Model, w: Weights) -> int:
    """So many tokens as there are positions; where these are rotary, so many as the model was trained on."""
    if "P" in w:
        return len(w["P"])
    return LONGEST if model.task is None else model.task.T


@dataclass(frozen=True)
class OwnNetwork(Layered):
    """A `Transformer` with its weights; the formulas are in engram.models.transformer."""

    model: Transformer

    def embed(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T d"]:
        return self.model.embed(self.weights, tokens)

    def normed(self, part: Reader, layer: int, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
        return self.model.normed(x)

    def units(self, layer: int, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n m"]:
        return self.model.units(self.weights, layer, x)

    def rotate(self, q: Float[Tensor, "*n T d_h"], position: Int[Tensor, " T"]) -> Float[Tensor, "*n T d_h"]:
        return turned_by_position(q, position) if self.model.positions == "rotary" else q

    def temperature(self, layer: int) -> float:
        return 1.0 if self.model.scale == "unit" else (self.model.d / self.heads_in(layer)) ** 0.5

    def heads_in(self, layer: int) -> int:
        return self.model.layers[layer - 1].heads

    def affine(self, letter: str, layer: int) -> Affine:
        """W_Q of a layer without a query matrix is the identity."""
        if letter == "Q" and f"W_Q{layer}" not in self.weights:
            E = self.weights["E"]
            return Affine(torch.eye(self.model.d, dtype=E.dtype, device=E.device))
        return super().affine(letter, layer)
