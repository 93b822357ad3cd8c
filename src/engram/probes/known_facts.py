"""Facts that a network knows, as tokens: its likeliest token is the true answer. What an edit of one does to others.

kept          its likeliest token is what it was before the edit
paraphrased   the new answer is likelier than the old one
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from engram.models import Network
from engram.probes.prompts import Entering, Prompts, entering

AT_ONCE = 64


@dataclass(frozen=True)
class Fact:
    """A subject, a relation, the prompt that asks for the answer, and the place of the subject's last token in it."""

    subject: str
    relation: str
    prompt: tuple[int, ...]
    answer: int
    end: int
    paraphrases: tuple[tuple[int, ...], ...] = ()


def top(network: Network, here: Entering) -> Int[Tensor, " B"]:
    """The likeliest token behind each prompt."""
    parts = torch.arange(len(here.last)).split(AT_ONCE)
    return torch.cat([here.rows(part).logits(network).argmax(dim=1) for part in parts])


@torch.no_grad()
def known(network: Network, facts: Sequence[Fact]) -> list[Fact]:
    """Those whose answer is the likeliest token."""
    said = top(network, entering(network, Prompts.of([fact.prompt for fact in facts])))
    return [fact for fact, token in zip(facts, said.tolist(), strict=True) if token == fact.answer]


@dataclass(frozen=True)
class Asked:
    """Prompts up to the layer that is edited, and what was said behind them."""

    here: Entering
    before: Int[Tensor, " B"]

    @classmethod
    @torch.no_grad()
    def of(cls, network: Network, prompts: Sequence[Sequence[int]], layer: int) -> "Asked":
        here = entering(network, Prompts.of(prompts), layer)
        return cls(here, top(network, here))

    def rows(self, which: Sequence[int]) -> "Asked":
        return replace(self, here=self.here.rows(which), before=self.before[torch.tensor(which)])

    @torch.no_grad()
    def kept(self, edited: Network) -> Bool[Tensor, " B"]:
        return top(edited, self.here) == self.before


@torch.no_grad()
def prefers(edited: Network, here: Entering, new: int, old: int) -> Bool[Tensor, " B"]:
    """Whether the new answer is likelier than the old one."""
    logits = here.logits(edited)
    return logits[:, new] > logits[:, old]
