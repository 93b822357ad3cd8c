"""Dropout, for models that were evaluated with it. It is a watcher: no forward pass knows of it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from engram.models.network import Part, Watch


@dataclass(frozen=True)
class Dropout:
    """Rates at which numbers are set to 0, in the places where GPT-2 has them; what is left grows by 1/(1 − rate).

    embedding    in what enters layer 1
    attention    in attention, after the softmax
    residual     in what attention and feed-forward parts write
    """

    embedding: float = 0.0
    attention: float = 0.0
    residual: float = 0.0

    def watch(self, seed: int) -> Watch:
        """A watcher that drops other numbers in every pass; the same ones again for the same seed."""
        rng = torch.Generator().manual_seed(seed)

        def watch(part: Part, layer: int, tensor: Tensor) -> Tensor | None:
            rate = self.rate(part, layer)
            if not rate:
                return None
            kept = torch.rand(tensor.shape, generator=rng) >= rate
            return tensor * kept.to(tensor) / (1 - rate)

        return watch

    def rate(self, part: Part, layer: int) -> float:
        if part == "resid":
            return self.embedding if layer == 1 else 0.0
        return {"pattern": self.attention, "head": self.residual, "mlp": self.residual}.get(part, 0.0)
