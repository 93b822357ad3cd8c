"""A fact rewritten in a trained model, as an intervention: the run that keeps it can be computed again."""

from typing import TYPE_CHECKING, Annotated

import torch
from pydantic import Field

from engram.models import Weights
from engram.models.trace import Head
from engram.specs.events import OfMatrix, Past
from engram.specs.settings import Ask, Offer
from engram.tasks.corpus import is_a_record_read

if TYPE_CHECKING:
    from engram.specs.spec import Train

Numbers = Annotated[tuple[float, ...], Field(min_length=1)]


class Rewrite(OfMatrix, name="specs.rewrite.Rewrite"):
    """A fact is rewritten by a rank-one change of the matrix, W ← W + u kᵀ; `engram fact edit` finds u and k."""

    title = "Rewrite a fact"
    words = "rewrite {fact} in {matrix}"
    fact: Annotated[str, Ask("fact", lambda spec: Offer(choices=()))]  # no form asks for u and k
    u: Numbers
    k: Numbers

    def act(self, w: Weights, moments: Weights, past: Past, stream: tuple[int, str]) -> None:
        W = w[self.matrix]
        W += torch.outer(torch.tensor(self.u).to(W), torch.tensor(self.k).to(W))

    def refuse(self, now: "Train", silent: frozenset[Head]) -> None:
        super().refuse(now, silent)
        if is_a_record_read():
            return  # it was not refused when it was made
        shape = tuple(now.model.init(now.task.N, now.task.T, now.seed)[self.matrix].shape)
        if (len(self.u), len(self.k)) != shape:
            raise ValueError(f"u: u kᵀ is {len(self.u)}×{len(self.k)}, but {self.matrix} has the shape {shape}")
