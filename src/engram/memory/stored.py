r"""A matrix read as a memory: what it is asked, what it may answer, and what is right.

    score of value j for key i = value_j · W key_i

W is a matrix of some model, trained or not. Usually the keys ask and the values answer: an output matrix writes u_j
when it is shown e_i. In an attention matrix it is the other way round: queries are compared with what W_K makes of the
keys, so the values ask, and the keys compete.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.display import Displayed
from engram.errors import EngramError
from engram.memory.truncation import Factors


@dataclass(frozen=True)
class Labels:
    """Words for a memory: its title, what asks and what answers, and a name for each row and column of its scores."""

    title: str
    asks: str
    answers: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Stored(Displayed):
    """value_j · W key_i for all i and j: one memory of a model, from `model.memories(weights, task, seed)`.

    asking    the side that asks: the rows of `scores` belong to it, the columns to the other side
    right     the column of the right answer to each row; or the law of right answers, with zeros in the rows where
              nothing is asked; None if no answer is known to be right
    among     the only rows and columns that count for recall; None: all
    parts     by name, rows and columns whose recall is also reported separately
    read      what is applied between W and the values, such as a layer norm
    """

    name: str
    keys: Float[Tensor, "n d_in"]
    W: Float[Tensor, "d_out d_in"]
    values: Float[Tensor, "m d_out"]
    right: Int[Tensor, " asked"] | Float[Tensor, "asked answers"] | None
    labels: Labels
    asking: Literal["keys", "values"] = "keys"
    among: Int[Tensor, " some"] | None = None
    parts: Mapping[str, Int[Tensor, " part"]] = field(default_factory=dict)
    read: Callable[[Tensor], Tensor] | None = None
    origin: str = ""  # the run and the step that it is of

    def __repr__(self) -> str:
        asked, answers = self.scores().shape
        told = f", recall {self.recall():.3f}" if self.right is not None else ""
        return f"<memory {self.name}: {asked} questions, {answers} answers{told}>"

    def scores(self) -> Float[Tensor, "asked answers"]:
        """value_j · W key_i; one row for each question, one column for each answer."""
        written = self.keys @ self.W.T
        written = self.read(written) if self.read else written
        return written @ self.values.T if self.asking == "keys" else self.values @ written.T

    @property
    def answers(self) -> Int[Tensor, " asked"]:
        """The column of the right answer to each row, for a memory with single right answers."""
        if self.right is None or self.right.is_floating_point():
            raise EngramError(f"{self.name}: this memory has no single right answer for each question")
        return self.right

    @property
    def has_answers(self) -> bool:
        """Whether each question has one right answer."""
        return self.right is not None and not self.right.is_floating_point()

    def recall(self) -> float:
        """The share of questions whose largest score is at the right answer; NaN with fewer than two questions."""
        counted = self if self.among is None else self.only(self.among)
        scores = counted.scores()
        if len(scores) < 2:
            return float("nan")
        return int((scores.argmax(dim=1) == counted.answers).sum()) / len(scores)

    def strengths(self) -> Float[Tensor, " asked"]:
        """The score of each right answer, restricted to `among`."""
        counted = self if self.among is None else self.only(self.among)
        return counted.scores().gather(1, counted.answers[:, None])[:, 0]

    def margins(self) -> Float[Tensor, " asked"]:
        """The score of each right answer minus that of the best wrong one."""
        scores, right = self.scores(), self.answers[:, None]
        return scores.gather(1, right)[:, 0] - scores.scatter(1, right, -torch.inf).amax(1)

    def only(self, places: Int[Tensor, " some"]) -> "Stored":
        """The same memory restricted to these rows and columns."""
        rows, columns = (tuple(names[i] for i in places.tolist()) for names in (self.labels.rows, self.labels.columns))
        return replace(
            self,
            keys=self.keys[places],
            values=self.values[places],
            right=self._right_among(places),
            labels=replace(self.labels, rows=rows, columns=columns),
            among=None,
            parts={},
        )

    def _right_among(self, places: Int[Tensor, " some"]) -> Tensor | None:
        if self.right is None or self.right.is_floating_point():
            return None if self.right is None else self.right[places][:, places]
        same = self.right[places][:, None] == places
        if not same.any(1).all():
            raise EngramError(f"{self.name}: the right answer to a question is not among the answers that are left")
        return same.int().argmax(1)

    def spectrum(self) -> Float[Tensor, " rank"]:
        """The singular values of W, largest first."""
        return torch.linalg.svdvals(self.W)

    def truncate(self, rank: int) -> "Stored":
        """The same memory with the nearest W of this rank."""
        return replace(self, W=truncated(self.W, rank))

    def truncate_share(self, share: float) -> "Stored":
        """The same memory with this share of the singular values of W: none with 0, all with 1."""
        return replace(self, W=Factors.of(self.W).keep_share(share))


def truncated(W: Float[Tensor, "m n"], rank: int) -> Float[Tensor, "m n"]:
    """The nearest matrix of this rank: only the largest singular values of W are kept."""
    return Factors.of(W).product(rank)
