r"""A fact rewritten by a value that is optimised at the subject, for comparison with the plain outer product.

    W_F ← W_F + δ k̃ᵀ,    k̃ = C⁻¹k/(kᵀC⁻¹k),    k the key at the last token of the subject
    δ = argmin  −log p(new | prompt) + λ ‖δ‖²/‖v‖²        δ is added to v = W_F k there; Adam, a fixed number of steps

After Meng, Bau, Andonian and Belinkov (2022, ROME), without its random prefixes and its term for the essence of a subject.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from engram.errors import EngramError
from engram.models import Network
from engram.models.network import Part
from engram.probes.edits import Edit, fingerprint
from engram.probes.prompts import Entering, Prompts, entering, log_p
from engram.probes.write import at, key_direction

STEPS, RATE, DECAY = 25, 0.5, 0.05


def rome(
    network: Network,
    tokens: Sequence[int],
    new: int,
    layer: int,
    C: Float[Tensor, "m m"],
    subject: int,
    here: Entering | None = None,
) -> Edit:
    """The edit that makes `new` the answer of a prompt; `subject` is the place of the subject's last token, from 0."""
    if not 0 < subject < len(tokens):
        raise EngramError(
            f"subject: its last token must stand behind position 0, where attention rests (a sink); got {subject}"
        )
    with torch.no_grad():
        here = here or entering(network, Prompts.of([tokens]), layer)
        found = at(network, here, subject)
        v = network.matrices()[f"W_F{layer}"] @ found.k
    delta = _optimised(network, here, new, subject, v)
    return Edit(layer, delta, key_direction(found.k, C).to(delta), fingerprint(network), how="rome")


def _optimised(network: Network, here: Entering, new: int, subject: int, v: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
    delta = torch.zeros_like(v, requires_grad=True)
    optimiser = torch.optim.Adam([delta], lr=RATE * float(v.norm()) / len(v) ** 0.5)  # entries of a step: RATE of v's

    def watch(part: Part, layer: int, tensor: Tensor) -> Tensor | None:
        if (part, layer) != ("mlp", here.layer):
            return None
        where = torch.zeros(tensor.shape[1], 1).to(tensor)
        where[subject] = 1
        return tensor + where * delta

    place = int(here.last[0])
    for _ in range(STEPS):
        x = network.stream(start=here.layer, x=here.x, watch=watch, read="none")
        logits = network.stream(start=network.sizes.L + 1, x=x[:, place : place + 1])[:, 0]
        loss = -log_p(logits, torch.tensor([[new]])).sum() + DECAY * (delta.norm() / v.norm()) ** 2
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return delta.detach()
