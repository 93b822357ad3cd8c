r"""What heads do on a sequence that comes twice: look at the token before, or at what followed last time.

    z = (o_1 … o_s) r_1 … r_n r_1 … r_n          n = period, s = start tokens in front, such as a beginning of the text

    previous     mean over t ≥ 2 of a_{t,t−1}
    induction    mean over the second copy of a_{t,t−n+1}: the token after the last visit of z_t

The functions take patterns, B×H×T×T, of any model; `head_scores` asks a Network for them layer by layer.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.errors import EngramError
from engram.models import Head, Network
from engram.models.network import Part
from engram.models.trace import Tokens
from engram.values import generator


class HeadScores(NamedTuple):
    """Two scores of a head, each between 0 and 1."""

    previous: float
    induction: float


def previous_token_score(pattern: Float[Tensor, "B H T k"]) -> Float[Tensor, " H"]:
    """Attention on the position before, the mean over sequences and all positions but the first."""
    return pattern.diagonal(-1, dim1=-2, dim2=-1).mean(dim=(0, 2))


def induction_score(pattern: Float[Tensor, "B H T k"], period: int, start: int = 0) -> Float[Tensor, " H"]:
    """Attention on what followed the last visit, the mean over sequences and the positions of the second copy.

    period    the length of what comes twice
    start     how many tokens stand before its first copy
    """
    T = pattern.shape[-1]
    if not period >= 2 or not start >= 0 or start + 2 * period > T:
        raise EngramError(f"period: two copies of 2 or more tokens behind {start} must fit into {T}; got {period}")
    looking = pattern.diagonal(1 - period, dim1=-2, dim2=-1)  # [i]: from t = i + period − 1
    return looking[..., start + 1 : start + 1 + period].mean(dim=(0, 2))


def twice(N: int, period: int, sequences: int, seed: int, among: Int[np.ndarray, " n"] | None = None) -> np.ndarray:
    """Uniform random tokens, of all N or of some, the same `period` of them twice in each sequence: B×2n."""
    drawn = generator(seed, "twice").integers(0, N if among is None else len(among), (sequences, period))
    return np.tile(drawn if among is None else np.asarray(among)[drawn], 2)


@torch.no_grad()
def head_scores(network: Network, tokens: Tokens, period: int, start: int = 0) -> dict[Head, HeadScores]:
    """Both scores of every head on sequences such as `twice` makes; no pattern is kept."""
    found: dict[Head, HeadScores] = {}

    def look(part: Part, layer: int, pattern: Tensor) -> None:
        if part == "pattern":
            both = zip(previous_token_score(pattern), induction_score(pattern, period, start), strict=True)
            found.update({(layer, h): HeadScores(float(p), float(i)) for h, (p, i) in enumerate(both, 1)})

    network.stream(tokens, look, read="none")
    return found
