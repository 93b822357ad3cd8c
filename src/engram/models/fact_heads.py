r"""Single heads that recall facts, small enough for theory: linear on one-hot embeddings, softmax on random ones.

LinearHead     logit_a = Σ_t w(z_t) W(a, z_t)                     w = W_KQ e_EOS, W = W_OV
SoftmaxHead    logits = U W_OV Σ_t a_t e_{z_t},   a = softmax_t( e_{z_t}ᵀ W_KQ e_EOS )
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from engram.embeddings import directions
from engram.memory.stored import Labels, Stored
from engram.models.trace import Weights
from engram.tasks.batch import marks_of
from engram.tasks.facts import FactTask
from engram.values import Value

Answers = Annotated[int, Field(ge=2, le=2**20)]
AT_ONCE = 2**20  # tokens: there is little to hold for each


@dataclass(frozen=True)
class HeadTrace:
    """What each token of the prompt weighs, and the scores of all answers: the same at every position, read at EOS."""

    attention: Float[Tensor, "B T"]
    logits: Float[Tensor, "B T A"]


class LinearHead(Value, name="models.fact_heads.LinearHead"):
    """logit_a = Σ_t w(z_t) W(a, z_t); all weights are initially `alpha`."""

    tokens_at_once: ClassVar[int] = AT_ONCE
    answers: Answers
    alpha: Annotated[float, Field(gt=0)] = 1e-5

    @property
    def names(self) -> tuple[str, ...]:
        return ("w", "W")

    def init(self, N: int, T: int, seed: int) -> Weights:
        return {"w": torch.full((N,), self.alpha), "W": torch.full((self.answers, N), self.alpha)}

    def limits(self, w: Weights) -> tuple[int, int | None]:
        """How many tokens there are, and how long a prompt may be."""
        return len(w["w"]), None

    def last_store(self, w: Weights, tokens: Int[Tensor, "B T"]) -> tuple[str, Float[Tensor, "B N"]]:
        """W, and what it is applied to: how much of each token is there."""
        return "W", gathered(w["w"][tokens], tokens, len(w["w"]))

    def memories(self, w: Weights, task: FactTask, seed: int = 0) -> list[Stored]:
        """W, one row for each answer and one column for each token."""
        tokens, answers = (torch.eye(n, dtype=w["W"].dtype, device=w["W"].device) for n in w["W"].T.shape)
        return [said_by_tokens("W", tokens, w["W"], answers, task, seed)]

    def forward(self, w: Weights, tokens: Int[Tensor, "B T"]) -> HeadTrace:
        logits = self.last_store(w, tokens)[1] @ w["W"].T
        return HeadTrace(w["w"][tokens], logits[:, None].expand(*tokens.shape, -1))


def said_by_tokens(name: str, E: Tensor, W: Tensor, U: Tensor, task: FactTask, seed: int) -> Stored:
    """What each token alone says of the answers."""
    answers, said = tuple(task.names_of(seed)["answer"]), torch.from_numpy(task.book(seed).said).to(W.device)
    labels = Labels(f"Value memory {name}", "token", "answer", marks_of(task, seed), answers)
    return Stored(name, E, W, U, said, labels)


def gathered(weight: Float[Tensor, "B T"], tokens: Int[Tensor, "B T"], N: int) -> Float[Tensor, "B N"]:
    """A prompt as a bag: the summed weight of each token of the vocabulary."""
    return torch.zeros(len(tokens), N, dtype=weight.dtype, device=weight.device).scatter_add(1, tokens, weight)


class SoftmaxHead(Value, name="models.fact_heads.SoftmaxHead"):
    """logits = U W_OV Σ_t a_t e_{z_t}; embeddings random on the sphere and frozen, W_KQ and W_OV initially zero."""

    tokens_at_once: ClassVar[int] = AT_ONCE
    answers: Answers
    d: Annotated[int, Field(ge=1, le=2**14)] = 128

    @property
    def names(self) -> tuple[str, ...]:
        return ("E", "U", "W_KQ", "W_OV")

    def init(self, N: int, T: int, seed: int) -> Weights:
        zero = torch.zeros(self.d, self.d)
        E, U = (directions("sphere", n, self.d, seed, name) for name, n in (("E", N), ("U", self.answers)))
        return {"E": E, "U": U, "W_KQ": zero, "W_OV": zero.clone()}

    def last_store(self, w: Weights, tokens: Int[Tensor, "B T"]) -> tuple[str, Float[Tensor, "B d"]]:
        """W_OV, and what it is applied to: the mean that attention takes."""
        return "W_OV", gathered(self._attention(w, tokens), tokens, len(w["E"])) @ w["E"]

    def memories(self, w: Weights, task: FactTask, seed: int = 0) -> list[Stored]:
        return [said_by_tokens("W_OV", w["E"], w["W_OV"], w["U"], task, seed)]

    def forward(self, w: Weights, tokens: Int[Tensor, "B T"]) -> HeadTrace:
        a = self._attention(w, tokens)
        table = w["E"] @ w["W_OV"].T @ w["U"].T  # what each token says of each answer
        logits = gathered(a, tokens, len(w["E"])) @ table
        return HeadTrace(a, logits[:, None].expand(*tokens.shape, -1))

    def _attention(self, w: Weights, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        """The last token asks; scores are a table over the vocabulary."""
        table = w["E"] @ w["W_KQ"] @ w["E"].T
        return torch.softmax(table[tokens, tokens[:, -1:]], dim=1)
