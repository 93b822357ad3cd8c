"""A model at one of its steps, as panels ask about it: scores, composition, truncation; and edits that can be undone.

One thread works on it, so that nothing here needs a lock; which edits there are may be read from any thread.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from torch import Tensor

from engram.errors import EngramError
from engram.facts.rewrite import HELD, Rewritten, rewrite
from engram.lab import model_questions as questions
from engram.lab.model_messages import Edit, Truncate
from engram.lab.watched_run import Cache
from engram.memory.truncation import Factors
from engram.probes import survey
from engram.probes.edits import Edits
from engram.probes.survey import Scores
from engram.probes.words import Speaker
from engram.probing import Subject
from engram.tasks.prose import prose_of


@dataclass(frozen=True)
class InForce:
    """An edit of a revision; `number` names it to the page."""

    number: int
    step: int
    done: Rewritten

    def to_json(self) -> dict[str, Any]:
        edit = self.done.edit
        about = {"edit": self.number, "step": self.step, "prompt": edit.prompt}
        return about | {"was": edit.was, "answer": edit.answer, "matrix": edit.matrix}


class ProbedModel:
    """Knows a Subject for every step (`base`).

    text    for the second moment of keys and the loss of edits; prose that is installed unless said
    """

    def __init__(self, text: Path | None = None):
        self._text = text
        self.doing: str | None = None
        self._edits: list[InForce] = []
        self._numbers = count(1)
        self._made, self._factors = Cache(), Cache()

    def base(self, step: int) -> Subject:
        """A step without its edits."""
        raise NotImplementedError

    def stored_step(self, step: int | None) -> int:
        raise NotImplementedError

    def edits_at(self, step: int) -> list[dict[str, Any]]:
        """The edits in force, as a page lists them."""
        return [one.to_json() for one in list(self._edits) if one.step == step]

    @contextmanager
    def said(self, what: str) -> Iterator[None]:
        """Pages are told what is being computed."""
        self.doing = what
        try:
            yield
        finally:
            self.doing = None

    def _stack(self, step: int) -> Edits:
        of = [one for one in self._edits if one.step == step]
        return of[-1].done.edits if of else Edits(self.base(step).network)

    def version(self, step: int) -> tuple[int, ...]:
        """Which edits are in force; what was computed is kept for each state."""
        return tuple(one.number for one in self._edits if one.step == step)

    def subject(self, step: int) -> Subject:
        """A revision with its edits."""
        base = self.base(step)
        return replace(base, network=self._stack(step).network) if self.version(step) else base

    def scores(self, step: int, edited: bool = True) -> Scores:
        """With the edits in force; the curves over the revisions are those of the model as it came."""

        def made() -> Scores:
            with self.said("scores of all heads"):
                return survey.scores(questions.asked_of(self.subject(step) if edited else self.base(step)))

        return self._made.get_or(("scores", step, self.version(step) if edited else ()), made)

    # What pages ask

    def heads(self, step: int) -> dict[str, Any]:
        scores = self.scores(step)
        return {"heads": scores.to_json(), "losses": scores.losses()}

    def compose(self, step: int) -> dict[str, Any]:
        def made() -> dict[str, Any]:
            with self.said("composition"):
                return questions.composed(self.subject(step), scores)

        scores = self.scores(step)
        return self._made.get_or(("composition", step, self.version(step)), made)

    def copying(self, step: int) -> dict[str, Any]:
        def made() -> dict[str, Any]:
            with self.said("copying"):
                return questions.copied(self.subject(step), scores)

        scores = self.scores(step)
        return self._made.get_or(("copying", step, self.version(step)), made)

    def truncate(self, step: int, asked: Truncate) -> dict[str, Any]:
        def factors(name: str, W: Any) -> Factors:
            return self._factors.get_or((step, self.version(step), name), lambda: Factors.of(W), most=4)

        with self.said("a truncation"):
            return questions.truncated(self.subject(step), asked, factors, lambda: self._rows(step))

    def _rows(self, step: int) -> Tensor | None:
        """Rows of text that edits do not see; none where there is no tokenizer."""
        base = self.base(step)
        if base.words is None:
            return None
        speaker = Speaker(base.network, base.words)
        return self._made.get_or("rows", lambda: speaker.rows(prose_of(self._text), 1 << 20)[-HELD:])

    def edit(self, step: int, asked: Edit) -> dict[str, Any]:
        with self.said("an edit"):
            stack = self._stack(step)
            _refuse_edits(self.base(step))
            done = rewrite(stack, self.base(step).words, asked.prompt, asked.answer, text=self._text)
        self._edits.append(InForce(next(self._numbers), step, done))
        labels = {"paraphrase": "paraphrases that prefer the new answer", "neighbour": "neighbours that stay"}
        labels |= {"subject": "other facts of the subject that stay"}
        changed = [{"what": labels[kind], "do": n, "of": of} for kind, (n, of) in done.changed.items()]
        about = {"was": done.edit.was, "answer": done.edit.answer, "matrix": done.edit.matrix, "prompt": asked.prompt}
        told = {"before": vars(done.before), "after": vars(done.after), "changed": changed, "loss": list(done.loss)}
        return about | told | {"notes": [note for note in done.notes if "--others" not in note]}

    def undo(self, number: int) -> dict[str, Any]:
        """The edits after it stay as they are, each the same difference on the weights that remain."""
        gone = next((one for one in self._edits if one.number == number), None)
        if gone is None:
            raise EngramError(f"edit: none of the edits in force has the number {number}")
        self._edits = [
            replace(one, done=replace(one.done, edits=one.done.edits.minus(gone.done.edit)))
            if one.step == gone.step and one.number > number
            else one
            for one in self._edits
            if one is not gone
        ]
        return {}


def _refuse_edits(subject: Subject) -> None:
    name, W = subject.network.provenance.name, subject.network.matrices()
    if "U" not in W or not any(matrix.startswith("W_F") for matrix in W):
        raise EngramError(
            f"edit: {name} has no feed-forward matrix or no output matrix, so nothing can be written into it"
        )
