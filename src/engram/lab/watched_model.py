"""A model of others, or a series of its revisions, as pages see it: it answers as a run does, and has edits besides.

One thread works on it, so that nothing here needs a lock; what `about`, `now` and rows tell may be read from any thread.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engram.adapters import Pretrained, read_model, revisions
from engram.adapters.moments import moments
from engram.adapters.source import CONFIG
from engram.errors import EngramError, did_you_mean
from engram.facts.rewrite import Rewritten, rewrite
from engram.lab import model_questions as questions
from engram.lab.model_rows import ModelRows
from engram.lab.protocol import Edit, Truncate
from engram.lab.watched_run import Cache, Tokens
from engram.memory.truncation import Factors
from engram.models import Head
from engram.probes import survey
from engram.probes.edits import Edits
from engram.probes.survey import Scores
from engram.probing import Subject, shown_tokens, subject_from

KINDS = ("induction", "previous")
IN_MEMORY = 2  # revisions


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


class WatchedModel:
    """A folder, file or name of `engram.read_model`, or a folder of revisions.

    text    for the second moment of keys and the loss of edits; prose that is installed unless said
    """

    untrusted: str | None = None

    def __init__(self, where: str, consent: bool = False, text: Path | None = None):
        self._where, self._consent, self._text = where, consent, text
        self.names = _revisions(where)  # by step
        self.steps = sorted(self.names)
        self.doing: str | None = None
        self._edits: list[InForce] = []
        self._numbers = count(1)
        self._bases, self._made, self._factors, self._read = Cache(), Cache(), Cache(), Cache()
        last = self._base(self.steps[-1])
        self.id = f"model:{_name(where)}"
        self.rows = ModelRows(self.id, last.network)
        self._about = self._described(last)

    @property
    def wrong(self) -> str | None:
        """Why a revision has no scores."""
        return self.rows.wrong

    @property
    def table(self) -> Sequence[Any]:
        return self.rows.table

    @property
    def about(self) -> dict[str, Any]:
        return self._about

    def columns(self) -> dict[str, Any]:
        return self.rows.columns()

    def rows_from(self, start: int) -> dict[str, Any] | None:
        return self.rows.since(start)

    def _described(self, subject: Subject) -> dict[str, Any]:
        network, source = subject.network, subject.network.provenance
        sizes = network.sizes
        empty = dict.fromkeys(("pictures", "levels", "settings", "events", "stages", "interventions"), [])
        model = {"name": _name(self._where), "family": source.family, "note": source.note, "sha256": source.sha256}
        model |= {"layers": sizes.L, "matrices": questions.letters_of(network), "seeds": len(questions.SEEDS)}
        model |= {
            "text": subject.words is not None,
            "revisions": len(self.steps),
            "has_mlp": "W_F1" in network.matrices(),
        }
        about = {"t": "about", "run": self.id, "title": str(source), "steps": self.steps[-1], "seed": 0}
        return (
            about
            | empty
            | {"N": sizes.N, "T": sizes.T, "letters": None, "heads": list(network.heads()), "model": model}
        )

    def listed(self) -> dict[str, Any]:
        """As a line of the list of runs."""
        line = {"id": self.id, "title": self._about["title"], "seed": 0, "state": "model", "rows": len(self.table)}
        line |= {"steps": self.steps[-1], "events": [], "family": self.id, "parts_at": 0, "words": self._about["title"]}
        return line | {"began": None, "seconds": None, "tags": [], "note": "", "headline": {}}

    def now(self, trainer: dict[str, Any]) -> dict[str, Any]:
        edits = [one.to_json() for one in list(self._edits)]
        about = {"t": "state", "run": self.id, "state": "model", "step": self.steps[-1], "snapshots": self.steps}
        about |= {"live": None, "why": None, "births": [], "trainer": trainer}
        return about | {"edits": edits, "computing": self.doing}

    def stored_step(self, step: int | None) -> int:
        """The last revision that is not after a step."""
        return self.steps[-1] if step is None else max((s for s in self.steps if s <= step), default=self.steps[0])

    @contextmanager
    def said(self, what: str) -> Iterator[None]:
        """Pages are told what is being computed."""
        self.doing = what
        try:
            yield
        finally:
            self.doing = None

    # Its weights

    def _base(self, step: int) -> Subject:
        return self._bases.get_or(step, lambda: subject_from(self._opened(step)), most=IN_MEMORY)

    def _opened(self, step: int) -> Pretrained:
        name = self.names[step]
        if not name:
            return read_model(self._where, consent=self._consent)
        return next(iter(revisions(self._where, [name])))[1]

    def _stack(self, step: int) -> Edits:
        of = [one for one in self._edits if one.step == step]
        return of[-1].done.edits if of else Edits(self._base(step).network)

    def version(self, step: int) -> tuple[int, ...]:
        """Which edits are in force; what was computed is kept for each state."""
        return tuple(one.number for one in self._edits if one.step == step)

    def subject(self, step: int) -> Subject:
        """A revision with its edits."""
        base = self._base(step)
        return replace(base, network=self._stack(step).network) if self.version(step) else base

    def scores(self, step: int, edited: bool = True) -> Scores:
        """With the edits in force; the curves over the revisions are those of the model as it came."""

        def made() -> Scores:
            with self.said(f"scores of all heads{self._at(step)}"):
                return survey.scores(questions.asked_of(self.subject(step) if edited else self._base(step)))

        return self._made.get_or(("scores", step, self.version(step) if edited else ()), made)

    def _at(self, step: int) -> str:
        return f", {self.names[step]}" if self.names[step] else ""

    # What pages ask

    def heads(self, step: int) -> dict[str, Any]:
        scores = self.scores(step)
        return {"heads": scores.to_json(), "losses": scores.losses()}

    def compose(self, step: int) -> dict[str, Any]:
        def made() -> dict[str, Any]:
            with self.said(f"composition{self._at(step)}"):
                return questions.composed(self.subject(step), scores)

        scores = self.scores(step)
        return self._made.get_or(("composition", step, self.version(step)), made)

    def truncate(self, step: int, asked: Truncate) -> dict[str, Any]:
        def factors(name: str, W: Any) -> Factors:
            return self._factors.get_or((step, self.version(step), name), lambda: Factors.of(W), most=4)

        with self.said("a truncation"):
            return questions.truncated(self.subject(step), asked, factors)

    def edit(self, step: int, asked: Edit) -> dict[str, Any]:
        with self.said("an edit"):
            stack = self._stack(step)
            _refuse_edits(self._base(step))
            done = rewrite(stack, self._base(step).words, asked.prompt, asked.answer, text=self._text)
        self._edits.append(InForce(next(self._numbers), step, done))
        labels = {"paraphrase": "paraphrases that prefer the new answer", "neighbour": "neighbours that stay"}
        labels |= {"subject": "other facts of the subject that stay"}
        changed = [{"what": labels[kind], "do": n, "of": of} for kind, (n, of) in done.changed.items()]
        about = {"was": done.edit.was, "answer": done.edit.answer, "matrix": done.edit.matrix, "prompt": asked.prompt}
        told = {"before": vars(done.before), "after": vars(done.after), "changed": changed, "loss": list(done.loss)}
        return about | told | {"notes": [note for note in done.notes if "--others" not in note]}

    def undo(self, step: int, number: int) -> dict[str, Any]:
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

    # Pictures and predictions, as a run has them

    def tokens_of(self, text: str | None, tokens: Tokens) -> list[int]:
        subject = self._base(self.steps[-1])
        if text is None and tokens is None:
            return self._own
        return questions.encoded(subject, text) if text is not None else questions.checked(subject, tokens or ())

    @property
    def _own(self) -> list[int]:
        """Random tokens that come twice, of the last revision: the same for all."""
        subject = self._base(self.steps[-1])
        return self._made.get_or("own", lambda: shown_tokens(subject, questions.asked_of(subject)))

    def _reading(self, step: int, tokens: Tokens, without: Sequence[Head]) -> questions.Reading:
        sequence = self.tokens_of(None, tokens)
        key = (step, self.version(step), tuple(sequence), tuple(without))
        return self._read.get_or(key, lambda: questions.read(self.subject(step).network, sequence, without), most=3)

    def values(
        self, step: int, name: str, minus: int | None, tokens: Tokens = None, heads: Sequence[Head] = ()
    ) -> np.ndarray:
        found = self._picture(step, name, tokens, heads)
        return found if minus is None else found - self._picture(minus, name, tokens, heads)

    def _picture(self, step: int, name: str, tokens: Tokens, heads: Sequence[Head]) -> np.ndarray:
        kind, _, of = name.partition(":")
        if kind == "heads" and of in KINDS:
            return questions.grid(self.scores(step), of)
        known = {f"attention:{i}.{h}": (i, h) for i, h in self._about["heads"]}
        if name not in known:
            raise EngramError(
                f"no picture {name!r:.60}; {did_you_mean(name, known)}allowed: heads:induction, attention:1.1, …"
            )
        return self._reading(step, tokens, heads).patterns[known[name]]

    def has_right_answers(self, picture: str) -> bool:
        return False

    def predictions(self, step: int, tokens: Tokens, heads: Sequence[Head]) -> dict[str, Any]:
        sequence = self.tokens_of(None, tokens)
        return questions.told(self.subject(step), sequence, self._reading(step, tokens, heads))


def _refuse_edits(subject: Subject) -> None:
    name, W = subject.network.provenance.name, subject.network.matrices()
    if "U" not in W or not any(matrix.startswith("W_F") for matrix in W):
        raise EngramError(
            f"edit: {name} has no feed-forward matrix or no output matrix, so nothing can be written into it"
        )


def _revisions(where: str) -> dict[int, str]:
    """Names of revisions by their steps; one model is step 0, without a name."""
    path = Path(where).expanduser()
    if not path.is_dir() or (path / CONFIG).exists():
        return {0: ""}
    names = [name for name, _ in moments(where, None, torch.float32, False)]
    numbers = [int((re.findall(r"\d{1,9}", name) or ["0"])[0]) for name in names]
    return dict(zip(numbers if len(set(numbers)) == len(names) else range(len(names)), names, strict=True))


def _name(where: str) -> str:
    path = Path(where).expanduser()
    return (path.resolve().name if path.exists() else where)[:150]
