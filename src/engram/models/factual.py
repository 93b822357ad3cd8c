r"""Models that recall facts: they read the prompt once, at EOS.

Factual is one layer of attention, with an MLP or without:

    x = Σ_h W_O[:, h] Σ_t a_ht W_V[h] e_{z_t},     a_h = softmax_t( W_Q[h] e_EOS · W_K[h] e_{z_t} / √d_h )
    y = x + W_F ReLU(W_I x + b),                   logits = U y

There are no positions, no causal mask and no residual stream around attention; U has a row for each answer. E and U are
frozen. [h] takes the d_h rows (or columns) of head h; H·d_h need not be d.

LinearHead and SoftmaxHead are single heads, small enough for theory: the first on one-hot embeddings, the other on
random ones.

    LinearHead     logit_a = Σ_t w(z_t) W(a, z_t)                     w = W_KQ e_EOS, W = W_OV
    SoftmaxHead    logits = U W_OV Σ_t a_t e_{z_t},   a = softmax_t( e_{z_t}ᵀ W_KQ e_EOS )
"""

from dataclasses import dataclass
from math import sqrt
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from engram.embeddings import directions
from engram.errors import EngramError
from engram.memory.stored import Labels, Stored
from engram.models.stores import lecun
from engram.models.trace import Weights
from engram.tasks.batch import marks_of
from engram.tasks.facts import FactTask
from engram.values import Value

Width = Annotated[int, Field(ge=1, le=2**14)]
Answers = Annotated[int, Field(ge=2, le=2**20)]
AT_ONCE = 2**20  # tokens: a single head holds little for each


@dataclass(frozen=True)
class FactualTrace:
    """What was attended to, what was read, and the scores of all answers: the same at every position, read at EOS."""

    attention: Float[Tensor, "B H T"]
    x: Float[Tensor, "B d"]
    logits: Float[Tensor, "B T A"]


class Factual(Value, name="models.factual.Factual"):
    """logits = U (x + W_F ReLU(W_I x + b)) with x written by attention from EOS; the module has the formulas.

    d             width
    heads         number of heads H
    d_h           width of each head
    m             hidden units; 0: no MLP
    answers       rows of U; a Search sets them from its task
    embeddings    how E and U are drawn: entries N(0, 1/d), or rows uniform on the unit sphere

    Nichani, Lee and Bietti (2025), Theorems 3 and 4 and Fig. 4.
    """

    d: Width = 64
    heads: Width = 4
    d_h: Width = 16
    m: Annotated[int, Field(ge=0, le=2**16)] = 64
    answers: Answers | None = None
    embeddings: Literal["gaussian/d", "sphere"] = "gaussian/d"

    @property
    def names(self) -> tuple[str, ...]:
        return ("E", "U", "W_Q", "W_K", "W_V", "W_O", *(("W_I", "b", "W_F") if self.m else ()))

    @property
    def trainable(self) -> tuple[str, ...]:
        """All matrices but E and U."""
        return self.names[2:]

    @property
    def parameters(self) -> int:
        """4 H d_h d + 2 m d, as on the axes of the paper: E, U and b are not counted."""
        return 4 * self.heads * self.d_h * self.d + 2 * self.m * self.d

    def init(self, N: int, T: int, seed: int) -> Weights:
        """W_Q, W_K, W_V have variance 1/d_h, W_O 1/d, the MLP that of its published code."""
        if self.answers is None:
            raise EngramError("model.answers: is missing; set it to the number of answers of the task (task.answers)")
        read = self.heads * self.d_h
        rows = {"E": N, "U": self.answers}
        w = {name: directions(self.embeddings, n, self.d, seed, name) for name, n in rows.items()}
        for name in ("W_Q", "W_K", "W_V"):
            w[name] = directions("gaussian", read, self.d, seed, name) / sqrt(self.d_h)
        w["W_O"] = directions("gaussian", self.d, read, seed, "W_O") / sqrt(self.d)
        if self.m:
            w |= {"W_I": lecun(self.m, self.d, seed, "W_I"), "b": torch.zeros(self.m)}
            w["W_F"] = lecun(self.d, self.m, seed, "W_F")
        return w

    def forward(self, w: Weights, tokens: Int[Tensor, "B T"]) -> FactualTrace:
        """The readable pass, token by token; the last token asks."""
        self._check(w)
        a, o = self._attend(w, tokens)
        x = o @ w["W_O"].T
        logits = self.read(w, x) @ w["U"].T
        return FactualTrace(a.mT, x, logits[:, None].expand(*tokens.shape, -1))

    def _check(self, w: Weights) -> None:
        read = self.heads * self.d_h
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            shape = (self.d, read) if name == "W_O" else (read, self.d)
            if tuple(w[name].shape) != shape:
                needed = f"{shape}, since H·d_h = {self.heads}·{self.d_h} and d = {self.d}"
                raise EngramError(f"{name}: must have shape {needed}; got {tuple(w[name].shape)}")

    def _attend(self, w: Weights, tokens: Int[Tensor, "B T"]) -> tuple[Float[Tensor, "B T H"], Float[Tensor, "B read"]]:
        """Attention of EOS, and what the heads read with it, one after the other."""
        x = w["E"][tokens]
        q, k, v = self._split(x[:, -1:] @ w["W_Q"].T), self._split(x @ w["W_K"].T), self._split(x @ w["W_V"].T)
        a = torch.softmax((q * k).sum(-1) / sqrt(self.d_h), dim=1)
        return a, (a[..., None] * v).sum(1).flatten(1)

    def last_store(self, w: Weights, tokens: Int[Tensor, "B T"]) -> tuple[str, Float[Tensor, "B n"]]:
        """The last matrix before U, and what it is applied to: W_F and the hidden units, or W_O and what heads read."""
        _, o = self._attend(w, tokens)
        return ("W_F", self._hidden(w, o @ w["W_O"].T)) if self.m else ("W_O", o)

    def memories(self, w: Weights, task: FactTask, seed: int = 0) -> list[Stored]:
        """What each token alone says of the answers, all heads together; and what the MLP answers to each fact."""
        found = [said_by_tokens("W_OV", w["E"], w["W_O"] @ w["W_V"], w["U"], task, seed)]
        return [*found, self._fact_memory(w, task, seed)] if self.m else found

    def _fact_memory(self, w: Weights, task: FactTask, seed: int) -> Stored:
        """W_F, asked about every fact in a prompt without noise."""
        book, names = task.book(seed), task.names_of(seed)
        s, r, a = book.known.T
        ids = np.column_stack([s, book.S + r, np.full_like(s, book.EOS)])
        prompts, a = (torch.from_numpy(part).to(w["E"].device) for part in (book.wired(ids), a.copy()))
        facts = tuple(f"{names['subject'][i]} {names['relation'][j]}" for i, j, _ in book.known)
        labels = Labels("Fact memory W_F", "fact", "answer", facts, tuple(names["answer"]))
        return Stored("W_F", self.last_store(w, prompts)[1], w["W_F"], w["U"], a, labels)

    def read(self, w: Weights, x: Float[Tensor, "... d"]) -> Float[Tensor, "... d"]:
        """y = x + W_F ReLU(W_I x + b)."""
        return x + self._hidden(w, x) @ w["W_F"].T if self.m else x

    def _hidden(self, w: Weights, x: Float[Tensor, "... d"]) -> Float[Tensor, "... m"]:
        return (x @ w["W_I"].T + w["b"]).relu()

    def _split(self, rows: Float[Tensor, "B T read"]) -> Float[Tensor, "B T H d_h"]:
        return rows.unflatten(-1, (self.heads, self.d_h))


@dataclass(frozen=True)
class HeadTrace:
    """What each token of the prompt weighs, and the scores of all answers: the same at every position, read at EOS."""

    attention: Float[Tensor, "B T"]
    logits: Float[Tensor, "B T A"]


class LinearHead(Value, name="models.fact_heads.LinearHead"):
    """logit_a = Σ_t w(z_t) W(a, z_t); all weights are initially `alpha`.

    answers    number of answers in all
    alpha      initial value of every weight
    """

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
    answers, said = tuple(task.names_of(seed)["answer"]), torch.from_numpy(task.book(seed).said_by_token).to(W.device)
    labels = Labels(f"Value memory {name}", "token", "answer", marks_of(task, seed), answers)
    return Stored(name, E, W, U, said, labels)


def gathered(weight: Float[Tensor, "B T"], tokens: Int[Tensor, "B T"], N: int) -> Float[Tensor, "B N"]:
    """A prompt as a bag: the summed weight of each token of the vocabulary."""
    return torch.zeros(len(tokens), N, dtype=weight.dtype, device=weight.device).scatter_add(1, tokens, weight)


class SoftmaxHead(Value, name="models.fact_heads.SoftmaxHead"):
    """logits = U W_OV Σ_t a_t e_{z_t}; embeddings random on the sphere and frozen, W_KQ and W_OV initially zero.

    answers    number of answers in all
    d          width
    """

    tokens_at_once: ClassVar[int] = AT_ONCE
    answers: Answers
    d: Width = 128

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
