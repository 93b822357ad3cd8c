"""From a number of parameters to a model, and back."""

from dataclasses import dataclass
from math import ceil, sqrt

HEADS = 8  # of every measured transformer
UNITS = 4  # hidden units for each width of an MLP that is proposed, as in most transformers; measured: 1, 2, 4


@dataclass(frozen=True)
class Transformer:
    """One layer: width, heads, width of each head, MLP units; α = H d_h/d and β = m/d of the measured ones are 1."""

    d: int
    heads: int
    d_h: int
    m: int

    @property
    def parameters(self) -> int:
        """4 H d_h d + 2 m d, as engram.models.factual.Factual counts them (which loads torch)."""
        return 4 * self.heads * self.d_h * self.d + 2 * self.m * self.d


def transformer(d: int, heads: int = HEADS, d_h: int | None = None, m: int | None = None) -> Transformer:
    """Of this width; where nothing else is said, in the measured shape: H d_h = d (or a little less) and m = d."""
    return Transformer(d, heads, d_h or max(1, d // heads), d if m is None else m)


def transformer_with(parameters: float) -> Transformer:
    """The narrowest of the measured shape, in steps of the number of heads, that has so many parameters."""
    steps = max(1, int(sqrt(parameters / 6) / HEADS))  # 6 d² where H d_h = d; from a little below
    while transformer(HEADS * steps).parameters < parameters:
        steps += 1
    return transformer(HEADS * steps)


def mlp_with(md: float) -> tuple[int, int]:
    """Width and units, four for each width."""
    d = max(1, ceil(sqrt(md / UNITS)))
    return d, UNITS * d
