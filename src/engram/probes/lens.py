r"""What a network would say if it ended after each layer: the logit lens.

    logits_i = U n(x_i),    x_i = the residual that enters layer i + 1, read by the norm before U

One pass gives all layers: `Network.stream(stop=i)` for every i would be L passes, with the same logits.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from engram.models import Network
from engram.models.network import Part
from engram.models.trace import Tokens
from engram.probes.ov_copying import refuse_trunk
from engram.probes.repeats import Repeats, both_losses


@dataclass(frozen=True)
class Said:
    """What stands highest at the last position of a text, if the network ended after this layer (0: before the first).

    tokens, probabilities    the likeliest, the likeliest first
    """

    layer: int
    tokens: tuple[int, ...]
    probabilities: tuple[float, ...]


@torch.no_grad()
def lens(network: Network, tokens: Tokens, top: int = 5) -> list[Said]:
    """The likeliest next tokens after every layer, of one sequence."""
    refuse_trunk(network)
    found: list[Said] = []

    def look(part: Part, layer: int, x: Tensor) -> None:
        if part == "resid":
            logits = network.stream(x=x[:1, -1:], start=network.sizes.L + 1)[0, 0]
            p, z = logits.softmax(dim=-1).topk(min(top, network.sizes.N))
            found.append(Said(layer - 1, tuple(z.tolist()), tuple(p.tolist())))

    network.stream(tokens, look, read="none")
    return found


@torch.no_grad()
def lens_losses(network: Network, given: Repeats) -> list[tuple[float, float]]:
    """Loss on the first copy and on the repeat, if the network ended after layer 0, 1, …, L."""
    refuse_trunk(network)
    found: list[tuple[float, float]] = []

    def look(part: Part, layer: int, x: Tensor) -> None:
        if part == "resid":
            found.append(both_losses(network, given, x))

    network.stream(given.tokens, look, read="none")
    return found
