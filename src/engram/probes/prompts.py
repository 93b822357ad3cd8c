r"""Prompts of any length in one batch: what a network says behind the last token of each.

Shorter prompts are filled up on the right, which causal attention does not see. What enters a layer is kept: a change
of that layer, or of one behind it, leaves everything before as it is, so that only the rest is computed again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.errors import EngramError
from engram.models import Network

TOKENS_AT_ONCE = 2048  # so that units of wide layers stay small beside the weights
LOGITS_AT_ONCE = 256  # positions: each has as many logits as there are tokens


@dataclass(frozen=True)
class Prompts:
    """Token ids, and the place of the last token of each prompt, from 0."""

    tokens: Int[Tensor, "B T"]
    last: Int[Tensor, " B"]

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> "Prompts":
        """
        >>> Prompts.of([[5, 6, 7], [8]]).tokens.tolist()
        [[5, 6, 7], [8, 0, 0]]
        """
        if not sequences or not all(len(one) for one in sequences):
            raise EngramError("prompts: at least one is needed, and each needs a token")
        longest = max(map(len, sequences))
        filled = [[*one, *[0] * (longest - len(one))] for one in sequences]
        return cls(torch.tensor(filled), torch.tensor([len(one) - 1 for one in sequences]))

    def __len__(self) -> int:
        return len(self.last)


@dataclass(frozen=True)
class Entering:
    """The stream x that enters a layer; L + 1 is behind the last one."""

    layer: int
    x: Float[Tensor, "B T d"]
    last: Int[Tensor, " B"]

    def to(self, network: Network, layer: int) -> "Entering":
        """The stream that enters a later layer of this network."""
        if layer == self.layer:
            return self
        return replace(self, layer=layer, x=network.stream(start=self.layer, x=self.x, stop=layer - 1, read="none"))

    def rows(self, which: Sequence[int] | Tensor) -> "Entering":
        """The same for some of the prompts."""
        at = torch.as_tensor(which)
        last = self.last[at]
        return replace(self, x=self.x[at, : int(last.max()) + 1], last=last)

    def logits(self, network: Network) -> Float[Tensor, "B N"]:
        """Behind the last token of each prompt."""
        x = self.to(network, network.sizes.L + 1).x
        each = torch.arange(len(x), device=x.device)
        return network.stream(start=network.sizes.L + 1, x=x[each, self.last.to(x.device)][:, None])[:, 0]


def entering(network: Network, prompts: Prompts, layer: int = 1) -> Entering:
    """What enters a layer for these prompts."""
    return Entering(layer, network.stream(prompts.tokens, stop=layer - 1, read="none"), prompts.last)


def log_p(logits: Float[Tensor, "B N"], wanted: Int[Tensor, "B n"]) -> Float[Tensor, "B n"]:
    """The log-probabilities of some tokens of each prompt, without a table of all."""
    return logits.gather(1, wanted.to(logits.device)) - logits.logsumexp(dim=1, keepdim=True)


@torch.no_grad()
def text_loss(network: Network, tokens: Int[Tensor, "B T"], here: Entering | None = None) -> float:
    """Mean loss in nats of every next token; `here`: what enters a layer for these tokens, if it is known."""
    here, T = here or entering(network, Prompts(tokens, tokens[:, 0])), tokens.shape[1]
    at_once = max(1, TOKENS_AT_ONCE // T)
    total = 0.0
    for x, ids in zip(here.x.split(at_once), tokens.split(at_once), strict=True):
        end = network.stream(start=here.layer, x=x, read="none")[:, :-1].flatten(0, 1)
        total += _loss_of_all(network, end, ids[:, 1:].reshape(-1, 1))
    return total / (len(tokens) * (T - 1))


def _loss_of_all(network: Network, x: Float[Tensor, "n d"], wanted: Int[Tensor, "n 1"]) -> float:
    """The sum over positions behind the last layer, some of them at a time."""
    parts = zip(x.split(LOGITS_AT_ONCE), wanted.split(LOGITS_AT_ONCE), strict=True)
    said = (log_p(network.stream(start=network.sizes.L + 1, x=x[:, None])[:, 0], ids) for x, ids in parts)
    return -sum(float(one.sum()) for one in said)
