"""Attention maps of all heads on one sequence, small enough to be put on a page: a byte for each edge t → s ≤ t."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from engram.models import Head, Network
from engram.models.network import Part

MOST = 4 << 20  # bytes of all maps together


def longest_map(network: Network) -> int:
    """So many tokens that the maps of all heads fit."""
    each = MOST // sum(1 for _ in network.heads())
    return max(4, int((2 * each) ** 0.5) - 1)


@torch.no_grad()
def maps(network: Network, tokens: Sequence[int]) -> dict[Head, bytes]:
    """For each head round(255 a_ts), row by row from t = 0, each with its s ≤ t; one layer at a time."""
    found: dict[Head, bytes] = {}
    rows, columns = np.tril_indices(len(tokens))

    def look(part: Part, layer: int, pattern: Tensor) -> None:
        if part == "pattern":
            shades = (255 * pattern[0]).round().byte().cpu().numpy()
            found.update({(layer, h): of[rows, columns].tobytes() for h, of in enumerate(shades, 1)})

    network.stream([list(tokens)], look, read="none")
    return found
