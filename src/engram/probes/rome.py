r"""A fact rewritten by a value that is optimised at the subject, for comparison with the plain outer product.

    W_F ← W_F + δ k̃ᵀ,    k̃ = C⁻¹k/(kᵀC⁻¹k),    k the key at the last token of the subject
    δ = argmin  −log p(new | prompt) + λ ‖δ‖²/‖v‖²        δ is added to v = W_F k there; Adam, a fixed number of steps

After Meng, Bau, Andonian and Belinkov (2022, ROME), without its random prefixes and its term for the essence of a
subject.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
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
    here = here or entering(network, Prompts.of([tokens]), layer)
    return rome_each(network, here, [new], C, [subject])[0]


def rome_each(
    network: Network, here: Entering, new: Sequence[int], C: Float[Tensor, "m m"], subjects: Sequence[int]
) -> list[Edit]:
    """An edit for each of several prompts, each by itself; their values are optimised side by side."""
    for subject, last in zip(subjects, here.last.tolist(), strict=True):
        if not 0 < subject <= last:
            raise EngramError(
                f"subject: its last token must stand behind position 0, where attention rests (a sink); got {subject}"
            )
    found = [at(network, here.rows([i]), subject) for i, subject in enumerate(subjects)]
    v = torch.stack([network.matrices()[f"W_F{here.layer}"] @ one.k for one in found])
    delta = _optimised(network, here, torch.tensor(new), torch.tensor(subjects), v)
    model = fingerprint(network)
    return [
        Edit(here.layer, own, key_direction(one.k, C).to(own), model, how="rome")
        for own, one in zip(delta, found, strict=True)
    ]


def _optimised(
    network: Network, here: Entering, new: Int[Tensor, " B"], subjects: Int[Tensor, " B"], v: Float[Tensor, "B d"]
) -> Float[Tensor, "B d"]:
    each = torch.arange(len(v))
    step = RATE * v.norm(dim=1, keepdim=True) / v.shape[1] ** 0.5  # an entry of a step is this share of one of v
    scaled = torch.zeros_like(v, requires_grad=True)
    optimiser = torch.optim.Adam([scaled], lr=1.0)

    def watch(part: Part, layer: int, tensor: Tensor) -> Tensor | None:
        if (part, layer) != ("mlp", here.layer):
            return None
        return tensor.index_put((each, subjects), scaled * step, accumulate=True)

    for _ in range(STEPS):
        x = network.stream(start=here.layer, x=here.x, watch=watch, read="none")
        logits = network.stream(start=network.sizes.L + 1, x=x[each, here.last][:, None])[:, 0]
        size = (scaled * step).norm(dim=1) / v.norm(dim=1)
        loss = -log_p(logits, new[:, None]).sum() + DECAY * size.square().sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return (scaled * step).detach()
