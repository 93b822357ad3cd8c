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
from engram.tasks.book import Book
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
class Belief:
    """How probability is shared out when one fact is asked for: the right answer, others of its relation, the rest."""

    right: float
    relation: float
    rest: float
    guess: int

    @property
    def words(self) -> str:
        """The stage of learning that this is."""
        if self.right > 0.5:
            return "right"
        return "right relation, wrong subject" if self.relation + self.right > 0.5 else "no idea"


def belief(model: Architecture, w: Weights, book: Book, s: int, r: int, seed: int, step: int) -> Belief:
    """Mean over prompts about this fact, each with its own noise."""
    p = log_probabilities(model, w, book.about(s, r, seed, step, CROWDS)).exp().mean(0)
    answer, of_relation = int(book.table[s, r]), torch.unique(torch.from_numpy(book.table[:, r]))
    mass = float(p[of_relation[of_relation >= 0]].sum())
    right = float(p[answer])
    return Belief(right, mass - right, 1 - mass, int(p.argmax()))
