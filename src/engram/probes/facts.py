"""What a model says about facts: losses of the relation and of the subject alone, and what it believes of one fact."""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.models.trace import Architecture, Weights
from engram.probes.probe import UNSEEN, Look, Probe
from engram.tasks import Task
from engram.tasks.book import MISSING, Book
from engram.tasks.facts import FactTask
from engram.theory.fact_flow import Guesses, PromptLaw, alike, losses

CROWDS = 32  # prompts about a single fact
AT_ONCE = 4096  # prompts


class FactStage(Probe, name="probes.facts.FactStage"):
    """Losses over all facts of the book, of the relation alone, of the subject alone."""

    columns: ClassVar = ("all.",)
    rhythm: ClassVar = "attention_every"

    def missing(self, task: Task, model: Architecture) -> str | None:
        return None if isinstance(task, FactTask) else "a task of facts"

    def measure(self, look: Look) -> dict[str, float]:
        assert isinstance(look.task, FactTask)
        found = stage(look.model, look.w, look.task.book(look.seed), look.seed, UNSEEN)
        return {f"all.{name}": value for name, value in found.items()}


def stage(model: Architecture, w: Weights, book: Book, seed: int, step: int) -> dict[str, float]:
    """Losses over all facts, each in one prompt; `distance.relation` is small while it hallucinates."""
    return losses(log_probabilities(model, w, book.every(seed, step)).numpy(), *_known(book))


@lru_cache(maxsize=4)
def _known(book: Book) -> tuple[PromptLaw, Guesses]:
    return alike(book), Guesses.of(book)


@torch.no_grad()
def log_probabilities(model: Architecture, w: Weights, tokens: Int[np.ndarray, "B T"]) -> Float[Tensor, "B A"]:
    z = torch.as_tensor(tokens, device=next(iter(w.values())).device)
    logits = [model.forward(w, part).logits[:, -1].double().cpu() for part in z.split(AT_ONCE)]
    return torch.log_softmax(torch.cat(logits), dim=1)


@dataclass(frozen=True)
class Chance:
    """What is likely without knowing the relation (of all its answers), and knowing nothing else (of the right one)."""

    relation: float
    right: float

    @classmethod
    def of(cls, book: Book, s: int, r: int) -> "Chance":
        """Blind guesses are alike for all answers, or as frequent as these are: whichever favours the relation."""
        answers, p_r = _answers_of(book, r), float(book.p[:, r].sum() / book.p.sum())
        return cls(max(len(answers) / book.answers, p_r), float(book.said[book.S + r, book.table[s, r]]))


RULE = (
    "“right” and “right relation” need more than half of the way from chance to certainty and a guess that agrees; "
    "with less it is “no idea”"
)


@dataclass(frozen=True)
class Belief:
    """How probability is shared out when one fact is asked for: the right answer, others of its relation, the rest.

    guess     the likeliest answer
    is_right, of_relation    whether it is the right one, and whether it is one of the relation's
    chance    what the shares are to be compared with
    """

    right: float
    relation: float
    rest: float
    guess: int
    is_right: bool
    of_relation: bool
    chance: Chance

    @property
    def words(self) -> str:
        """The stage of learning that this is: a share counts if it is more than halfway from chance to certainty."""
        knows_relation = self.of_relation and _beyond(self.relation + self.right, self.chance.relation)
        told_by_relation = self.chance.right == 1  # it has one answer: there is no subject to know
        if self.is_right and (knows_relation if told_by_relation else _beyond(self.right, self.chance.right)):
            return "right"
        if not knows_relation:
            return "no idea"
        return "right relation, unsure" if self.is_right else "right relation, wrong subject"


def _beyond(share: float, chance: float) -> bool:
    """Of a chance of one nothing can be known: with a single relation, no model can know the relation."""
    return share - chance > (1 - chance) / 2 > 0


def belief(model: Architecture, w: Weights, book: Book, s: int, r: int, seed: int, step: int) -> Belief:
    """Mean over prompts about this fact, each with its own noise."""
    p = log_probabilities(model, w, book.about(s, r, seed, step, CROWDS)).exp().mean(0)
    return shared_out(p, book, s, r)


def shared_out(p: Float[Tensor, " A"], book: Book, s: int, r: int) -> Belief:
    """These probabilities of all answers, as what is believed of one fact."""
    answer, answers, guess = int(book.table[s, r]), _answers_of(book, r), int(p.argmax())
    right, mass = float(p[answer]), float(p[torch.from_numpy(answers)].sum())
    known = {"is_right": guess == answer, "of_relation": guess in answers}
    return Belief(right, mass - right, 1 - mass, guess, **known, chance=Chance.of(book, s, r))


@lru_cache(maxsize=4096)
def _answers_of(book: Book, r: int) -> Int[np.ndarray, " D"]:
    answers = np.unique(book.table[:, r])
    return answers[answers != MISSING]
